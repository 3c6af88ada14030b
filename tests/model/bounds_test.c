/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/model/bounds_test.c - what must not grow: the work of an open with the number of blocks and
 * of dead granules (P9), metadata memory with the number of blocks (P10), open descriptors with
 * the number of files. Counted in calls and pages, not in time.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/blocks.h"
#include "io/sim.h"
#include "store/internal.h"

enum { BATCH = 100, LENGTH = 100 };

static struct lac_open_options open_options(struct lac_backend *be)
{
	return (struct lac_open_options){.size = sizeof(struct lac_open_options),
		.no_background = true,
		.backend = be,
		.memory_bytes = 1 << 20,
		.open_files = 8};
}

static struct lac_backend *make(uint64_t container_bytes)
{
	struct lac__sim_options sim = {0};
	struct lac_create_options create = {.size = sizeof create,
		.segment_bytes = 1 << 20,
		.container_bytes = container_bytes};
	struct lac_backend *be;

	assert_int_equal(lac__sim_new(&sim, &be), 0);
	assert_int_equal(lac__store_create_on(be, &create, NULL), 0);
	return be;
}

static struct lac_store *open_store(struct lac_backend *be)
{
	struct lac_open_options open = open_options(be);
	struct lac_error err = {0};
	struct lac_store *s;

	if (lac_store_open("sim", &open, &s, &err) < 0)
		fail_msg("%s", err.message);
	return s;
}

static void add(struct lac_store *s, unsigned blocks, size_t length)
{
	uint8_t bytes[LENGTH * 50] = {0};

	assert_true(length <= sizeof bytes);
	while (blocks > 0) {
		struct lac_txn *txn;
		struct lac_error err = {0};

		assert_int_equal(lac_txn_begin(s, &txn, &err), 0);
		for (unsigned i = 0; i < BATCH && blocks > 0; i++, blocks--)
			assert_int_equal(lac_txn_put(txn, bytes, length, 0, NULL, &err), 0);
		if (lac_txn_commit(txn, NULL, &err) < 0)
			fail_msg("%s", err.message);
	}
}

static void delete_every_second(struct lac_store *s, uint64_t end)
{
	for (uint64_t id = 2; id < end;) {
		struct lac_txn *txn;

		assert_int_equal(lac_txn_begin(s, &txn, NULL), 0);
		for (unsigned i = 0; i < BATCH && id < end; i++, id += 2)
			lac_txn_delete(txn, id, NULL);
		assert_int_equal(lac_txn_commit(txn, NULL, NULL), 0);
	}
}

struct cost {
	uint64_t reads, punches, writes;
};

static struct cost cost_of_open(struct lac_backend *be)
{
	struct cost c = {lac__sim_count(be, LAC__SIM_READ), lac__sim_count(be, LAC__SIM_PUNCH),
		lac__sim_count(be, LAC__SIM_WRITE)};
	struct lac_store *s = open_store(be);

	c.reads = lac__sim_count(be, LAC__SIM_READ) - c.reads;
	c.punches = lac__sim_count(be, LAC__SIM_PUNCH) - c.punches;
	c.writes = lac__sim_count(be, LAC__SIM_WRITE) - c.writes;
	assert_int_equal(lac_store_close(s, NULL), 0);
	return c;
}

static void test_open_cost(void **state)
{
	struct lac_backend *be = make(64 << 20);
	struct lac_store *s = open_store(be);
	struct cost few, many;

	(void)state;
	add(s, 100, LENGTH);
	assert_int_equal(lac_store_close(s, NULL), 0);
	few = cost_of_open(be);

	s = open_store(be);
	add(s, 40000, LENGTH);
	delete_every_second(s, 40000);
	assert_int_equal(lac_store_close(s, NULL), 0);
	many = cost_of_open(be);

	assert_true(few.reads > 0);
	assert_int_equal(many.reads, few.reads);
	assert_int_equal(many.punches, 0); /* thousands of dead granules wait, and open with them */
	assert_int_equal(many.writes, few.writes);
	lac__sim_free(be);
}

static void test_memory(void **state)
{
	struct lac_backend *be = make(64 << 20);
	struct lac_store *s = open_store(be);
	struct lac_store_stats stats = {.size = sizeof stats};
	uint64_t budget = s->pages_budget, random = 1;
	uint8_t byte;

	(void)state;
	add(s, 60000, LENGTH); /* 476 index pages, about 15 times as many as fit beside the rest */
	assert_int_equal(lac_store_stat(s, &stats, NULL), 0);
	assert_true(stats.pages_cached <= budget + stats.pages_dirty);
	assert_true(stats.pages_dirty <= budget);
	assert_int_equal(lac_store_checkpoint(s, NULL), 0);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t id = 1 + test_random(&random) % 60000;

		assert_int_equal(lac_block_read(s, id, &byte, 1, 7, NULL), 1);
	}
	assert_int_equal(lac_store_stat(s, &stats, NULL), 0);
	assert_true(stats.pages_cached <= budget);
	assert_true(stats.page_misses > budget); /* it did have to evict */
	assert_int_equal(lac_store_close(s, NULL), 0);
	lac__sim_free(be);
}

static void test_descriptors(void **state)
{
	struct lac_backend *be = make(64 << 10);
	struct lac_store *s = open_store(be);
	uint64_t random = 3;
	unsigned most;
	uint8_t byte;

	(void)state;
	add(s, 1000, 5000); /* about 150 containers, and a map for each */
	assert_true(s->next_container > 100);
	for (unsigned i = 0; i < 3000; i++)
		assert_int_equal(
			lac_block_read(s, 1 + test_random(&random) % 1000, &byte, 1, 0, NULL), 1);
	lac__sim_open_files(be, &most);
	/* the pool's 8, the journal's 3, and one for a file that is being made */
	assert_true(most <= 8 + 3 + 1);
	assert_int_equal(lac_store_close(s, NULL), 0);
	lac__sim_free(be);
}

/* P10: a transaction over its limits fails whole, before any byte, and the store goes on. */
static void test_too_big(void **state)
{
	struct lac_backend *be = make(64 << 20);
	struct lac_store *s = open_store(be);
	struct lac_error err = {0};
	struct lac_txn *txn;
	uint64_t lsn;

	(void)state;
	add(s, 30000, LENGTH);
	lsn = lac__journal_next_lsn(s->journal);
	assert_int_equal(lac_txn_begin(s, &txn, NULL), 0);
	for (uint64_t id = 1; id < 30000; id += LAC__INDEX_ENTRIES)
		assert_int_equal(lac_txn_delete(txn, id, NULL), 0);
	assert_int_equal(lac_txn_commit(txn, NULL, &err), -E2BIG);
	assert_int_equal(err.reason, LAC_REASON_TOO_BIG);
	assert_int_equal(lac__journal_next_lsn(s->journal), lsn);
	add(s, 1, LENGTH);
	assert_int_equal(lac_store_close(s, NULL), 0);
	lac__sim_free(be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_open_cost),
		cmocka_unit_test(test_memory), cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_too_big)};

	return cmocka_run_group_tests_name("bounds", tests, NULL, NULL);
}
