/* SPDX-License-Identifier: Apache-2.0 */
/* check/slots_test.c - slots and pages that are bad, stale, zero or retired. */
#include "check/expect_test.h"

/* ---- pages ---- */

static void page_lost(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	flip_base(m, index_page(m, 1));
	expect(m, &s, 1, LAC_FINDING_PAGE_LOST);
	assert_string_equal(s.path[0], "index/00000000.idx");
	flip_base(m, index_page(m, 1));
	expect(m, &s, 0);
}

static void page_lost_of_each_kind(void **state)
{
	struct mini *m = *state;
	struct lac__page *pages[] = {index_page(m, 0), map_page(m, 1), table_page(m)};
	struct seen s = {0};

	for (size_t i = 0; i < 3; i++) {
		char path[LAC__NAME_BYTES];
		uint64_t offset;

		page_place(pages[i], 1 - base_of(m, pages[i]), path, &offset);
		mini_flip(m->be, path, offset + 100);
		flip_base(m, pages[i]);
		expect(m, &s, 1, LAC_FINDING_PAGE_LOST);
		mini_flip(m->be, path, offset + 100);
		flip_base(m, pages[i]);
	}
	expect(m, &s, 0);
}

static void page_slot_bad(void **state)
{
	struct mini *m = *state;
	struct lac__page *index = index_page(m, 0);
	struct lac__op op = mini_delete(&blocks[5]);
	char path[LAC__NAME_BYTES];
	uint64_t offset;
	struct seen s = {0};

	page_place(index, 1 - base_of(m, index), path, &offset);
	mini_flip(m->be, path, offset + 100);
	expect(m, &s, 1, LAC_FINDING_PAGE_ROTTEN);
	assert_int_equal(s.offset[0], offset);
	/* With a record for the page a checkpoint may have been writing it. */
	mini_commit(m, &op, 1);
	expect(m, &s, 3, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_PAGE_SLOT_BAD,
		LAC_FINDING_SPACE_WAITS);
	assert_int_equal(s.offset[1], offset);
	assert_int_equal(s.result.damages, 0);
}

/* A slot that a later, unfinished checkpoint wrote is not looked at; one of which it wrote a part
   only, for a page that no checkpoint wrote before, is made again by the journal. */
static void unfinished_checkpoint(void **state)
{
	struct mini *m = *state;
	struct lac__super own = m->super;
	struct lac__op op = mini_delete(&blocks[5]);
	struct seen s = {0};

	mini_commit(m, &op, 1);
	mini_high_water(m, 301, 300);
	mini_checkpoint(m, false);
	m->super = own;
	m->super.copy = 1 - own.copy;
	mini_write_super(m);
	m->super.copy = own.copy;
	mini_write_super(m);
	expect(m, &s, 2, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_SPACE_WAITS);
	flip_base(m, index_page(m, 4));
	expect(m, &s, 3, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_PAGE_SLOT_BAD,
		LAC_FINDING_SPACE_WAITS);
	assert_int_equal(s.result.damages, 0);
}

static void page_zero(void **state)
{
	static const uint8_t zeros[LAC__PAGE_BYTES];
	struct mini *m = *state;
	struct lac__op op = {.type = LAC__OP_RETIRE, .first = 1};
	char path[LAC__NAME_BYTES];
	uint64_t offset;
	struct seen s = {0};

	page_place(index_page(m, 1), 0, path, &offset);
	mini_write(m->be, path, offset, zeros, sizeof(zeros));
	expect(m, &s, 1, LAC_FINDING_PAGE_ZERO);
	assert_int_equal(s.offset[0], offset);
	mini_commit(m, &op, 1);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_REDO);
	mini_checkpoint(m, false);
	expect(m, &s, 0);
	/* A mark that no file could reach costs no time, and gives one finding a gap. */
	m->super.id_high_water = UINT64_C(1) << 53;
	mini_write_super(m);
	expect(m, &s, 1, LAC_FINDING_PAGE_ZERO);
	assert_int_equal(s.offset[0], lac__page_slot_offset(3, 0));
}

static void retired_page_may_hold_anything(void **state)
{
	struct mini *m = *state;
	struct lac__op op = {.type = LAC__OP_RETIRE, .first = 2};
	struct lac__page *index = index_page(m, 2);
	struct lac__entry entry = {
		.state = LAC__ENTRY_LIVE, .container = 99, .offset = 8192, .length = 1};
	struct seen s = {0};

	lac__entry_put(index, 5, &entry);
	mini_rewrite(m, index);
	expect(m, &s, 1, LAC_FINDING_ENTRY_CONTAINER);
	mini_commit(m, &op, 1);
	mini_checkpoint(m, false);
	expect(m, &s, 0);
}

/* The same where redo has touched the page, and where a slot has rotted. */
static void retired_in_redo(void **state)
{
	struct mini *m = *state;
	struct lac__op op = {.type = LAC__OP_RETIRE, .first = 2};
	struct lac__page *index = index_page(m, 2);
	struct lac__entry entry = {
		.state = LAC__ENTRY_LIVE, .container = 99, .offset = 8192, .length = 1};
	struct lac__op put = mini_block(m, 300, 1, 5504, 10, 0), gone = mini_delete(&put);
	struct seen s = {0};

	lac__entry_put(index, 5, &entry);
	mini_rewrite(m, index);
	mini_commit(m, &put, 1);
	mini_commit(m, &gone, 1);
	mini_commit(m, &op, 1);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_REDO);
	mini_checkpoint(m, false);
	flip_base(m, index);
	expect(m, &s, 0);
}

/* ---- phase 7 ---- */

static void lsn_ahead(void **state)
{
	struct mini *m = *state;
	struct lac__page *index = index_page(m, 1);
	struct seen s = {0};

	index->lsn = m->lsn + 5;
	mini_rewrite(m, index);
	expect(m, &s, 1, LAC_FINDING_LSN_AHEAD);
	assert_int_equal(s.result.max_lsn, m->lsn + 5);
	assert_int_equal(s.result.head_lsn, m->lsn);
	/* The same number in a slot that does not verify counts for nothing. */
	flip_base(m, index);
	expect(m, &s, 1, LAC_FINDING_PAGE_LOST);
	assert_int_equal(s.result.max_lsn, m->lsn);
}

static void stopped(void **state)
{
	struct mini *m = *state;
	struct seen s = {.stop_at = 1};

	flip_base(m, index_page(m, 1));
	assert_int_equal(check(m, &s), -ECANCELED);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.err.reason, LAC_REASON_INTERRUPTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(page_lost),
		T(page_lost_of_each_kind),
		T(page_slot_bad),
		T(unfinished_checkpoint),
		T(page_zero),
		T(retired_page_may_hold_anything),
		T(retired_in_redo),
		T(lsn_ahead),
		T(stopped),
	};

	return cmocka_run_group_tests_name("slots", tests, NULL, NULL);
}
