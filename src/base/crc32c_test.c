/* SPDX-License-Identifier: Apache-2.0 */
/* base/crc32c_test.c - both variants against RFC 3720 and against the definition, bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"

#define LENGTH_MAX 4096
#define ALIGN_MAX  64

static uint32_t step(uint32_t crc, uint8_t byte)
{
	crc ^= byte;
	for (int bit = 0; bit < 8; bit++)
		crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	return crc;
}

static void check(const void *data, size_t length, uint32_t want)
{
	assert_int_equal(lac__crc32c(0, data, length), want);
	assert_int_equal(lac__crc32c_table(0, data, length), want);
}

/* RFC 3720, B.4, and the check value of the CRC catalogues. */
static void test_vectors(void **state)
{
	static const uint8_t scsi_read[48] = {0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0x14, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0,
		0, 0x02, 0, 0, 0, 0, 0, 0, 0};
	uint8_t bytes[32];

	(void)state;
	check("", 0, 0);
	check("123456789", 9, 0xe3069283);
	memset(bytes, 0, sizeof(bytes));
	check(bytes, sizeof(bytes), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	check(bytes, sizeof(bytes), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)i;
	check(bytes, sizeof(bytes), 0x46dd794e);
	for (int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)(31 - i);
	check(bytes, sizeof(bytes), 0x113fdb5c);
	check(scsi_read, sizeof(scsi_read), 0xd9963a56);
}

/* Every length up to a page, at every alignment up to a cache line. */
static void test_lengths_alignments(void **state)
{
	static uint8_t bytes[LENGTH_MAX],
		shifted[LENGTH_MAX + ALIGN_MAX] __attribute__((aligned(64)));
	static uint32_t want[LENGTH_MAX + 1];
	uint32_t crc = ~UINT32_C(0), lcg = 1;

	(void)state;
	for (int i = 0; i < LENGTH_MAX; i++) {
		lcg = lcg * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(lcg >> 24);
		want[i] = ~crc;
		crc = step(crc, bytes[i]);
	}
	want[LENGTH_MAX] = ~crc;
	for (int align = 0; align < ALIGN_MAX; align++) {
		memcpy(shifted + align, bytes, LENGTH_MAX);
		for (size_t n = 0; n <= LENGTH_MAX; n++) {
			uint32_t fast = lac__crc32c(0, shifted + align, n);
			uint32_t table = lac__crc32c_table(0, shifted + align, n);

			if (fast != want[n] || table != want[n])
				fail_msg("length %zu at %d: %08x and %08x, want %08x", n, align,
					fast, table, want[n]);
		}
	}
}

static void test_chain(void **state)
{
	const char *text = "a call may start where another one ended";
	size_t length = strlen(text);
	uint32_t whole = lac__crc32c(0, text, length), head;

	(void)state;
	for (size_t cut = 0; cut <= length; cut++) {
		head = lac__crc32c(0, text, cut);
		assert_int_equal(lac__crc32c(head, text + cut, length - cut), whole);
		head = lac__crc32c_table(0, text, cut);
		assert_int_equal(lac__crc32c_table(head, text + cut, length - cut), whole);
	}
	assert_int_equal(lac__crc32c(whole, NULL, 0), whole);
}

static void test_name(void **state)
{
	(void)state;
#ifdef LAC_HAVE_ISAL
	assert_string_equal(lac__crc32c_name(), "isa-l");
#else
	assert_string_equal(lac__crc32c_name(), "table");
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_lengths_alignments),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
