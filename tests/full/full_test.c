/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/full/full_test.c - the disk is full at every possible moment: its capacity goes up block by
 * block from "nothing fits" to "everything fits". Each call gives 0 or -ENOSPC, nothing is poisoned
 * or half there, and when there is space again all goes on (P7, P8).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/blocks.h"
#include "io/sim.h"
#include "lacuna/check.h"
#include "store/internal.h"

enum { BLOCK_BYTES = 4096, STEPS = 700, BLOCKS_MAX = 600 };

struct block {
	uint64_t id, length;
	bool live;
};

struct world {
	struct lac_backend *be;
	struct lac_store *store;
	struct block blocks[BLOCKS_MAX];
	size_t count;
	uint64_t capacity, full;
	unsigned warnings;
};

static uint8_t bytes[2 << 20], got[2 << 20];

static void count_warning(void *arg, int level, const char *message)
{
	struct world *w = arg;

	(void)message;
	w->warnings += level == LAC_LOG_WARNING;
}

static void open_world(struct world *w)
{
	struct lac_open_options open = {.size = sizeof open,
		.no_background = true,
		.backend = w->be,
		.memory_bytes = 1 << 20,
		.log = count_warning,
		.log_arg = w};
	struct lac_error err = {0};

	if (lac_store_open("sim", &open, &w->store, &err) < 0)
		fail_msg("capacity %llu: %s", (unsigned long long)w->capacity, err.message);
}

static void make(struct world *w, const struct lac__sim_options *sim)
{
	struct lac_create_options create = {.size = sizeof create,
		.inline_max_bytes = 4096,
		.segment_bytes = 64 << 10,
		.container_bytes = 256 << 10};

	memset(w, 0, sizeof *w);
	assert_int_equal(lac__sim_new(sim, &w->be), 0);
	assert_int_equal(lac__store_create_on(w->be, &create, NULL), 0);
}

/* 0 or -ENOSPC, which leaves the handle usable. */
static int expect_space_only(struct world *w, int rc, const struct lac_error *err)
{
	if (rc == 0)
		return 0;
	if (rc != -ENOSPC || err->reason != LAC_REASON_NO_SPACE ||
		lac__journal_poisoned(w->store->journal, NULL) < 0)
		fail_msg(
			"capacity %llu: %d, %s", (unsigned long long)w->capacity, rc, err->message);
	w->full++;
	return rc;
}

static int put(struct world *w, size_t length)
{
	struct lac_error err = {0};
	struct lac_txn *txn;
	uint64_t id;
	int rc = lac_txn_begin(w->store, &txn, &err);

	if (rc < 0)
		return expect_space_only(w, rc, &err);
	test_fill(bytes, length, length);
	rc = lac_txn_put(txn, bytes, length, 0, &id, &err);
	if (rc < 0)
		lac_txn_abort(txn);
	else
		rc = lac_txn_commit(txn, NULL, &err);
	if (rc == 0) {
		assert_true(w->count < BLOCKS_MAX);
		w->blocks[w->count++] = (struct block){.id = id, .length = length, .live = true};
	}
	return expect_space_only(w, rc, &err);
}

/* Works on a full disk: there is a reserve for it. */
static void delete_at(struct world *w, size_t n)
{
	struct lac_error err = {0};
	struct lac_txn *txn;
	uint64_t deleted = 0;

	if (lac_txn_begin(w->store, &txn, &err) < 0 ||
		lac_txn_delete(txn, w->blocks[n].id, &err) < 0 ||
		lac_txn_commit(txn, &deleted, &err) < 0)
		fail_msg("capacity %llu: delete: %s", (unsigned long long)w->capacity, err.message);
	assert_int_equal(deleted, 1);
	w->blocks[n].live = false;
}

static void verify(struct world *w)
{
	for (size_t i = 0; i < w->count; i++) {
		struct block *b = &w->blocks[i];
		int64_t n = lac_block_read(w->store, b->id, got, sizeof got, 0, NULL);

		if (!b->live)
			assert_int_equal(n, -ENOENT);
		else
			assert_true(n == (int64_t)b->length &&
				    test_matches(got, b->length, b->length, 0));
	}
}

static int on_finding(void *arg, const struct lac_finding *finding)
{
	struct world *w = arg;

	if (finding->severity != LAC_SEVERITY_NOTE)
		fail_msg("capacity %llu: check: %d %s: %s", (unsigned long long)w->capacity,
			finding->id, finding->path, finding->text);
	return 0;
}

static void check(struct world *w)
{
	struct lac_check_options options = {.size = sizeof options,
		.data = true,
		.backend = w->be,
		.finding = on_finding,
		.arg = w};
	struct lac_check_result result;

	assert_int_equal(lac_check("sim", &options, &result, NULL), 0);
}

static void reclaim(struct world *w)
{
	struct lac_error err = {0};

	if (lac_store_reclaim(w->store, NULL, &err) < 0 || lac_store_checkpoint(w->store, &err) < 0)
		fail_msg("capacity %llu: upkeep: %s", (unsigned long long)w->capacity, err.message);
}

static void close_world(struct world *w)
{
	struct lac_error err = {0};

	if (lac_store_close(w->store, &err) < 0)
		fail_msg("capacity %llu: close: %s", (unsigned long long)w->capacity, err.message);
	w->store = NULL;
}

static void everything(struct world *w)
{
	static const size_t lengths[] = {300, 5000, 2000, 30000, 0, 1100000, 70000, 4096, 300};

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		put(w, lengths[i]);
	for (size_t i = 0; i < w->count; i += 2)
		delete_at(w, i);
	reclaim(w);
	for (size_t i = 0; i < 40; i++)
		put(w, 1000 + i * 100);
}

static void test_every_capacity(void **state)
{
	struct lac__sim_options sim = {0};
	struct world made, *w = malloc(sizeof *w);
	uint64_t used, full_runs = 0;
	unsigned step = test_scale() < 1 ? 13 : 1;

	(void)state;
	assert_non_null(w);
	make(&made, &sim);
	used = lac__sim_used_bytes(made.be);
	for (unsigned i = 0; i < STEPS; i += step) {
		*w = made;
		assert_int_equal(lac__sim_clone(made.be, &w->be), 0);
		w->capacity = used + (uint64_t)i * BLOCK_BYTES;
		lac__sim_set_capacity(w->be, w->capacity);
		open_world(w);
		everything(w);
		full_runs += w->full > 0;
		verify(w);
		close_world(w);
		check(w);
		open_world(w); /* on a disk that is as full as before */
		verify(w);
		lac__sim_set_capacity(w->be, w->capacity + (8 << 20));
		w->full = 0;
		put(w, 500);
		put(w, 50000);
		assert_int_equal(w->full, 0);
		verify(w);
		close_world(w);
		check(w);
		lac__sim_free(w->be);
	}
	assert_true(full_runs > STEPS / step / 4);
	lac__sim_free(made.be);
	free(w);
}

/* Round by round the same fits: nothing leaks. */
static void test_rounds(void **state)
{
	struct lac__sim_options sim = {.capacity_bytes = 3 << 20};
	struct world *w = malloc(sizeof *w);
	uint64_t random = 1, first = 0;

	(void)state;
	assert_non_null(w);
	make(w, &sim);
	open_world(w);
	for (unsigned round = 0; round < 25; round++) {
		uint64_t fitted = 0;

		w->count = 0; /* what is left of earlier rounds is deleted below */
		for (unsigned failures = 0; failures < 3 && w->count < BLOCKS_MAX - 1;) {
			size_t length = test_random(&random) % 30000;

			if (put(w, length) < 0)
				failures++;
			else
				fitted += length;
		}
		verify(w);
		for (size_t i = 0; i < w->count; i++)
			delete_at(w, i);
		reclaim(w);
		if (round == 0)
			first = fitted;
		assert_true(fitted * 10 > first * 8);
		if (round % 5 == 4) {
			close_world(w);
			check(w);
			open_world(w);
		}
	}
	close_world(w);
	lac__sim_free(w->be);
	free(w);
}

/* Each delete needs a record; the journal must not run out of room for them. */
static void test_deletes_without_end(void **state)
{
	struct lac__sim_options sim = {.capacity_bytes = 4 << 20};
	struct world *w = malloc(sizeof *w);

	(void)state;
	assert_non_null(w);
	make(w, &sim);
	open_world(w);
	while (w->count < BLOCKS_MAX - 100 && put(w, 200) == 0)
		;
	while (put(w, 100000) == 0 && w->count < BLOCKS_MAX - 1)
		;
	assert_true(w->full > 0);
	for (size_t i = 0; i < w->count; i++)
		delete_at(w, i);
	reclaim(w);
	w->full = 0;
	put(w, 100000);
	assert_int_equal(w->full, 0);
	close_world(w);
	check(w);
	lac__sim_free(w->be);
	free(w);
}

/* Where punching does not exist space waits, which is said once. */
static void test_no_punch(void **state)
{
	struct lac__sim_options sim = {.no_punch = true};
	struct world *w = malloc(sizeof *w);
	struct lac_store_stats stats = {.size = sizeof stats};

	(void)state;
	assert_non_null(w);
	make(w, &sim);
	open_world(w);
	for (unsigned i = 0; i < 10; i++) {
		put(w, 20000 + i);
		put(w, 30000 + i);
		delete_at(w, w->count - 2);
		reclaim(w);
	}
	assert_int_equal(w->warnings, 1);
	assert_int_equal(lac_store_stat(w->store, &stats, NULL), 0);
	assert_true(stats.dead_bytes > 0);
	verify(w);
	close_world(w);
	check(w);
	lac__sim_free(w->be);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_capacity),
		cmocka_unit_test(test_rounds), cmocka_unit_test(test_deletes_without_end),
		cmocka_unit_test(test_no_punch)};

	return cmocka_run_group_tests_name("full", tests, NULL, NULL);
}
