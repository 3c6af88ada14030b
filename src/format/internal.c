/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/internal.c - checksums and prefixes of whole pages.
 *
 * The magic is compared before the checksum, so that "this is something else" and "this is damaged"
 * stay apart; the version after it, so that a flipped bit is not reported as a newer format.
 */
#include "format/internal.h"

#include <errno.h>
#include <inttypes.h>

#include "base/crc32c.h"

uint32_t lac__disk_page_crc(const void *page, size_t crc_at)
{
	static const uint8_t zero[4];
	const uint8_t *p = page;
	uint32_t crc;

	crc = lac__crc32c(0, p, crc_at);
	crc = lac__crc32c(crc, zero, sizeof(zero));
	return lac__crc32c(crc, p + crc_at + 4, LAC__PAGE_BYTES - crc_at - 4);
}

bool lac__disk_is_zero(const void *bytes, size_t length)
{
	const uint8_t *p = bytes;

	/* Every byte equals its successor, and the first is zero. */
	return length == 0 || (p[0] == 0 && memcmp(p, p + 1, length - 1) == 0);
}

void lac__disk_seal(void *page, const char magic[8], const struct lac__uuid *uuid)
{
	struct lac__disk_prefix *prefix = page;

	memcpy(prefix->magic, magic, sizeof(prefix->magic));
	prefix->version = lac__put32(LAC__FORMAT_VERSION);
	prefix->uuid = *uuid;
	prefix->crc = lac__put32(lac__disk_page_crc(page, offsetof(struct lac__disk_prefix, crc)));
}

int lac__disk_verify(const void *page, const char magic[8], struct lac_error *err)
{
	const struct lac__disk_prefix *prefix = page;
	uint32_t want, got, version;

	if (memcmp(prefix->magic, magic, sizeof(prefix->magic)) != 0)
		return lac__error_set(err, -EBADMSG, LAC_REASON_BAD_MAGIC, 0, LAC__PAGE_BYTES,
			"magic is not %.8s", magic);
	want = lac__get32(prefix->crc);
	got = lac__disk_page_crc(page, offsetof(struct lac__disk_prefix, crc));
	if (got != want)
		return lac__error_set(err, -EBADMSG, LAC_REASON_BAD_CHECKSUM, 0, LAC__PAGE_BYTES,
			"crc32c %08" PRIx32 ", want %08" PRIx32, got, want);
	version = lac__get32(prefix->version);
	if (version != LAC__FORMAT_VERSION)
		return lac__error_set(err, -EOPNOTSUPP, LAC_REASON_FORMAT_UNKNOWN, 0,
			LAC__PAGE_BYTES, "format version %" PRIu32 ", want %u", version,
			LAC__FORMAT_VERSION);
	return 0;
}
