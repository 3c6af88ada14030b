/* SPDX-License-Identifier: Apache-2.0 */
/* check/granules_test.c - space maps and the container table. */
#include "check/expect_test.h"

/* ---- phase 5 ---- */

static void map_wrong(void **state)
{
	static const uint8_t wrong[] = {LAC__GRANULE_HOLE, 2, LAC__GRANULE_DEAD,
		LAC__GRANULE_RESERVED, LAC__GRANULE_HEADER, 255};
	struct mini *m = *state;
	struct lac__page *map = map_page(m, 2);
	struct seen s = {0};

	for (size_t i = 0; i < sizeof(wrong); i++) {
		map->body[20] = wrong[i];
		mini_rewrite(m, map);
		check(m, &s);
		assert_int_equal(s.ids[0], LAC_FINDING_MAP_WRONG);
		assert_string_equal(s.path[0], "space/00000002.map");
		assert_non_null(strstr(s.text[0], "granule 20:"));
		assert_int_equal(s.count, 1 + 2 * (wrong[i] == LAC__GRANULE_DEAD));
	}
	map->body[20] = 1;
	map->body[0] = LAC__GRANULE_HOLE;
	mini_rewrite(m, map);
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
	map->body[0] = LAC__GRANULE_HEADER;
	map->body[90] = 1; /* beyond the tail */
	mini_rewrite(m, map);
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
	map->body[90] = LAC__GRANULE_RESERVED;
	mini_rewrite(m, map);
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
	map->body[90] = LAC__GRANULE_HOLE;
	map->body[1] = 2; /* three descriptions */
	mini_rewrite(m, map);
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
}

static void map_zero(void **state)
{
	static const uint8_t zeros[LAC__PAGE_BYTES];
	struct mini *m = *state;
	struct lac__page *map = map_page(m, 1);
	char path[LAC__NAME_BYTES];
	uint64_t offset;
	struct seen s = {0};

	for (unsigned slot = 0; slot < 2; slot++) {
		page_place(map, slot, path, &offset);
		mini_write(m->be, path, offset, zeros, sizeof(zeros));
	}
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
}

/* A block that reaches over the end of a map page. */
static void map_of_long_block(void **state)
{
	struct mini *m = *state;
	const uint64_t granule = LAC__MAP_GRANULES - 2;
	struct lac__page *second;
	struct lac__op op;
	struct seen s = {0};

	op = mini_block(m, 9, 2, granule * 4096, 5 * 4096, 1);
	mini_commit(m, &op, 1);
	mini_checkpoint(m, true);
	expect(m, &s, 0);
	second = mini_get(m, LAC__PAGE_MAP, 2, 1);
	assert_int_equal(second->body[2], 1);
	second->body[2] = 0;
	mini_rewrite(m, second);
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
	second->body[2] = 1;
	second->body[3] = 1;
	mini_rewrite(m, second);
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
}

static void reserved_is_legal(void **state)
{
	struct mini *m = *state;
	struct lac__op op = {.type = LAC__OP_RESERVE, .container = 2, .first = 81, .count = 3};
	struct seen s = {0};

	mini_commit(m, &op, 1);
	mini_checkpoint(m, false);
	expect(m, &s, 0);
	op.type = LAC__OP_RELEASE;
	mini_commit(m, &op, 1);
	mini_checkpoint(m, false);
	expect(m, &s, 1, LAC_FINDING_SPACE_WAITS);
	op.type = LAC__OP_HOLE;
	mini_commit(m, &op, 1);
	mini_checkpoint(m, false);
	expect(m, &s, 0);
}

static void table_wrong(void **state)
{
	struct mini *m = *state;
	struct lac__page *table = table_page(m);
	struct lac__table_entry was, entry;
	struct seen s = {0};

	assert_int_equal(lac__table_get(table, 2, &was, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		entry = was;
		entry.live_blocks += i == 0;
		entry.live_bytes -= i == 1;
		entry.dead_granules += i == 2;
		lac__table_put(table, 2, &entry);
		if (i == 3)
			table->body[2 * 64 + 4] = 1; /* reserved */
		mini_rewrite(m, table);
		expect(m, &s, 1, LAC_FINDING_TABLE_WRONG);
		assert_string_equal(s.path[0], "space/table");
	}
}

static void table_beyond_the_last_container(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	m->super.next_container = 2;
	mini_write_super(m);
	expect(m, &s, 1, LAC_FINDING_TABLE_WRONG);
}

/* A page write that was lost, and left the older slot as the base, shows as a contradiction. */
static void lost_write(void **state)
{
	struct mini *m = *state;
	struct lac__page *pages[] = {index_page(m, 0), map_page(m, 1), table_page(m)};

	for (size_t i = 0; i < 3; i++) {
		uint8_t now[LAC__PAGE_BYTES], zeros[LAC__PAGE_BYTES] = {0};
		char path[LAC__NAME_BYTES];
		uint64_t offset;
		struct seen s = {0};

		page_place(pages[i], base_of(m, pages[i]), path, &offset);
		mini_read(m->be, path, offset, now, sizeof(now));
		mini_write(m->be, path, offset, zeros, sizeof(zeros));
		check(m, &s);
		assert_true(s.result.damages > 0);
		mini_write(m->be, path, offset, now, sizeof(now));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(map_wrong),
		T(map_zero),
		T(map_of_long_block),
		T(reserved_is_legal),
		T(table_wrong),
		T(table_beyond_the_last_container),
		T(lost_write),
	};

	return cmocka_run_group_tests_name("granules", tests, NULL, NULL);
}
