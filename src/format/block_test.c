/* SPDX-License-Identifier: Apache-2.0 */
/* format/block_test.c - descriptions, chunk tables, checksums of payloads, footprints. */
#include "format/block.h"

#include "base/crc32c.h"
#include "format/entry.h"
#include "format/format_test.h"
#include "format/record.h"

#define OWN UINT64_C(8192)

static struct lac__description good;
static uint8_t bytes[LAC__DESCRIPTION_BYTES];

static int setup(void **state)
{
	(void)state;
	good = (struct lac__description){test_uuid, 42, 7, 300, OWN + 64, 0xdeadbeef, 1};
	lac__description_encode(&good, 3, OWN, bytes);
	return 0;
}

static int decode(const void *at, struct lac_error *err)
{
	struct lac__description out;

	return lac__description_decode(at, 3, OWN, &test_uuid, &out, err);
}

static void test_round_trip(void **state)
{
	struct lac__description out;

	(void)state;
	assert_int_equal(lac__description_decode(bytes, 3, OWN, &test_uuid, &out, NULL), 0);
	assert_memory_equal(&out.uuid, &test_uuid, sizeof(test_uuid));
	assert_int_equal(out.id, 42);
	assert_int_equal(out.owner, 7);
	assert_int_equal(out.length, 300);
	assert_int_equal(out.offset, OWN + 64);
	assert_int_equal(out.checksum, 0xdeadbeef);
	assert_int_equal(out.generation, 1);
	assert_memory_equal(bytes, "LBLK", 4);
	assert_memory_equal(bytes + 24, "\x2a\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\x2c\1", 18);
	assert_memory_equal(bytes + 56, "\xef\xbe\xad\xde\1\0\0\0", 8);
}

static void test_every_byte(void **state)
{
	(void)state;
	check_every_byte(bytes, sizeof(bytes), decode);
}

/* A description elsewhere, or of another container or store, is not believed. */
static void test_place(void **state)
{
	struct lac__description out;
	struct lac_error err;

	(void)state;
	assert_int_equal(lac__description_decode(bytes, 4, OWN, &test_uuid, &out, &err), -EBADMSG);
	assert_int_equal(
		lac__description_decode(bytes, 3, OWN + 64, &test_uuid, &out, &err), -EBADMSG);
	assert_int_equal(lac__description_decode(bytes, 3, OWN, &other_uuid, &out, &err), -EUCLEAN);
	assert_int_equal(err.reason, LAC_REASON_BAD_IDENTITY);
	assert_int_equal(err.offset, OWN);
}

static void test_bounds(void **state)
{
	static const struct {
		uint64_t id, length, offset;
		uint32_t generation;
	} bad[] = {
		{0, 300, OWN + 64, 1},
		{UINT64_MAX, 300, OWN + 64, 1},
		{42, LAC__LENGTH_MAX_BYTES + 1, OWN + 64, 1},
		{42, UINT64_MAX, OWN + 64, 1},
		{42, 300, OWN + 65, 1},
		{42, 300, OWN, 1},
		{42, 300, 0, 1},
		{42, 300, UINT64_MAX - 63, 1},
		{42, 300, LAC__OFFSET_MAX_BYTES, 1},
		{42, 300, OWN + 64, 0},
	};
	struct lac__description d;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		d = good;
		d.id = bad[i].id;
		d.length = bad[i].length;
		d.offset = bad[i].offset;
		d.generation = bad[i].generation;
		lac__description_encode(&d, 3, OWN, bytes);
		if (decode(bytes, NULL) != -EUCLEAN)
			fail_msg("case %zu passes", i);
	}
	d = good;
	d.offset = LAC__OFFSET_MAX_BYTES - 320;
	lac__description_encode(&d, 3, OWN, bytes);
	assert_int_equal(decode(bytes, NULL), 0);
}

static void test_chunks(void **state)
{
	static const struct {
		uint64_t length, count, table, offset, stored;
	} want[] = {
		{0, 0, 0, 0, 0},
		{1, 0, 0, 64, 1},
		{65536, 0, 0, 65536, 65536},
		{65537, 2, 64, 65600, 65664},
		{131072, 2, 64, 131072, 131136},
		{16 * 65536, 16, 64, 16 * 65536, 16 * 65536 + 64},
		{16 * 65536 + 1, 17, 128, 16 * 65536 + 64, 16 * 65536 + 192},
		{LAC__LENGTH_MAX_BYTES, UINT64_C(1) << 31, UINT64_C(1) << 33, LAC__LENGTH_MAX_BYTES,
			LAC__LENGTH_MAX_BYTES + (UINT64_C(1) << 33)},
	};
	uint8_t table[64];

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_int_equal(lac__chunk_count(want[i].length), want[i].count);
		assert_int_equal(lac__chunk_table_bytes(want[i].length), want[i].table);
		assert_int_equal(lac__chunk_table_offset(want[i].length), want[i].offset);
		assert_int_equal(lac__stored_bytes(want[i].length), want[i].stored);
	}
	memset(table, 0, sizeof(table));
	lac__chunk_table_put(table, 3, 0x04030201);
	assert_memory_equal(table + 12, "\1\2\3\4\0", 5);
	assert_int_equal(lac__chunk_table_get(table, 3), 0x04030201);
	assert_int_equal(lac__chunk_table_get(table, 2), 0);
}

static void test_checksums(void **state)
{
	uint32_t seed = lac__block_seed(&test_uuid, 42), crc;
	uint8_t table[64] = {1, 2, 3};
	const char *text = "payload";

	(void)state;
	assert_int_not_equal(seed, lac__block_seed(&test_uuid, 43));
	assert_int_not_equal(seed, lac__block_seed(&other_uuid, 42));
	/* Without a table: the plain chain from the seed, in any pieces. */
	crc = lac__block_checksum(seed, 7, text, 7);
	assert_int_equal(crc, lac__crc32c(lac__crc32c(seed, text, 3), text + 3, 4));
	assert_int_equal(lac__block_checksum(seed, 0, NULL, 0), seed);
	/* With one, the length counts although the table has the same bytes. */
	assert_int_not_equal(lac__block_checksum(seed, 65537, table, 64),
		lac__block_checksum(seed, 65538, table, 64));
	crc = lac__block_checksum(seed, 65537, NULL, 0);
	assert_int_equal(lac__block_checksum(seed, 65537, table, 64), lac__crc32c(crc, table, 64));
	/* A chunk in another chunk's place fails. */
	assert_int_not_equal(
		lac__chunk_checksum(seed, 0, text, 7), lac__chunk_checksum(seed, 1, text, 7));
}

static void test_granules(void **state)
{
	static const struct {
		uint64_t offset, length;
		uint32_t distance, granule;
		uint64_t first, count, description;
	} want[] = {
		{4096 + 64, 0, 0, 4096, 1, 1, UINT64_MAX},
		{4096 + 64, 4032, 0, 4096, 1, 1, UINT64_MAX},
		{4096 + 64, 4033, 0, 4096, 1, 2, UINT64_MAX},
		/* The description alone in its granule, the payload at the start of the next. */
		{8192, 64, 0, 4096, 1, 2, UINT64_MAX},
		{8192, 0, 0, 4096, 1, 1, UINT64_MAX},
		{8192, 4096, 1, 4096, 2, 1, 1},
		{8192, 4097, 1, 4096, 2, 2, 1},
		{8192, 1, 1, 4096, 2, 1, 1},
		/* 64 KiB and a byte: a chunk table behind it. */
		{40960, 65536, 3, 4096, 10, 16, 7},
		{40960, 65537, 3, 4096, 10, 17, 7},
		{131072, 65536, 1, 65536, 2, 1, 1},
		{131072, 131072, 1, 65536, 2, 3, 1},
	};
	uint64_t first, count, description;

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		lac__block_granules(want[i].offset, want[i].length, want[i].distance,
			want[i].granule, &first, &count, &description);
		if (first != want[i].first || count != want[i].count ||
			description != want[i].description)
			fail_msg("case %zu: %llu, %llu", i, (unsigned long long)first,
				(unsigned long long)count);
	}
	assert_int_equal(lac__block_end(4160, 1, 0, 4096), 4224);
	assert_int_equal(lac__block_end(8192, 1, 1, 4096), 12288);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_round_trip, setup),
		cmocka_unit_test_setup(test_every_byte, setup),
		cmocka_unit_test_setup(test_place, setup),
		cmocka_unit_test_setup(test_bounds, setup),
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_checksums),
		cmocka_unit_test(test_granules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
