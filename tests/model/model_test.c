/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/model/model_test.c - random operations against a map in memory: what the store says must be
 * what the map says, at every step, through reopening, crashes of the process and all options.
 *
 * On the lying backend, which here does not lie; check runs at each reopening.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/blocks.h"
#include "io/sim.h"
#include "lacuna/check.h"
#include "lacuna/lacuna.h"
#include "store/internal.h"

enum { BLOCKS_MAX = 4000, BATCH_MAX = 24 };

struct block {
	uint64_t id, length, owner;
	bool live;
};

struct model {
	uint64_t random, operations;
	struct lac_backend *be;
	struct lac_store *store;
	struct lac_open_options options;
	struct block blocks[BLOCKS_MAX];
	size_t count;
	uint64_t last_id;
	uint8_t *buffer;
};

static uint64_t below(struct model *m, uint64_t limit)
{
	return test_random(&m->random) % limit;
}

static void fail_with(const struct model *m, const char *what, const struct lac_error *err)
{
	fail_msg("%s after %llu operations: %s", what, (unsigned long long)m->operations,
		err->message);
}

static uint64_t random_length(struct model *m)
{
	switch (below(m, 12)) {
	case 0: return 0;
	case 1: return below(m, 64);
	case 2: return 4096 - 64 + below(m, 128);
	case 3: return 4096 * (1 + below(m, 4));
	case 4: return 65536 - 2 + below(m, 5);
	case 5: return below(m, 40) == 0 ? (1 << 20) + below(m, 300000) : below(m, 200000);
	default: return below(m, 6000);
	}
}

static void new_options(struct model *m)
{
	memset(&m->options, 0, sizeof m->options);
	m->options.size = sizeof m->options;
	m->options.no_background = true;
	m->options.backend = m->be;
	m->options.memory_bytes = (1 + below(m, 8)) << 20;
	m->options.journal_bytes = (64 << 10) << below(m, 5);
	m->options.open_files = 8 + (uint32_t)below(m, 20);
	m->options.journal_whole_pages = below(m, 2);
	m->options.journal_buffered = below(m, 2);
}

static void reopen(struct model *m)
{
	struct lac_error err = {0};

	new_options(m);
	if (lac_store_open("sim", &m->options, &m->store, &err) < 0)
		fail_with(m, "open", &err);
}

/* Deletes a few and adds a few in one transaction, which is sometimes given up. */
static void transact(struct model *m)
{
	struct lac_error err = {0};
	struct lac_txn *txn;
	struct block fresh[BATCH_MAX];
	size_t gone[BATCH_MAX], puts = below(m, 3) ? below(m, 4) : below(m, BATCH_MAX);
	size_t deletes = below(m, 3) ? below(m, 3) : below(m, BATCH_MAX), removed = 0;
	uint64_t deleted;
	bool give_up = below(m, 16) == 0;

	if (lac_txn_begin(m->store, &txn, &err) < 0)
		fail_with(m, "begin", &err);
	if (m->count + puts > BLOCKS_MAX)
		puts = 0;
	for (size_t i = 0; i < puts; i++) {
		struct block *b = &fresh[i];

		b->length = random_length(m);
		b->owner = below(m, 5);
		b->live = true;
		/* The bytes follow from the length and the owner: ids are not known beforehand. */
		test_fill(m->buffer, b->length, b->length * 8 + b->owner);
		if (lac_txn_put(txn, m->buffer, b->length, b->owner, &b->id, &err) < 0)
			fail_with(m, "put", &err);
		assert_true(b->id > m->last_id); /* never one that was given out before */
		m->last_id = b->id;
	}
	for (size_t i = 0; i < deletes && m->count > 0; i++) {
		size_t victim = below(m, m->count);
		int rc = lac_txn_delete(txn, m->blocks[victim].id, &err);

		if (!m->blocks[victim].live) {
			assert_int_equal(rc, -ENOENT);
			continue;
		}
		assert_int_equal(rc, 0);
		gone[removed++] = victim;
	}
	m->operations += puts + deletes;
	if (give_up) {
		lac_txn_abort(txn);
		return;
	}
	if (lac_txn_commit(txn, &deleted, &err) < 0)
		fail_with(m, "commit", &err);
	for (size_t i = 0; i < removed; i++) {
		/* the same block twice in one transaction is deleted once */
		deleted -= m->blocks[gone[i]].live;
		m->blocks[gone[i]].live = false;
	}
	assert_int_equal(deleted, 0);
	memcpy(m->blocks + m->count, fresh, puts * sizeof *fresh);
	m->count += puts;
}

static void read_one(struct model *m)
{
	struct lac_error err = {0};
	struct lac_block_info info;
	struct block *b;
	uint64_t from, length;
	int64_t n;

	if (m->count == 0)
		return;
	m->operations++;
	b = &m->blocks[below(m, m->count)];
	if (!b->live) {
		assert_int_equal(lac_block_stat(m->store, b->id, &info, &err), -ENOENT);
		assert_int_equal(lac_block_read(m->store, b->id, m->buffer, 1, 0, &err), -ENOENT);
		return;
	}
	if (lac_block_stat(m->store, b->id, &info, &err) < 0)
		fail_with(m, "stat", &err);
	assert_int_equal(info.length, b->length);
	assert_int_equal(info.owner, b->owner);
	from = below(m, 2) ? 0 : below(m, b->length + 2);
	length = below(m, 2) ? b->length : below(m, b->length + 2);
	n = lac_block_read(m->store, b->id, m->buffer, length, from, &err);
	if (n < 0)
		fail_with(m, "read", &err);
	if (from > b->length)
		from = b->length;
	assert_int_equal(n, length < b->length - from ? length : b->length - from);
	assert_true(test_matches(m->buffer, (size_t)n, b->length * 8 + b->owner, from));
}

static void compare_all(struct model *m)
{
	struct lac_store_stats stats = {.size = sizeof stats};
	struct lac_error err = {0};
	struct lac_block_info info;
	struct lac_iter *it;
	uint64_t live = 0, bytes = 0;
	size_t at = 0;
	int rc;

	if (lac_iter_open(m->store, NULL, &it, &err) < 0)
		fail_with(m, "iterate", &err);
	while ((rc = lac_iter_next(it, &info, &err)) == 0) {
		while (at < m->count && !m->blocks[at].live)
			at++;
		assert_true(at < m->count);
		assert_int_equal(info.id, m->blocks[at].id);
		live++;
		bytes += m->blocks[at++].length;
	}
	if (rc < 0)
		fail_with(m, "iterate", &err);
	lac_iter_close(it);
	while (at < m->count)
		assert_false(m->blocks[at++].live);
	assert_int_equal(lac_store_stat(m->store, &stats, &err), 0);
	assert_int_equal(stats.blocks, live);
	assert_int_equal(stats.live_bytes, bytes);
}

static int complain(void *arg, const struct lac_finding *finding)
{
	struct model *m = arg;

	if (finding->severity != LAC_SEVERITY_NOTE)
		fail_msg("check after %llu operations: %d %s: %s",
			(unsigned long long)m->operations, finding->id, finding->path,
			finding->text);
	return 0;
}

static void check(struct model *m)
{
	struct lac_check_options options = {.size = sizeof options,
		.data = below(m, 2),
		.backend = m->be,
		.finding = complain,
		.arg = m};
	struct lac_check_result result;
	struct lac_error err = {0};

	if (lac_check("sim", &options, &result, &err) < 0)
		fail_with(m, "check", &err);
}

/* A clean close, or the end of the process in the middle. */
static void close_or_die(struct model *m)
{
	struct lac_error err = {0};
	struct lac_backend *after;

	if (below(m, 2)) {
		if (lac_store_close(m->store, &err) < 0)
			fail_with(m, "close", &err);
	} else {
		assert_int_equal(
			lac__sim_crash(
				m->be, below(m, 2) ? LAC__SIM_KILL : LAC__SIM_DROP_ALL, 0, &after),
			0);
		lac__journal_poison(m->store->journal, -EIO, &err);
		lac_store_close(m->store, NULL);
		lac__sim_free(m->be);
		m->be = after;
	}
	check(m);
}

static void step(struct model *m)
{
	struct lac_error err = {0};
	int rc = 0;

	switch (below(m, 200)) {
	case 0:
		close_or_die(m);
		reopen(m);
		while (below(m, 3) == 0) { /* sessions that do nothing, or next to nothing */
			close_or_die(m);
			reopen(m);
			if (below(m, 2))
				transact(m);
		}
		compare_all(m);
		break;
	case 1:
	case 2: rc = lac_store_reclaim(m->store, NULL, &err); break;
	case 3: rc = lac_store_checkpoint(m->store, &err); break;
	case 4: compare_all(m); break;
	default:
		if (below(m, 2))
			transact(m);
		else
			read_one(m);
	}
	if (rc < 0)
		fail_with(m, "upkeep", &err);
}

static void run_model(uint64_t seed, uint64_t operations)
{
	struct lac__sim_options sim = {.block_bytes = 4096};
	struct model *m = calloc(1, sizeof *m);
	struct lac_create_options create = {.size = sizeof create};
	struct lac_error err = {0};

	assert_non_null(m);
	m->random = seed;
	m->buffer = malloc(2 << 20);
	assert_non_null(m->buffer);
	sim.physical_sector_bytes = below(m, 2) ? 512 : 4096;
	sim.no_punch = below(m, 8) == 0;
	assert_int_equal(lac__sim_new(&sim, &m->be), 0);
	create.granule_bytes = 4096u << below(m, 5);
	create.container_bytes = (UINT64_C(256) << 10) << below(m, 5);
	create.segment_bytes = (UINT64_C(64) << 10) << below(m, 4);
	create.inline_max_bytes = 4096u << below(m, 6);
	if (lac__store_create_on(m->be, &create, &err) < 0)
		fail_with(m, "create", &err);
	reopen(m);
	while (m->operations < operations && m->count + BATCH_MAX < BLOCKS_MAX)
		step(m);
	compare_all(m);
	assert_int_equal(lac_store_close(m->store, &err), 0);
	check(m);
	lac__sim_free(m->be);
	free(m->buffer);
	free(m);
}

static void test_model(void **state)
{
	uint64_t rounds = (uint64_t)(40 * test_scale());

	(void)state;
	for (uint64_t seed = 1; seed <= (rounds ? rounds : 1); seed++)
		run_model(seed, 8000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_model)};

	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
