/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz/fuzz.h - what the fuzz targets share.
 *
 * The first byte of an input is its mode: with FUZZ_SEAL the target makes checksums right before it
 * decodes, or no mutation would ever come past them. Inputs shorter than a structure are
 * continued by zeros, which keeps the seeds small. What is decoded is encoded again: format 1 has
 * one encoding for each meaning, so the bytes must be the same.
 */
#ifndef LAC_FUZZ_FUZZ_H
#define LAC_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "format/common.h"

#define FUZZ_SEAL 1u

/* A broken promise: stop where a debugger and the fuzzer see it, also with NDEBUG. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			__builtin_trap();                                                          \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct lac__uuid fuzz_uuid = {
	{'f', 'u', 'z', 'z', ' ', 'i', 'd', ' ', 'o', 'f', ' ', 's', 't', 'o', 'r', 'e'}};

/* Takes the mode off the front; 0 for an empty input. */
static inline uint8_t fuzz_mode(const uint8_t **data, size_t *size)
{
	uint8_t mode = 0;

	if (*size > 0) {
		mode = **data;
		++*data;
		--*size;
	}
	return mode;
}

/* Takes up to length bytes off the front of the input, continued by zeros. */
static inline void fuzz_take(const uint8_t **data, size_t *size, void *ret_bytes, size_t length)
{
	size_t n = *size < length ? *size : length;

	memset(ret_bytes, 0, length);
	if (n > 0)
		memcpy(ret_bytes, *data, n);
	*data += n;
	*size -= n;
}

static inline uint64_t fuzz_take64(const uint8_t **data, size_t *size)
{
	lac_le64 value;

	fuzz_take(data, size, &value, sizeof(value));
	return lac__get64(value);
}

static inline void fuzz_store32(void *bytes, size_t at, uint32_t value)
{
	lac_le32 le = lac__put32(value);

	memcpy((uint8_t *)bytes + at, &le, sizeof(le));
}

/* Makes the checksum of a page right. */
static inline void fuzz_seal_page(void *page, size_t crc_at)
{
	fuzz_store32(page, crc_at, 0);
	fuzz_store32(page, crc_at, lac__crc32c(0, page, LAC__PAGE_BYTES));
}

/* An error that is promised to be filled. */
static inline void fuzz_error(int rc, const struct lac_error *err)
{
	MUST(rc < 0 && err->code == rc && err->reason != 0);
	MUST(memchr(err->message, 0, sizeof(err->message)) && err->message[0] != '\0');
}

#endif
