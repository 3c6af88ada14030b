/* SPDX-License-Identifier: Apache-2.0 */
/* format/page_test.c - slots, the choice of the base slot (rule 4.5), and entries. */
#include "format/page.h"

#include "format/container.h"
#include "format/format_test.h"

static const struct lac__page_ref ref = {LAC__PAGE_MAP, 9, 3};
static struct lac__page page, out;
static uint8_t bytes[LAC__PAGE_BYTES];

static void fill(uint64_t lsn)
{
	memset(&page, 0, sizeof(page));
	page.ref = ref;
	page.lsn = lsn;
	for (unsigned i = 0; i < sizeof(page.body); i++)
		page.body[i] = (uint8_t)(i * 7);
}

static int decode(const void *at, struct lac_error *err)
{
	return lac__page_decode(at, &ref, &test_uuid, &out, err);
}

static void test_places(void **state)
{
	(void)state;
	assert_int_equal(lac__page_slot_offset(0, 0), 0);
	assert_int_equal(lac__page_slot_offset(0, 1), 65536);
	assert_int_equal(lac__page_slot_offset(1, 0), 4096);
	assert_int_equal(lac__page_slot_offset(15, 1), 65536 + 15 * 4096);
	assert_int_equal(lac__page_slot_offset(16, 0), 131072);
	assert_int_equal(lac__page_slot_offset(65535, 1), 4095 * 131072ull + 65536 + 15 * 4096);
	assert_int_equal(lac__page_file_bytes(0), 0);
	assert_int_equal(lac__page_file_bytes(1), 131072);
	assert_int_equal(lac__page_file_bytes(16), 131072);
	assert_int_equal(lac__page_file_bytes(17), 262144);
	/* No two slots overlap, and the last one ends the file. */
	for (unsigned p = 0; p < 64; p++)
		for (unsigned q = 0; q < 64; q++)
			assert_true(lac__page_slot_offset(p, 0) != lac__page_slot_offset(q, 1) &&
				    (p == q || lac__page_slot_offset(p, 1) !=
						       lac__page_slot_offset(q, 1)));
	assert_int_equal(lac__page_slot_offset(15, 1) + 4096, lac__page_file_bytes(16));
}

static void test_round_trip(void **state)
{
	(void)state;
	fill(1234);
	memset(bytes, 0xee, sizeof(bytes));
	lac__page_encode(&page, &test_uuid, 56, bytes);
	assert_int_equal(decode(bytes, NULL), 0);
	assert_int_equal(out.lsn, 1234);
	assert_int_equal(out.checkpoint, 56);
	assert_memory_equal(&out.ref.kind, &ref.kind, sizeof(ref.kind));
	assert_int_equal(out.ref.container, 9);
	assert_int_equal(out.ref.no, 3);
	assert_memory_equal(out.body, page.body, sizeof(page.body));
	assert_memory_equal(bytes, "LACP", 4);
	assert_memory_equal(bytes + 8, "\2\0\1\0\x09\0\0\0\3\0\0\0\0\0\0\0", 16);
	assert_memory_equal(bytes + 40, "\xd2\4\0\0\0\0\0\0\x38\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(decode(bytes, NULL), 1);
}

static void test_every_byte(void **state)
{
	(void)state;
	fill(1234);
	lac__page_encode(&page, &test_uuid, 56, bytes);
	check_every_byte(bytes, sizeof(bytes), decode);
}

static void refuse(size_t at, uint64_t value, int want, int reason)
{
	struct lac_error err;

	fill(1234);
	lac__page_encode(&page, &test_uuid, 56, bytes);
	store64(bytes, at, value);
	reseal(bytes, 4);
	assert_int_equal(decode(bytes, &err), want);
	assert_int_equal(err.reason, reason);
}

static void test_identity(void **state)
{
	(void)state;
	refuse(8, UINT64_C(0x900010001), -EUCLEAN, LAC_REASON_BAD_IDENTITY);
	refuse(8, UINT64_C(0xa00010002), -EUCLEAN, LAC_REASON_BAD_IDENTITY);
	refuse(8, UINT64_C(0x900020002), -EOPNOTSUPP, LAC_REASON_FORMAT_UNKNOWN);
	refuse(16, 4, -EUCLEAN, LAC_REASON_BAD_IDENTITY);
	refuse(24, 4, -EUCLEAN, LAC_REASON_BAD_IDENTITY);
	refuse(40, 0, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(40, UINT64_MAX, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(48, 0, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(48, UINT64_MAX, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(56, 1, -EUCLEAN, LAC_REASON_BAD_FIELD);
}

enum { ZERO, BAD, OLD, BASE, NEXT }; /* what a slot holds: checkpoints 8, 9 and 10; super at 9 */

static void slot_make(int what, uint8_t *at)
{
	fill(what == OLD ? 800 : what == BASE ? 900 : 1000);
	lac__page_encode(&page, &test_uuid, what == OLD ? 8 : what == BASE ? 9 : 10, at);
	if (what == ZERO)
		memset(at, 0, LAC__PAGE_BYTES);
	if (what == BAD)
		at[4000] ^= 1;
}

/* Rule 4.5 as a table: any two slots. */
static void test_choose(void **state)
{
	static const struct {
		int slot[2], base, write, lost;
	} want[] = {
		{{ZERO, ZERO}, -1, 0, 0},
		{{ZERO, BAD}, -1, 0, 1},
		{{BAD, ZERO}, -1, 0, 1},
		{{BAD, BAD}, -1, 0, 1},
		{{ZERO, NEXT}, -1, 0, 0},
		{{NEXT, ZERO}, -1, 0, 0},
		{{NEXT, NEXT}, -1, 0, 0},
		{{BAD, NEXT}, -1, 0, 1},
		{{NEXT, BAD}, -1, 0, 1},
		{{OLD, ZERO}, 0, 1, 0},
		{{ZERO, OLD}, 1, 0, 0},
		{{OLD, BAD}, 0, 1, 0},
		{{BAD, OLD}, 1, 0, 0},
		{{OLD, BASE}, 1, 0, 0},
		{{BASE, OLD}, 0, 1, 0},
		{{BASE, NEXT}, 0, 1, 0},
		{{NEXT, BASE}, 1, 0, 0},
		{{BASE, BAD}, 0, 1, 0},
		{{BAD, BASE}, 1, 0, 0},
		{{BASE, ZERO}, 0, 1, 0},
		{{ZERO, BASE}, 1, 0, 0},
		{{OLD, NEXT}, 0, 1, 0},
	};
	static uint8_t slot[2][LAC__PAGE_BYTES];
	struct lac__slot_choice c;

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		slot_make(want[i].slot[0], slot[0]);
		slot_make(want[i].slot[1], slot[1]);
		memset(&c, 0xcc, sizeof(c));
		memset(&out, 0xcc, sizeof(out));
		lac__page_choose(slot[0], slot[1], &ref, &test_uuid, 9, &out, &c);
		if (c.base != want[i].base || c.write != want[i].write || c.lost != want[i].lost)
			fail_msg(
				"case %zu: base %d, write %d, lost %d", i, c.base, c.write, c.lost);
		assert_int_equal(out.ref.container, 9);
		if (c.base < 0) {
			assert_int_equal(out.lsn, 0);
			assert_int_equal(out.checkpoint, 0);
			assert_true(lac__disk_is_zero(out.body, sizeof(out.body)));
			continue;
		}
		assert_int_equal(out.lsn, want[i].slot[c.base] == OLD ? 800 : 900);
		assert_int_equal(out.checkpoint, want[i].slot[c.base] == OLD ? 8 : 9);
		assert_memory_equal(out.body, page.body, sizeof(page.body));
	}
}

static void test_choose_report(void **state)
{
	static uint8_t slot[2][LAC__PAGE_BYTES];
	struct lac__page_ref elsewhere = {LAC__PAGE_MAP, 9, 4};
	struct lac__slot_choice c;

	(void)state;
	slot_make(BASE, slot[0]);
	slot_make(NEXT, slot[1]);
	lac__page_choose(slot[0], slot[1], &ref, &test_uuid, 9, &out, &c);
	assert_int_equal(c.state[0], LAC__SLOT_OK);
	assert_int_equal(c.checkpoint[1], 10);
	assert_int_equal(c.lsn[1], 1000);
	/* Valid, but another page: BAD, and its numbers count for nothing. */
	lac__page_choose(slot[0], slot[1], &elsewhere, &test_uuid, 9, &out, &c);
	assert_int_equal(c.state[0], LAC__SLOT_BAD);
	assert_int_equal(c.lsn[1], 0);
	assert_true(c.lost);
}

static void test_entry(void **state)
{
	struct lac__entry in = {LAC__ENTRY_LIVE, 0xfffffffe,
		LAC__OFFSET_MAX_BYTES - (UINT64_C(1) << 20), 1 << 19, 0x1122334455667788,
		0x99aabbcc, 65535};
	struct lac__entry got;

	(void)state;
	memset(&page, 0, sizeof(page));
	assert_int_equal(lac__entry_get(&page, 0, &got, NULL), 0);
	assert_int_equal(got.state, LAC__ENTRY_FREE);
	lac__entry_put(&page, 125, &in);
	assert_int_equal(lac__entry_get(&page, 125, &got, NULL), 0);
	assert_memory_equal(&got, &in, sizeof(in));
	assert_int_equal(lac__entry_get(&page, 124, &got, NULL), 0);
	assert_int_equal(got.state, LAC__ENTRY_FREE);
	in.state = LAC__ENTRY_DEAD;
	lac__entry_put(&page, 125, &in);
	assert_int_equal(lac__entry_get(&page, 125, &got, NULL), 0);
	assert_int_equal(got.state, LAC__ENTRY_DEAD);
	assert_int_equal(got.container + got.offset + got.length + got.owner, 0);
	assert_memory_equal(page.body + 125 * 32 + 8, "\2\0\0\0\0\0\0\0", 8);
}

static void entry_refuse(uint32_t container, uint64_t place, uint64_t packed, uint64_t owner)
{
	struct lac__entry got;
	struct lac_error err;

	memset(&page, 0, sizeof(page));
	store32(page.body, 32, container);
	store64(page.body, 40, place);
	store64(page.body, 48, packed);
	store64(page.body, 56, owner);
	assert_int_equal(lac__entry_get(&page, 1, &got, &err), -EUCLEAN);
	assert_int_equal(err.reason, LAC_REASON_BAD_FIELD);
}

static void test_entry_bounds(void **state)
{
	const uint64_t one = UINT64_C(1) << 48;

	(void)state;
	entry_refuse(0, 3, 0, 0);
	entry_refuse(0, 0, 0, 1);		     /* free, with an owner */
	entry_refuse(1, 2, 0, 0);		     /* dead, with a container */
	entry_refuse(0, 8192 | 2, 0, 0);	     /* dead, with a place */
	entry_refuse(1, 8192 | 3, 10, 0);	     /* no such state */
	entry_refuse(0, 8192 | 1, 10, 0);	     /* no container */
	entry_refuse(1, 64 | 1, 10, 0);		     /* in the header */
	entry_refuse(1, 4096 | 1, 10, 0);	     /* description in the header */
	entry_refuse(1, 8192 | 1, one | 0, 0);	     /* aligned and empty */
	entry_refuse(1, 8192 + 64 + 1, one | 10, 0); /* aligned, but is not */
	entry_refuse(1, 8192 | 1, 2 * one | 10, 0);  /* description in the header */
	entry_refuse(1, 8192 | 1, LAC__LENGTH_MAX_BYTES + 1, 0);
	entry_refuse(1, (LAC__OFFSET_MAX_BYTES - 64) | 1, 65, 0);
	entry_refuse(1, (UINT64_MAX - 63) | 1, 10, 0);
}

static void test_table(void **state)
{
	struct lac__table_entry got,
		in = {LAC__CONTAINER_SEALED, LAC__CONTAINER_PACKED, 8192, 100, 2, 3, 4, 5};
	struct lac_error err;

	(void)state;
	memset(&page, 0, sizeof(page));
	lac__table_put(&page, 62, &in);
	assert_int_equal(lac__table_get(&page, 62, &got, NULL), 0);
	assert_memory_equal(&got, &in, sizeof(in));
	assert_memory_equal(page.body + 62 * 64, "\3\2\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\x64", 17);
	assert_int_equal(lac__table_get(&page, 61, &got, NULL), 0);
	assert_int_equal(got.state, LAC__CONTAINER_NONE);
	for (unsigned at = 0; at < 64; at++) {
		uint8_t *byte = &page.body[62 * 64 + at];

		/* The top bit makes every field but live_blocks' low bytes implausible; what counts
		   here is that reserved bytes and states are looked at. */
		if (at >= 8 && at < 56 && at % 8 != 7)
			continue;
		*byte ^= 0x80;
		if (lac__table_get(&page, 62, &got, &err) != -EUCLEAN)
			fail_msg("byte %u passes", at);
		*byte ^= 0x80;
	}
	in = (struct lac__table_entry){LAC__CONTAINER_GONE, 1, 0, 0, 0, 0, 0, 5};
	lac__table_put(&page, 0, &in);
	assert_int_equal(lac__table_get(&page, 0, &got, NULL), 0);
	in.hole_granules = 1;
	lac__table_put(&page, 0, &in);
	assert_int_equal(lac__table_get(&page, 0, &got, NULL), -EUCLEAN);
	in.hole_granules = 0;
	in.birth_lsn = 0;
	lac__table_put(&page, 0, &in);
	assert_int_equal(lac__table_get(&page, 0, &got, NULL), -EUCLEAN);
	in = (struct lac__table_entry){LAC__CONTAINER_ACTIVE, 1, 4096, 1, 0, 0, 0, 5};
	lac__table_put(&page, 0, &in);
	assert_int_equal(lac__table_get(&page, 0, &got, NULL), -EUCLEAN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_choose),
		cmocka_unit_test(test_choose_report),
		cmocka_unit_test(test_entry),
		cmocka_unit_test(test_entry_bounds),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
