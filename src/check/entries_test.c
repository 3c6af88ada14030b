/* SPDX-License-Identifier: Apache-2.0 */
/* check/entries_test.c - containers, entries and blocks. */
#include "check/expect_test.h"

/* ---- phase 3 ---- */

static void container_header(void **state)
{
	struct mini *m = *state;
	struct lac__container_header header = {.uuid = m->super.uuid,
		.container = 1,
		.kind = LAC__CONTAINER_PACKED,
		.granule_bytes = MINI_GRANULE,
		.birth_lsn = 77};
	uint8_t page[LAC__PAGE_BYTES];
	struct seen s = {0};

	mini_flip(m->be, "data/00000001.lac", 20);
	expect(m, &s, 1, LAC_FINDING_CONTAINER_HEADER);
	lac__container_header_encode(&header, page);
	mini_write(m->be, "data/00000001.lac", 0, page, sizeof(page));
	expect(m, &s, 1, LAC_FINDING_CONTAINER_HEADER);
}

/* ---- phase 4 ---- */

static void entry_bad(void **state)
{
	struct mini *m = *state;
	struct lac__page *index = index_page(m, 0);
	struct seen s = {0};

	index->body[6 * 32 + 8] |= 0x3f; /* a state that is none */
	mini_rewrite(m, index);
	expect(m, &s, 1, LAC_FINDING_ENTRY_BAD);
}

static void entry_overlap(void **state)
{
	struct mini *m = *state;
	struct lac__entry entry = entry_of(m, 3);
	struct seen s = {0};

	entry.offset = 4224; /* its description in block 1, its payload over block 2 */
	patch_entry(m, 3, &entry);
	expect(m, &s, 4, LAC_FINDING_BLOCK_DESCRIPTION, LAC_FINDING_BLOCK_PAYLOAD,
		LAC_FINDING_ENTRY_OVERLAP, LAC_FINDING_ENTRY_OVERLAP);
	assert_int_equal(s.offset[2], 4160);
}

/* Two whole records that claim the same bytes: the counts agree, only the overlap is wrong. */
static void overlap_of_records(void **state)
{
	struct mini *m = *state;
	struct lac__op op;
	struct seen s = {0};

	op = mini_block(m, 8, 2, UINT64_C(70) * 4096, 4096, 69);
	mini_commit(m, &op, 1);
	mini_checkpoint(m, false);
	check(m, &s);
	assert_int_equal(s.ids[s.count - 1], LAC_FINDING_ENTRY_OVERLAP);
	assert_int_equal(s.ids[s.count - 2], LAC_FINDING_BLOCK_PAYLOAD);
	assert_int_equal(s.count, 2);
}

/* A block over the descriptions of others. */
static void overlap_of_description(void **state)
{
	struct mini *m = *state;
	uint8_t was[MINI_GRANULE];
	struct lac__op op;
	struct seen s = {0};

	mini_read(m->be, "data/00000002.lac", 4096, was, sizeof(was));
	op = mini_block(
		m, 8, 2, UINT64_C(90) * 4096, 4096, 10); /* description in granule 80: block 6 */
	mini_commit(m, &op, 1);
	mini_checkpoint(m, false);
	check(m, &s);
	assert_int_equal(s.ids[s.count - 1], LAC_FINDING_ENTRY_OVERLAP);
}

static void entry_container(void **state)
{
	struct mini *m = *state;
	struct lac__entry was = entry_of(m, 3), entry = was;
	struct seen s = {0};

	entry.container = 9;
	patch_entry(m, 3, &entry);
	check(m, &s);
	assert_int_equal(s.ids[0], LAC_FINDING_ENTRY_CONTAINER);
	entry.container = 2; /* of the other kind */
	patch_entry(m, 3, &entry);
	check(m, &s);
	assert_int_equal(s.ids[0], LAC_FINDING_ENTRY_CONTAINER);
	patch_entry(m, 3, &was);
	expect(m, &s, 0);
}

static void entry_beyond_tail(void **state)
{
	struct mini *m = *state;
	struct lac__entry entry = entry_of(m, 3);
	struct seen s = {0};

	entry.offset = UINT64_C(1) << 40;
	patch_entry(m, 3, &entry);
	check(m, &s);
	assert_int_equal(s.ids[0], LAC_FINDING_ENTRY_BAD);
	assert_int_equal(s.ids[1], LAC_FINDING_FILE_SHORT);
}

static void entry_id(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	m->super.id_high_water = 6;
	m->super.next_id = 6;
	mini_write_super(m);
	expect(m, &s, 1, LAC_FINDING_ENTRY_ID);
}

static void block_description(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_flip(m->be, "data/00000001.lac", 4416 - 64 + 20);
	expect(m, &s, 1, LAC_FINDING_BLOCK_DESCRIPTION);
	mini_flip(m->be, "data/00000001.lac", 4416 - 64 + 20);
	mini_flip(m->be, "data/00000002.lac", 4096 + 5 * 64 + 20);
	expect(m, &s, 1, LAC_FINDING_BLOCK_DESCRIPTION);
	assert_string_equal(s.path[0], "data/00000002.lac");
}

/* Whole, and not of the block that the index has there. */
static void block_description_contradicts(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	for (uint64_t id = 3; id <= 4; id++) { /* packed, and aligned */
		struct lac__entry entry = entry_of(m, id), was = entry;

		entry.owner++;
		patch_entry(m, id, &entry);
		expect(m, &s, 1, LAC_FINDING_BLOCK_DESCRIPTION);
		patch_entry(m, id, &was);
	}
}

static void block_payload(void **state)
{
	static const uint8_t zeros[5000];
	struct mini *m = *state;
	struct seen s = {0};

	mini_flip(m->be, "data/00000001.lac", 4416 + 999);
	expect(m, &s, 1, LAC_FINDING_BLOCK_PAYLOAD);
	assert_null(strstr(s.text[0], "zeros"));
	mini_flip(m->be, "data/00000001.lac", 4416 + 999);
	mini_write(m->be, "data/00000002.lac", 8192, zeros, sizeof(zeros));
	expect(m, &s, 1, LAC_FINDING_BLOCK_PAYLOAD);
	assert_non_null(strstr(s.text[0], "zeros"));
}

static void block_chunks(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_flip(m->be, "data/00000002.lac", 16384 + 299999);
	expect(m, &s, 1, LAC_FINDING_BLOCK_PAYLOAD);
	assert_non_null(strstr(s.text[0], "chunk 4"));
	assert_int_equal(s.offset[0], 16384 + 4 * 65536);
	mini_flip(m->be, "data/00000002.lac", 16384 + 299999);
	mini_flip(m->be, "data/00000002.lac", 16384 + 300032 + 2);
	expect(m, &s, 1, LAC_FINDING_BLOCK_PAYLOAD);
	assert_non_null(strstr(s.text[0], "table"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(container_header),
		T(entry_bad),
		T(entry_overlap),
		T(overlap_of_records),
		T(overlap_of_description),
		T(entry_container),
		T(entry_beyond_tail),
		T(entry_id),
		T(block_description),
		T(block_description_contradicts),
		T(block_payload),
		T(block_chunks),
	};

	return cmocka_run_group_tests_name("entries", tests, NULL, NULL);
}
