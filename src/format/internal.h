/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/internal.h - what the files of this layer share: checksums that skip their own field,
 * zero and identity tests, and the prefix common to the three kinds of header page.
 */
#ifndef LAC_FORMAT_INTERNAL_H
#define LAC_FORMAT_INTERNAL_H

#include <stdbool.h>
#include <string.h>

#include "format/common.h"

/* Superblock, container header and segment header begin alike. */
struct lac__disk_prefix {
	uint8_t magic[8];      /* 0..8 */
	lac_le32 crc;	       /* 8..12, of the page with this field as zero */
	lac_le32 version;      /* 12..16 */
	struct lac__uuid uuid; /* 16..32 */
};
_Static_assert(sizeof(struct lac__disk_prefix) == 32, "prefix of header pages");
_Static_assert(offsetof(struct lac__disk_prefix, crc) == 8, "checksum of header pages");

/* CRC32C of a page with the four bytes at crc_at taken as zero. */
uint32_t lac__disk_page_crc(const void *page, size_t crc_at);
bool lac__disk_is_zero(const void *bytes, size_t length);

static inline bool lac__uuid_equal(const struct lac__uuid *a, const struct lac__uuid *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

/* Sets magic, version, uuid and, last, the checksum of a page that is otherwise complete. */
void lac__disk_seal(void *page, const char magic[8], const struct lac__uuid *uuid);
/* Magic, checksum, version, in this order. */
int lac__disk_verify(const void *page, const char magic[8], struct lac_error *err);

/* A field that contradicts its bounds: -EUCLEAN, BAD_FIELD. */
#define LAC__BAD_FIELD(err, ...)                                                                   \
	lac__error_set((err), -EUCLEAN, LAC_REASON_BAD_FIELD, 0, 0, __VA_ARGS__)
/* A structure that says that it is another one: -EUCLEAN, BAD_IDENTITY. */
#define LAC__BAD_IDENTITY(err, ...)                                                                \
	lac__error_set((err), -EUCLEAN, LAC_REASON_BAD_IDENTITY, 0, 0, __VA_ARGS__)

#endif
