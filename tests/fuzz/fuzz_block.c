/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz/fuzz_block.c - a description, and the arithmetic of chunks and footprints for whatever
 * length and offset it claims.
 */
#include "format/block.h"

#include "base/checked.h"
#include "format/record.h"
#include "fuzz.h"

#define CONTAINER 3u

static void seal(uint8_t *bytes, uint64_t own_offset)
{
	lac_le32 container = lac__put32(CONTAINER);
	lac_le64 own = lac__put64(own_offset);
	uint32_t crc;

	crc = lac__crc32c(0, &container, sizeof(container));
	crc = lac__crc32c(crc, &own, sizeof(own));
	fuzz_store32(bytes, 4, lac__crc32c(crc, bytes + 8, LAC__DESCRIPTION_BYTES - 8));
}

static void check_geometry(const struct lac__description *d, uint64_t own_offset)
{
	uint64_t count = lac__chunk_count(d->length), table = lac__chunk_table_bytes(d->length);
	uint64_t stored = lac__stored_bytes(d->length), first, granules, description;

	MUST(lac__range_ok(d->offset, stored, LAC__OFFSET_MAX_BYTES));
	MUST(d->offset >= own_offset + LAC__DESCRIPTION_BYTES);
	MUST(table % 64 == 0 && count * 4 <= table && table - count * 4 < 64);
	MUST((count == 0) == (d->length <= LAC__CHUNK_BYTES));
	MUST(count == 0 || (count - 1) * LAC__CHUNK_BYTES < d->length);
	MUST(count == 0 || count * LAC__CHUNK_BYTES >= d->length);
	MUST(stored == (count ? lac__chunk_table_offset(d->length) + table : d->length));
	for (uint32_t granule = LAC__GRANULE_MIN_BYTES; granule <= LAC__GRANULE_MAX_BYTES;
		granule *= 2) {
		lac__block_granules(
			d->offset, d->length, 0, granule, &first, &granules, &description);
		MUST(granules >= 1 && description == UINT64_MAX);
		MUST(first * granule <= d->offset - LAC__DESCRIPTION_BYTES);
		MUST((first + granules) * granule >= d->offset + stored);
		MUST((first + granules) * granule <= LAC__OFFSET_MAX_BYTES);
	}
}

/* What follows the description is a payload: whole and in two pieces it has one checksum. */
static void check_payload(const struct lac__description *d, const uint8_t *data, size_t size)
{
	uint32_t seed = lac__block_seed(&d->uuid, d->id), whole, pieces;
	size_t cut = size / 3;
	uint8_t table[64] = {0};

	whole = lac__block_checksum(seed, size, data, size);
	if (size <= LAC__CHUNK_BYTES) {
		pieces = lac__crc32c(lac__crc32c(seed, data, cut), data + cut, size - cut);
		MUST(whole == pieces);
	}
	whole = lac__chunk_checksum(seed, 1, data, size);
	lac__chunk_table_put(table, d->id % 16, whole);
	MUST(lac__chunk_table_get(table, d->id % 16) == whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t mode = fuzz_mode(&data, &size);
	uint8_t bytes[LAC__DESCRIPTION_BYTES], again[LAC__DESCRIPTION_BYTES];
	uint64_t own_offset = fuzz_take64(&data, &size);
	struct lac__description d;
	struct lac_error err;
	int rc;

	fuzz_take(&data, &size, bytes, sizeof(bytes));
	if (mode & FUZZ_SEAL)
		seal(bytes, own_offset);
	rc = lac__description_decode(bytes, CONTAINER, own_offset, &fuzz_uuid, &d, &err);
	if (rc < 0) {
		fuzz_error(rc, &err);
		return 0;
	}
	lac__description_encode(&d, CONTAINER, own_offset, again);
	MUST(memcmp(bytes, again, sizeof(bytes)) == 0);
	check_geometry(&d, own_offset);
	check_payload(&d, data, size);
	return 0;
}
