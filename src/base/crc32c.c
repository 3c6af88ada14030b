/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/crc32c.c - CRC32C by ISA-L, or by eight tables of 256.
 *
 * The table variant takes eight bytes a step: byte k of the eight is looked up in the table that
 * has advanced it over the 7 - k bytes behind it. Bytes are put together by shifts, so alignment
 * and the machine's byte order do not matter.
 */
#include "base/crc32c.h"

#include "base/crc32c_table.h"

#ifdef LAC_HAVE_ISAL
#include <isa-l/crc.h>
#endif

static uint32_t load32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t lac__crc32c_table(uint32_t crc, const void *data, size_t length)
{
	const uint8_t *p = data;

	crc = ~crc;
	for (; length >= 8; p += 8, length -= 8) {
		uint32_t a = crc ^ load32(p), b = load32(p + 4);

		crc = crc32c_table[7][a & 255] ^ crc32c_table[6][a >> 8 & 255] ^
		      crc32c_table[5][a >> 16 & 255] ^ crc32c_table[4][a >> 24] ^
		      crc32c_table[3][b & 255] ^ crc32c_table[2][b >> 8 & 255] ^
		      crc32c_table[1][b >> 16 & 255] ^ crc32c_table[0][b >> 24];
	}
	for (; length > 0; p++, length--)
		crc = crc32c_table[0][(crc ^ *p) & 255] ^ crc >> 8;
	return ~crc;
}

#ifdef LAC_HAVE_ISAL

/* ISA-L takes an int, and does not write to what it is given. */
#define STEP_MAX ((size_t)1 << 30)

uint32_t lac__crc32c(uint32_t crc, const void *data, size_t length)
{
	unsigned char *p = (unsigned char *)(uintptr_t)data;

	crc = ~crc;
	for (; length > STEP_MAX; p += STEP_MAX, length -= STEP_MAX)
		crc = crc32_iscsi(p, (int)STEP_MAX, crc);
	if (length > 0)
		crc = crc32_iscsi(p, (int)length, crc);
	return ~crc;
}

const char *lac__crc32c_name(void)
{
	return "isa-l";
}

#else

uint32_t lac__crc32c(uint32_t crc, const void *data, size_t length)
{
	return lac__crc32c_table(crc, data, length);
}

const char *lac__crc32c_name(void)
{
	return "table";
}

#endif
