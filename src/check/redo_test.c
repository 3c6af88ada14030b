/* SPDX-License-Identifier: Apache-2.0 */
/* check/redo_test.c - the journal's verdict, and redo in memory. */
#include "check/expect_test.h"

/* ---- phase 2 ---- */

/* Flips a byte in the frame of record lsn. */
static void flip_record(struct mini *m, uint64_t lsn)
{
	const struct lac__jscan_options options = {.uuid = m->super.uuid,
		.from_lsn = 1,
		.from_seq = 1,
		.record_bytes_max = LAC__RECORD_BYTES_MAX};
	struct lac__jrecord record;
	char path[LAC__NAME_BYTES];
	struct lac__jscan *scan;

	assert_int_equal(lac__jscan_open(m->be, "journal", &options, &scan, NULL), 0);
	do
		assert_int_equal(lac__jscan_next(scan, &record, NULL), 0);
	while (record.lsn < lsn);
	snprintf(path, sizeof(path), "journal/%016" PRIx64 ".seg", record.seq);
	mini_flip(m->be, path, record.offset + 70);
	lac__jscan_close(scan);
}

static void journal_torn(void **state)
{
	struct mini *m = *state;
	struct lac__op op = mini_delete(&blocks[5]);
	struct seen s = {0};

	mini_commit(m, &op, 1);
	flip_record(m, m->lsn);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_TORN);
	assert_int_equal(s.result.head_lsn, m->lsn - 1);
	assert_int_equal(s.result.blocks, 6);
}

static void journal_corrupt(void **state)
{
	struct mini *m = *state;
	struct lac__op op = mini_delete(&blocks[5]);
	struct seen s = {0};

	mini_commit(m, &op, 1);
	op = mini_delete(&blocks[4]);
	mini_commit(m, &op, 1);
	op = mini_delete(&blocks[3]);
	mini_commit(m, &op, 1);
	flip_record(m, m->lsn - 2);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_CORRUPT);
	assert_int_equal(s.result.fatals, 1);
	assert_int_equal(s.result.blocks, 6);
}

static void journal_missing(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	assert_int_equal(m->be->ops->rename(m->be, "journal", "quarantine"), 0);
	expect(m, &s, 1, LAC_FINDING_FILE_MISSING);
	assert_int_equal(m->be->ops->rename(m->be, "quarantine", "journal"), 0);
}

static void record_bad(void **state)
{
	struct mini *m = *state;
	uint64_t lsn = 0;
	struct seen s = {0};

	assert_int_equal(lac__journal_append(m->journal, "not a record", 12, 0, &lsn, NULL), 0);
	assert_int_equal(lac__journal_wait(m->journal, lsn, NULL), 0);
	expect(m, &s, 1, LAC_FINDING_RECORD_BAD);
	assert_int_equal(s.result.blocks, 6);
}

/* A checkpoint may have written pages that know more than its redo LSN promises. */
static void redo_passes_over_what_is_there(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	m->super.redo_lsn = 1;
	m->super.journal_seq = 1;
	mini_write_super(m);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_REDO);
	assert_int_equal(s.result.blocks, 6);
}

static void journal_short(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	m->super.max_page_lsn += 3;
	mini_write_super(m);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_CORRUPT);
}

/* A record that decodes and contradicts the page. */
static void record_contradicts(void **state)
{
	struct mini *m = *state;
	struct lac__op op = mini_delete(&blocks[5]);
	struct lac__page *index = index_page(m, 0);
	struct lac__entry entry = {.state = LAC__ENTRY_DEAD};
	struct seen s = {0};

	mini_commit(m, &op, 1);
	index->lsn--; /* as it was before, but for the entry */
	index->checkpoint = m->super.checkpoint;
	lac__entry_put(index, 6, &entry);
	mini_rewrite(m, index);
	expect(m, &s, 3, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_RECORD_BAD, LAC_FINDING_SPACE_WAITS);
}

static void page_stale(void **state)
{
	struct mini *m = *state;
	struct lac__page *map = map_page(m, 2);
	struct lac__op op = mini_delete(&blocks[5]);
	struct lac__page old = *map;
	struct seen s = {0};

	mini_commit(m, &op, 1);
	old.lsn--; /* as if the last write had been lost */
	mini_write_slot(m, &old, base_of(m, map), m->super.checkpoint);
	expect(m, &s, 2, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_PAGE_STALE);
	assert_string_equal(s.path[1], "space/00000002.map");
}

/* Dropped containers: their files may be gone, and what redo would do to their maps is moot. */
static void dropped(void **state)
{
	struct lac__op op = {.type = LAC__OP_CONTAINER,
		.container = 2,
		.kind = LAC__CONTAINER_ALIGNED,
		.state = LAC__CONTAINER_DROPPING};
	struct lac__op deletes[3] = {
		mini_delete(&blocks[3]), mini_delete(&blocks[4]), mini_delete(&blocks[5])};
	struct mini *m = *state;
	struct seen s = {0};

	mini_commit(m, deletes, 3);
	mini_commit(m, &op, 1);
	expect(m, &s, 3, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_FILE_EXTRA, LAC_FINDING_FILE_EXTRA);
	assert_int_equal(m->be->ops->unlink(m->be, "space/00000002.map"), 0);
	assert_int_equal(m->be->ops->unlink(m->be, "data/00000002.lac"), 0);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_REDO);
	op.state = LAC__CONTAINER_GONE;
	mini_commit(m, &op, 1);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_REDO);
	mini_checkpoint(m, false);
	assert_int_equal(m->be->ops->unlink(m->be, "space/00000002.map"), 0);
	expect(m, &s, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(journal_torn),
		T(journal_corrupt),
		T(journal_missing),
		T(journal_short),
		T(redo_passes_over_what_is_there),
		T(record_bad),
		T(record_contradicts),
		T(page_stale),
		T(dropped),
	};

	return cmocka_run_group_tests_name("redo", tests, NULL, NULL);
}
