/* SPDX-License-Identifier: Apache-2.0 */
/* format/format_test.h - what the tests of this layer share. */
#ifndef LAC_FORMAT_FORMAT_TEST_H
#define LAC_FORMAT_FORMAT_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/common.h"
#include "format/internal.h"

static const struct lac__uuid test_uuid = {{0x10, 0x21, 0x32, 0x43, 0x54, 0x65, 0x76, 0x87, 0x98,
	0xa9, 0xba, 0xcb, 0xdc, 0xed, 0xfe, 1}};
static const struct lac__uuid other_uuid = {{9, 9, 9}};

static inline void store32(void *bytes, size_t at, uint32_t value)
{
	lac_le32 le = lac__put32(value);

	memcpy((uint8_t *)bytes + at, &le, sizeof(le));
}

static inline void store64(void *bytes, size_t at, uint64_t value)
{
	lac_le64 le = lac__put64(value);

	memcpy((uint8_t *)bytes + at, &le, sizeof(le));
}

/* After a field of a page was patched: what is then refused is refused for the field. */
static inline void reseal(void *page, size_t crc_at)
{
	store32(page, crc_at, lac__disk_page_crc(page, crc_at));
}

/* No single changed byte may pass: 256 masks at each of the first bytes, some at all others. */
static inline void check_every_byte(
	void *bytes, size_t length, int (*decode)(const void *bytes, struct lac_error *err))
{
	static const uint8_t few[] = {0x01, 0x80, 0xff};
	uint8_t *p = bytes;
	struct lac_error err;

	assert_int_equal(decode(bytes, &err), 0);
	for (size_t at = 0; at < length; at++) {
		unsigned masks = at < 256 ? 255 : sizeof(few);

		for (unsigned m = 0; m < masks; m++) {
			uint8_t mask = at < 256 ? (uint8_t)(m + 1) : few[m];

			p[at] ^= mask;
			memset(&err, 0, sizeof(err));
			if (decode(bytes, &err) >= 0)
				fail_msg("byte %zu with mask %02x passes", at, mask);
			if (err.code == 0 || err.reason == 0 || err.message[0] == '\0')
				fail_msg("byte %zu with mask %02x: no error filled", at, mask);
			p[at] ^= mask;
		}
	}
	assert_int_equal(decode(bytes, &err), 0);
}

#endif
