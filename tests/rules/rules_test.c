/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/rules/rules_test.c - for each rule of DESIGN.md a scripted case: with the rule it holds in
 * every crash state tried, without it a promise fails. A rule that nothing enforces any more shows
 * here, and so does a case that no longer needs its rule.
 *
 * 4.10 and 4.11 have no switch: lac__op_apply is given one page and nothing else, and only
 * lac__commit_sequence changes pages. 4.18 is scripted in the journal's own tests.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rules.h"
#include "common/blocks.h"
#include "io/sim.h"
#include "lacuna/check.h"
#include "store/internal.h"

enum { BLOCKS_MAX = 400, SEEDS = 6 };

struct expected {
	uint64_t id, length;
	bool deleted;
};

struct world {
	struct lac_backend *be;
	struct lac_store *store;
	struct expected blocks[BLOCKS_MAX];
	size_t count;
	uint64_t max_exposed;
	bool damage_told_is_fine; /* damage was planted: refusing is right, being wrong is not */
	unsigned states, violations;
	char first[700];
	uint64_t changes; /* for hooks of single cases */
	uint8_t *buffer, *read_buffer;
};

static void violation(struct world *w, const char *what, const struct lac_error *err)
{
	if (w->violations++ == 0)
		snprintf(w->first, sizeof w->first, "%s: %s", what, err ? err->message : "");
}

static struct lac_open_options open_options(struct lac_backend *be)
{
	return (struct lac_open_options){.size = sizeof(struct lac_open_options),
		.no_background = true,
		.backend = be,
		.memory_bytes = 1 << 20};
}

static uint64_t segment_bytes = 64 << 10;

static void world_make(
	struct world *w, uint64_t container_bytes, uint32_t sector_bytes, uint64_t capacity_bytes)
{
	struct lac__sim_options sim = {
		.physical_sector_bytes = sector_bytes, .capacity_bytes = capacity_bytes};
	struct lac_create_options create = {.size = sizeof create,
		.inline_max_bytes = 4096,
		.segment_bytes = segment_bytes,
		.container_bytes = container_bytes};
	struct lac_open_options open;
	struct lac_error err = {0};

	memset(w, 0, sizeof *w);
	w->buffer = malloc(4 << 20);
	w->read_buffer = malloc(4 << 20);
	assert_non_null(w->buffer);
	assert_non_null(w->read_buffer);
	assert_int_equal(lac__sim_new(&sim, &w->be), 0);
	assert_int_equal(lac__store_create_on(w->be, &create, &err), 0);
	open = open_options(w->be);
	assert_int_equal(lac_store_open("sim", &open, &w->store, &err), 0);
}

static void world_free(struct world *w)
{
	if (w->store)
		lac_store_close(w->store, NULL);
	lac__sim_free(w->be);
	free(w->buffer);
	free(w->read_buffer);
}

/* Ends the process: what was written stays cached, or the power goes too. */
static void world_crash(struct world *w, enum lac__sim_crash_mode mode)
{
	struct lac_backend *after;

	lac__sim_on_change(w->be, NULL, NULL);
	assert_int_equal(lac__sim_crash(w->be, mode, 0, &after), 0);
	lac__journal_poison(w->store->journal, -EIO, &(struct lac_error){.message = "crashed"});
	lac_store_close(w->store, NULL);
	lac__sim_free(w->be);
	w->be = after;
	w->store = NULL;
}

static int world_open(struct world *w, struct lac_error *err)
{
	struct lac_open_options open = open_options(w->be);

	return lac_store_open("sim", &open, &w->store, err);
}

static int put(struct world *w, size_t length)
{
	struct lac_error err = {0};
	struct lac_txn *txn;
	uint64_t id = 0;
	int rc = lac_txn_begin(w->store, &txn, &err);

	if (rc < 0)
		return rc;
	assert_true(w->count < BLOCKS_MAX);
	test_fill(w->buffer, length, length);
	rc = lac_txn_put(txn, w->buffer, length, 0, &id, &err);
	if (rc < 0) {
		lac_txn_abort(txn);
		return rc;
	}
	if (id > w->max_exposed)
		w->max_exposed = id;
	rc = lac_txn_commit(txn, NULL, &err);
	if (rc == 0)
		w->blocks[w->count++] = (struct expected){.id = id, .length = length};
	return rc;
}

static int delete_at(struct world *w, size_t n)
{
	struct lac_error err = {0};
	struct lac_txn *txn;
	int rc = lac_txn_begin(w->store, &txn, &err);

	if (rc < 0)
		return rc;
	rc = lac_txn_delete(txn, w->blocks[n].id, &err);
	if (rc < 0) {
		lac_txn_abort(txn);
		return rc;
	}
	/* until acknowledged it may be there or not */
	w->blocks[n].length = UINT64_MAX;
	rc = lac_txn_commit(txn, NULL, &err);
	w->blocks[n].deleted = rc == 0;
	return rc;
}

/* ---- verification ---- */

static int on_finding(void *arg, const struct lac_finding *finding)
{
	struct world *w = arg;
	struct lac_error err = {0};

	if (finding->severity == LAC_SEVERITY_NOTE)
		return 0;
	snprintf(err.message, sizeof err.message, "%d %s: %s", finding->id, finding->path,
		finding->text);
	violation(w, "check", &err);
	return 0;
}

static void verify_check(struct world *w, struct lac_backend *be)
{
	struct lac_check_options options = {.size = sizeof options,
		.data = true,
		.backend = be,
		.finding = on_finding,
		.arg = w};
	struct lac_check_result result;
	struct lac_error err = {0};

	if (lac_check("sim", &options, &result, &err) < 0)
		violation(w, "check refused", &err);
}

static bool told(const struct world *w, int rc)
{
	return w->damage_told_is_fine && (rc == -EBADMSG || rc == -EUCLEAN);
}

static void verify_block(struct world *w, struct lac_store *s, const struct expected *b)
{
	struct lac_error err = {0};
	struct lac_block_info info;
	int64_t n = lac_block_stat(s, b->id, &info, &err);

	if (b->deleted) {
		if (n != -ENOENT)
			violation(w, "deleted block", &err);
		return;
	}
	if (b->length == UINT64_MAX || told(w, (int)n))
		return;
	if (n == 0)
		n = lac_block_read(s, b->id, w->read_buffer, b->length, 0, &err);
	if (told(w, (int)n))
		return;
	if (n != (int64_t)b->length || !test_matches(w->read_buffer, b->length, b->length, 0))
		violation(w, "acknowledged block", &err);
}

static void verify_new_id(struct world *w, struct lac_store *s)
{
	struct lac_error err = {0};
	struct lac_txn *txn;
	uint64_t id = 0;

	if (lac_txn_begin(s, &txn, &err) < 0)
		return;
	if (lac_txn_put(txn, "x", 1, 0, &id, &err) == 0 && id <= w->max_exposed)
		violation(w, "an id was given out twice", NULL);
	lac_txn_abort(txn);
}

static void verify_state(struct world *w, struct lac_backend *be)
{
	struct lac_open_options open = open_options(be);
	struct lac_store *s;
	struct lac_error err = {0};
	int rc;

	w->states++;
	if (!w->damage_told_is_fine)
		verify_check(w, be);
	rc = lac_store_open("sim", &open, &s, &err);
	if (rc < 0) {
		if (!told(w, rc))
			violation(w, "open", &err);
		return;
	}
	for (size_t i = 0; i < w->count; i++)
		verify_block(w, s, &w->blocks[i]);
	verify_new_id(w, s);
	lac_store_close(s, &err);
	if (!w->damage_told_is_fine)
		verify_check(w, be);
}

static void verify_crash(struct world *w, enum lac__sim_crash_mode mode, uint64_t seed)
{
	struct lac_backend *after;

	assert_int_equal(lac__sim_crash(w->be, mode, seed, &after), 0);
	verify_state(w, after);
	lac__sim_free(after);
}

static void on_change(void *arg, uint64_t number)
{
	struct world *w = arg;

	verify_crash(w, LAC__SIM_DROP_ALL, 0);
	verify_crash(w, LAC__SIM_KEEP_ALL, 0);
	verify_crash(w, LAC__SIM_KILL, 0);
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		verify_crash(w, LAC__SIM_SEEDED, number * 97 + seed);
}

static void watch(struct world *w)
{
	lac__sim_on_change(w->be, on_change, w);
}

static void finish(struct world *w)
{
	on_change(w, UINT32_MAX);
	lac__sim_on_change(w->be, NULL, NULL);
}

/* ---- the cases; each returns its world with the violations counted ---- */

/* Fills a container of 64 KiB with small blocks and empties it again. */
static void fill_and_empty(struct world *w, bool checkpoint)
{
	while (w->store->next_container < 3)
		assert_int_equal(put(w, 3000), 0);
	if (checkpoint)
		assert_int_equal(lac_store_checkpoint(w->store, NULL), 0);
	for (size_t i = 0; i + 1 < w->count; i++)
		assert_int_equal(delete_at(w, i), 0);
}

/* 4.1: small block, deleted, its container gone, all of it still in the journal. */
static void case_redo_first(struct world *w)
{
	world_make(w, 64 << 10, 512, 0);
	fill_and_empty(w, false);
	watch(w);
	assert_int_equal(lac_store_reclaim(w->store, NULL, NULL), 0);
	finish(w);
}

static void case_data_first(struct world *w)
{
	world_make(w, 1 << 20, 512, 0);
	watch(w);
	assert_int_equal(put(w, 20000), 0);
	finish(w);
}

/* 4.3: the write of an index page is lost although its sync succeeded. */
static void case_chain(struct world *w)
{
	world_make(w, 1 << 20, 512, 0);
	w->damage_told_is_fine = true;
	assert_int_equal(put(w, 100), 0);
	assert_int_equal(lac_store_checkpoint(w->store, NULL), 0);
	assert_int_equal(put(w, 101), 0);
	lac__sim_arm(w->be, LAC__SIM_WRITE, "index/0", 0, false, LAC__SIM_LOST, 0);
	assert_int_equal(lac_store_checkpoint(w->store, NULL), 0);
	assert_int_equal(lac__sim_struck(w->be), 1);
	assert_int_equal(put(w, 102), 0);
	finish(w);
}

/* 4.4: a record that nobody waited for, then a checkpoint. */
static void case_pages_follow(struct world *w)
{
	struct lac_txn *txn;
	struct lac_put *stream;

	world_make(w, 8 << 20, 512, 0);
	assert_int_equal(put(w, 100), 0);
	assert_int_equal(lac_txn_begin(w->store, &txn, NULL), 0);
	assert_int_equal(lac_put_begin(txn, 2 << 20, 0, &stream, NULL), 0);
	lac_put_abort(stream);
	lac_txn_abort(txn);
	watch(w);
	assert_int_equal(lac_store_checkpoint(w->store, NULL), 0);
	finish(w);
}

static void case_base_slot(struct world *w)
{
	world_make(w, 1 << 20, 512, 0);
	assert_int_equal(put(w, 100), 0);
	assert_int_equal(lac_store_checkpoint(w->store, NULL), 0);
	assert_int_equal(put(w, 101), 0);
	watch(w);
	assert_int_equal(lac_store_checkpoint(w->store, NULL), 0);
	finish(w);
}

/* 4.6: the sync of a super failed; the new one is in the cache only, and a process reads it. */
static void case_past_cache(struct world *w)
{
	struct lac_error err = {0};

	world_make(w, 1 << 20, 512, 0);
	assert_int_equal(put(w, 100), 0);
	assert_int_equal(lac_store_checkpoint(w->store, NULL), 0);
	assert_int_equal(put(w, 101), 0);
	assert_int_equal(lac_store_checkpoint(w->store, NULL), 0);
	assert_int_equal(put(w, 103), 0);
	lac__sim_arm(w->be, LAC__SIM_SYNC, "super", 0, false, LAC__SIM_SYNC_REVERT, 0);
	assert_true(lac_store_checkpoint(w->store, NULL) < 0);
	world_crash(w, LAC__SIM_KILL);
	watch(w);
	if (world_open(w, &err) < 0)
		violation(w, "open after a failed sync", &err);
	else if (put(w, 102) < 0)
		violation(w, "put after a failed sync", NULL);
	finish(w);
}

static void case_unreadable(struct world *w)
{
	struct lac_block_info info;
	struct lac_error err = {0};

	world_make(w, 1 << 20, 512, 0);
	assert_int_equal(put(w, 100), 0);
	assert_int_equal(lac_store_close(w->store, NULL), 0);
	assert_int_equal(world_open(w, &err), 0);
	lac__sim_arm(w->be, LAC__SIM_READ, "index/0", 0, true, LAC__SIM_ERRNO, EIO);
	if (lac_block_stat(w->store, w->blocks[0].id, &info, &err) != -EIO)
		violation(w, "an unreadable page was taken for something else", &err);
	lac__sim_heal(w->be);
	if (lac_block_stat(w->store, w->blocks[0].id, &info, &err) != 0)
		violation(w, "a page that can be read again", &err);
	w->states++;
}

/* 4.8: a packed block behind one that a checkpoint put out of the journal. */
static void case_tear_unit(struct world *w)
{
	world_make(w, 1 << 20, 4096, 0);
	assert_int_equal(put(w, 300), 0);
	assert_int_equal(lac_store_checkpoint(w->store, NULL), 0);
	watch(w);
	assert_int_equal(put(w, 301), 0);
	assert_int_equal(put(w, 302), 0);
	finish(w);
}

static void reclaim_in_between(void *arg, uint64_t number)
{
	struct world *w = arg;

	if (++w->changes != 2) /* the description is written, the payload comes */
		return;
	lac__sim_on_change(w->be, NULL, NULL);
	assert_int_equal(lac_store_reclaim(w->store, NULL, NULL), 0);
	(void)number;
}

/* 4.9: reclaim comes while a block is being written into a granule of dead ones. */
static void case_pins(struct world *w)
{
	world_make(w, 1 << 20, 512, 0);
	assert_int_equal(put(w, 300), 0);
	assert_int_equal(delete_at(w, 0), 0);
	lac__sim_on_change(w->be, reclaim_in_between, w);
	assert_int_equal(put(w, 301), 0);
	assert_int_equal(
		lac_store_checkpoint(w->store, NULL), 0); /* the journal can't help any more */
	finish(w);
}

/* 4.12: a large transaction is under way, another one behind it commits, and the power goes. */
static void case_reserve(struct world *w)
{
	struct lac_txn *txn;
	struct lac_put *stream;
	struct world after = {0};
	uint8_t bytes[4096], zeros[4096] = {0};

	world_make(w, 8 << 20, 512, 0);
	assert_int_equal(lac_txn_begin(w->store, &txn, NULL), 0);
	assert_int_equal(lac_put_begin(txn, 2 << 20, 0, &stream, NULL), 0);
	test_fill(w->buffer, 1 << 20, 1);
	assert_int_equal(lac_put_write(stream, w->buffer, 1 << 20, NULL), 0);
	assert_int_equal(put(w, 20000), 0);

	assert_int_equal(lac__sim_crash(w->be, LAC__SIM_KEEP_ALL, 0, &after.be), 0);
	assert_int_equal(world_open(&after, NULL), 0);
	assert_int_equal(lac_store_reclaim(after.store, NULL, NULL), 0);
	/* the payload stood behind header and description */
	assert_int_equal(lac__sim_peek(after.be, "data/00000001.lac", 2 * 4096, bytes, 4096), 0);
	if (memcmp(bytes, zeros, sizeof zeros) != 0)
		violation(w, "space of an abandoned transaction is still held", NULL);
	world_free(&after);
	finish(w);
	lac_put_abort(stream);
	lac_txn_abort(txn);
}

static void case_space_first(struct world *w)
{
	int rc;

	/* Segments so large that no checkpoint comes before the disk is full. */
	segment_bytes = 2 << 20;
	world_make(w, 1 << 20, 512, 7 << 20);
	segment_bytes = 64 << 10;
	while ((rc = put(w, 3000)) == 0 && w->count + 1 < BLOCKS_MAX)
		;
	if (rc != -ENOSPC)
		violation(w, "put on a full disk", NULL);
	if (lac_store_checkpoint(w->store, NULL) < 0)
		violation(w, "checkpoint on a full disk", NULL);
	for (size_t i = 0; i < w->count; i += 2)
		if (delete_at(w, i) < 0)
			violation(w, "delete on a full disk", NULL);
	if (lac_store_checkpoint(w->store, NULL) < 0)
		violation(w, "checkpoint on a full disk", NULL);
	finish(w);
}

static void case_sync_failure(struct world *w)
{
	world_make(w, 1 << 20, 512, 0);
	assert_int_equal(put(w, 10000), 0);
	lac__sim_arm(w->be, LAC__SIM_SYNC, "data/", 0, false, LAC__SIM_SYNC_REVERT, 0);
	put(w, 20000);
	put(w, 20001);
	finish(w);
}

/* 4.15: an id is known to the caller though its transaction never committed. */
static void case_high_water(struct world *w)
{
	struct lac_txn *txn;
	uint64_t id;

	world_make(w, 1 << 20, 512, 0);
	assert_int_equal(put(w, 100), 0);
	assert_int_equal(lac_txn_begin(w->store, &txn, NULL), 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(lac_txn_put(txn, "abc", 3, 0, &id, NULL), 0);
	w->max_exposed = id;
	finish(w);
	lac_txn_abort(txn);
}

static void case_zero_page(struct world *w)
{
	uint8_t zeros[LAC__PAGE_BYTES] = {0};

	world_make(w, 1 << 20, 512, 0);
	w->damage_told_is_fine = true;
	assert_int_equal(put(w, 100), 0);
	assert_int_equal(lac_store_close(w->store, NULL), 0);
	for (unsigned slot = 0; slot < 2; slot++)
		assert_int_equal(lac__sim_poke(w->be, "index/00000000.idx",
					 lac__page_slot_offset(0, slot), zeros, sizeof zeros),
			0);
	assert_int_equal(world_open(w, NULL), 0);
	for (size_t i = 0; i < w->count; i++)
		verify_block(w, w->store, &w->blocks[i]);
	w->states++;
}

static void case_drop_record(struct world *w)
{
	world_make(w, 64 << 10, 512, 0);
	fill_and_empty(w, true);
	assert_int_equal(lac_store_checkpoint(w->store, NULL), 0);
	watch(w);
	assert_int_equal(lac_store_reclaim(w->store, NULL, NULL), 0);
	finish(w);
}

struct rule_case {
	enum lac__rule rule;
	const char *number;
	void (*run)(struct world *);
};

static const struct rule_case cases[] = {
	{LAC__RULE_REDO_FIRST, "4.1", case_redo_first},
	{LAC__RULE_DATA_FIRST, "4.2", case_data_first},
	{LAC__RULE_CHAIN, "4.3", case_chain},
	{LAC__RULE_PAGES_FOLLOW, "4.4", case_pages_follow},
	{LAC__RULE_BASE_SLOT, "4.5", case_base_slot},
	{LAC__RULE_PAST_CACHE, "4.6", case_past_cache},
	{LAC__RULE_UNREADABLE, "4.7", case_unreadable},
	{LAC__RULE_TEAR_UNIT, "4.8", case_tear_unit},
	{LAC__RULE_PINS, "4.9", case_pins},
	{LAC__RULE_RESERVE, "4.12", case_reserve},
	{LAC__RULE_SPACE_FIRST, "4.13", case_space_first},
	{LAC__RULE_SYNC_FAILURE, "4.14", case_sync_failure},
	{LAC__RULE_HIGH_WATER, "4.15", case_high_water},
	{LAC__RULE_ZERO_PAGE, "4.16", case_zero_page},
	{LAC__RULE_DROP_RECORD, "4.17", case_drop_record},
};

static void test_rule(void **state)
{
	const struct rule_case *c = *state;
	struct world w;

	lac__rules_off = 0;
	c->run(&w);
	if (w.violations)
		fail_msg("rule %s is on, yet %u of %u states fail, first: %s", c->number,
			w.violations, w.states, w.first);
	world_free(&w);

	lac__rules_off = 1u << c->rule;
	c->run(&w);
	lac__rules_off = 0;
	print_message("rule %s off: %u violations in %u states, first: %s\n", c->number,
		w.violations, w.states, w.first);
	assert_true(w.violations > 0);
	world_free(&w);
}

int main(void)
{
	struct CMUnitTest tests[sizeof cases / sizeof *cases];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		tests[i] = (struct CMUnitTest){.name = cases[i].number,
			.test_func = test_rule,
			.initial_state = (void *)&cases[i]};
	return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
