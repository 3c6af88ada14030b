/* SPDX-License-Identifier: Apache-2.0 */
/* format/super_test.c - the superblock: nothing out of bounds and no flipped byte passes. */
#include "format/super.h"

#include "format/format_test.h"

static const struct lac__super good = {
	.uuid = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
	.compat = 0x8000000000000001,
	.granule_bytes = 4096,
	.copy = 1,
	.flags = LAC__SUPER_CLEAN,
	.checkpoint = 0x0102030405060708,
	.redo_lsn = 1001,
	.max_page_lsn = 999,
	.end_lsn = 1000,
	.next_id = 500,
	.id_high_water = 1024,
	.next_container = 7,
	.inline_max_bytes = 65536,
	.container_bytes = UINT64_C(1) << 30,
	.segment_bytes = 16 << 20,
	.journal_seq = 3,
	.created_ns = 0x1122334455667788,
	.filesystem_type = 0x58465342,
	.filesystem_id = 0xabcdef,
	.reclaim_unit_bytes = 4096,
	.place_flags = 0x5,
};

static uint8_t page[LAC__PAGE_BYTES];

static int decode1(const void *bytes, struct lac_error *err)
{
	struct lac__super out;

	return lac__super_decode(bytes, 1, &out, err);
}

static void test_round_trip(void **state)
{
	struct lac__super out;

	(void)state;
	memset(page, 0xee, sizeof(page));
	lac__super_encode(&good, page);
	memset(&out, 0xcc, sizeof(out));
	assert_int_equal(lac__super_decode(page, 1, &out, NULL), 0);
	/* Field by field, as a struct may have padding. */
#define SAME(field) assert_true(out.field == good.field)
	assert_memory_equal(&out.uuid, &good.uuid, sizeof(out.uuid));
	SAME(incompat), SAME(ro_compat), SAME(compat), SAME(granule_bytes), SAME(copy);
	SAME(flags), SAME(checkpoint), SAME(redo_lsn), SAME(max_page_lsn), SAME(end_lsn);
	SAME(next_id), SAME(id_high_water), SAME(next_container), SAME(inline_max_bytes);
	SAME(container_bytes), SAME(segment_bytes), SAME(journal_seq), SAME(created_ns);
	SAME(filesystem_type), SAME(filesystem_id), SAME(reclaim_unit_bytes), SAME(place_flags);
#undef SAME
}

/* The bytes of the specification, not just what encode and decode agree on. */
static void test_layout(void **state)
{
	(void)state;
	lac__super_encode(&good, page);
	assert_memory_equal(page, "LACSUPER", 8);
	assert_memory_equal(page + 12, "\1\0\0\0\1\2\3\4", 8);
	assert_memory_equal(page + 64, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
	assert_memory_equal(page + 104, "\7\0\0\0\1\0\0\0\xe8\3\0\0\0\0\0\0", 16);
	assert_memory_equal(page + 176, "\0\x10\0\0\5\0\0\0", 8);
	assert_true(lac__disk_is_zero(page + 184, sizeof(page) - 184));
}

static void test_every_byte(void **state)
{
	(void)state;
	lac__super_encode(&good, page);
	check_every_byte(page, sizeof(page), decode1);
}

/* A field patched to value, checksum made right again: must fail as want and name bytes. */
static void refuse(size_t at, unsigned bytes, uint64_t value, int want, int reason)
{
	struct lac_error err;
	int rc;

	lac__super_encode(&good, page);
	if (bytes == 4)
		store32(page, at, (uint32_t)value);
	else
		store64(page, at, value);
	reseal(page, 8);
	rc = decode1(page, &err);
	if (rc != want || err.code != want || err.reason != reason)
		fail_msg("field at %zu: %d, reason %d, %s", at, rc, err.reason, err.message);
	assert_int_equal(err.offset, LAC__SLOT_STRIDE_BYTES);
	assert_int_equal(err.length, LAC__PAGE_BYTES);
	assert_memory_equal(err.message, "copy 1: ", 8);
}

static void refuse_field(size_t at, unsigned bytes, uint64_t value)
{
	refuse(at, bytes, value, -EUCLEAN, LAC_REASON_BAD_FIELD);
}

static void test_bounds(void **state)
{
	(void)state;
	refuse(12, 4, 2, -EOPNOTSUPP, LAC_REASON_FORMAT_UNKNOWN);
	refuse(32, 8, 4, -EOPNOTSUPP, LAC_REASON_FORMAT_UNKNOWN);
	refuse(60, 4, 0, -EUCLEAN, LAC_REASON_BAD_IDENTITY);
	refuse_field(56, 4, 0);
	refuse_field(56, 4, 2048);
	refuse_field(56, 4, 12288);
	refuse_field(56, 4, 131072);
	refuse_field(64, 8, 0);
	refuse_field(64, 8, UINT64_MAX);
	refuse_field(72, 8, 0);
	refuse_field(72, 8, UINT64_MAX);
	refuse_field(72, 8, 1002); /* clean at 1000 */
	refuse_field(80, 8, 1001);
	refuse_field(88, 8, 0);
	refuse_field(88, 8, 1025);
	refuse_field(96, 8, UINT64_MAX);
	refuse_field(104, 4, 0);
	refuse_field(108, 4, 0); /* not clean, yet an end */
	refuse_field(108, 4, 3);
	refuse_field(112, 8, 998);
	refuse_field(112, 8, UINT64_MAX);
	refuse_field(120, 8, 4096);
	refuse_field(120, 8, LAC__OFFSET_MAX_BYTES + 1);
	refuse_field(128, 4, UINT32_MAX);
	refuse_field(132, 4, 1);
	refuse_field(136, 8, 4096);
	refuse_field(136, 8, 65536 + 512);
	refuse_field(136, 8, UINT64_MAX - 4095);
	refuse_field(144, 8, 0);
	refuse_field(144, 8, UINT64_MAX);
	refuse_field(184, 4, 1);
	refuse_field(4092, 4, 1);
}

static void test_unknown(void **state)
{
	struct lac__super in = good, out = {0};
	struct lac_error err;

	(void)state;
	/* Read-only features are the store's decision. */
	in.ro_compat = 4;
	lac__super_encode(&in, page);
	assert_int_equal(lac__super_decode(page, 1, &out, &err), 0);
	assert_int_equal(out.ro_compat, 4);
	/* Incompatible ones are reported with the fields filled. */
	in.incompat = 2;
	lac__super_encode(&in, page);
	memset(&out, 0, sizeof(out));
	assert_int_equal(lac__super_decode(page, 1, &out, &err), -EOPNOTSUPP);
	assert_int_equal(out.incompat, 2);
	assert_string_equal(err.message, "copy 1: unknown features 2");
	/* A flipped bit in the version is damage, not a newer format. */
	page[12] ^= 2;
	assert_int_equal(lac__super_decode(page, 1, &out, &err), -EBADMSG);
	memset(page, 0, sizeof(page));
	assert_int_equal(lac__super_decode(page, 1, &out, &err), -EBADMSG);
	assert_int_equal(err.reason, LAC_REASON_BAD_MAGIC);
}

static void test_not_clean(void **state)
{
	struct lac__super in = good, out;

	(void)state;
	in.flags = 0;
	in.end_lsn = 0;
	in.max_page_lsn = 5000;
	lac__super_encode(&in, page);
	assert_int_equal(lac__super_decode(page, 1, &out, NULL), 0);
	in.max_page_lsn = UINT64_MAX;
	lac__super_encode(&in, page);
	assert_int_equal(lac__super_decode(page, 1, &out, NULL), -EUCLEAN);
	/* A store that was just made: clean, and no record yet. */
	in.flags = LAC__SUPER_CLEAN;
	in.redo_lsn = 1;
	in.max_page_lsn = 0;
	in.next_id = in.id_high_water = 1;
	lac__super_encode(&in, page);
	assert_int_equal(lac__super_decode(page, 1, &out, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_not_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
