/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/block.c - descriptions of blocks, and the checksums of their payloads.
 *
 * A payload's checksum starts from a seed of store and id, so the bytes of another block, or of
 * the same id in another store, do not pass as this one's (P4). A description's starts from its
 * container and place, so a description that a misdirected write put elsewhere is not believed.
 */
#include "format/block.h"

#include <errno.h>
#include <inttypes.h>

#include "base/checked.h"
#include "base/crc32c.h"
#include "format/entry.h"
#include "format/internal.h"
#include "format/limits.h"

#define MAGIC UINT32_C(0x4b4c424c) /* "LBLK" */

struct disk_description {
	lac_le32 magic;	       /* 0..4 */
	lac_le32 crc;	       /* 4..8, of place and bytes 8..64 */
	struct lac__uuid uuid; /* 8..24 */
	lac_le64 id;	       /* 24..32 */
	lac_le64 owner;	       /* 32..40 */
	lac_le64 length;       /* 40..48 */
	lac_le64 offset;       /* 48..56 */
	lac_le32 checksum;     /* 56..60 */
	lac_le32 generation;   /* 60..64 */
};
_Static_assert(sizeof(struct disk_description) == LAC__DESCRIPTION_BYTES, "size of a description");
_Static_assert(offsetof(struct disk_description, uuid) == 8, "layout of a description");

#define CRC_FROM 8u

static uint32_t description_crc(
	const struct disk_description *d, uint32_t container, uint64_t own_offset)
{
	struct {
		lac_le32 container;
		lac_le64 own_offset;
	} place = {lac__put32(container), lac__put64(own_offset)};
	uint32_t crc;

	_Static_assert(sizeof(place) == 12, "seed of a description");
	crc = lac__crc32c(0, &place, sizeof(place));
	return lac__crc32c(crc, (const uint8_t *)d + CRC_FROM, sizeof(*d) - CRC_FROM);
}

void lac__description_encode(
	const struct lac__description *d, uint32_t container, uint64_t own_offset, void *ret_bytes)
{
	struct disk_description *disk = ret_bytes;

	disk->magic = lac__put32(MAGIC);
	disk->uuid = d->uuid;
	disk->id = lac__put64(d->id);
	disk->owner = lac__put64(d->owner);
	disk->length = lac__put64(d->length);
	disk->offset = lac__put64(d->offset);
	disk->checksum = lac__put32(d->checksum);
	disk->generation = lac__put32(d->generation);
	disk->crc = lac__put32(description_crc(disk, container, own_offset));
}

static int description_check(
	const struct lac__description *d, uint64_t own_offset, struct lac_error *err)
{
	if (d->id < 1 || d->id >= LAC__ID_LIMIT)
		return LAC__BAD_FIELD(err, "description of id %" PRIu64, d->id);
	if (d->length > LAC__LENGTH_MAX_BYTES)
		return LAC__BAD_FIELD(
			err, "description of id %" PRIu64 ": length %" PRIu64, d->id, d->length);
	if (d->offset % LAC__PACK_ALIGN_BYTES != 0 || own_offset % LAC__PACK_ALIGN_BYTES != 0 ||
		d->offset < LAC__DESCRIPTION_BYTES ||
		d->offset - LAC__DESCRIPTION_BYTES < own_offset ||
		!lac__range_ok(d->offset, lac__stored_bytes(d->length), LAC__OFFSET_MAX_BYTES))
		return LAC__BAD_FIELD(err,
			"description of id %" PRIu64 " at %" PRIu64 ": payload at %" PRIu64
			", length %" PRIu64,
			d->id, own_offset, d->offset, d->length);
	if (d->generation < 1)
		return LAC__BAD_FIELD(err, "description of id %" PRIu64 ": generation 0", d->id);
	return 0;
}

int lac__description_decode(const void *bytes, uint32_t container, uint64_t own_offset,
	const struct lac__uuid *uuid, struct lac__description *ret, struct lac_error *err)
{
	const struct disk_description *disk = bytes;
	struct lac__description d;
	uint32_t got, want;
	int rc;

	if (lac__get32(disk->magic) != MAGIC)
		return lac__error_set(err, -EBADMSG, LAC_REASON_BAD_MAGIC, own_offset,
			LAC__DESCRIPTION_BYTES, "magic %08" PRIx32 ", want %08" PRIx32,
			lac__get32(disk->magic), MAGIC);
	want = lac__get32(disk->crc);
	got = description_crc(disk, container, own_offset);
	if (got != want)
		return lac__error_set(err, -EBADMSG, LAC_REASON_BAD_CHECKSUM, own_offset,
			LAC__DESCRIPTION_BYTES, "crc32c %08" PRIx32 ", want %08" PRIx32, got, want);
	if (!lac__uuid_equal(&disk->uuid, uuid))
		return lac__error_set(err, -EUCLEAN, LAC_REASON_BAD_IDENTITY, own_offset,
			LAC__DESCRIPTION_BYTES, "description of another store");
	d.uuid = disk->uuid;
	d.id = lac__get64(disk->id);
	d.owner = lac__get64(disk->owner);
	d.length = lac__get64(disk->length);
	d.offset = lac__get64(disk->offset);
	d.checksum = lac__get32(disk->checksum);
	d.generation = lac__get32(disk->generation);
	rc = description_check(&d, own_offset, err);
	if (rc == 0)
		*ret = d;
	return rc;
}

uint32_t lac__block_seed(const struct lac__uuid *uuid, uint64_t id)
{
	lac_le64 le = lac__put64(id);

	return lac__crc32c(lac__crc32c(0, uuid->b, sizeof(uuid->b)), &le, sizeof(le));
}

/* Lengths above the limit never come here: decoders and lac_put refuse them. */
uint64_t lac__chunk_count(uint64_t length)
{
	if (length <= LAC__CHUNK_BYTES)
		return 0;
	return length / LAC__CHUNK_BYTES + (length % LAC__CHUNK_BYTES != 0);
}

uint64_t lac__chunk_table_bytes(uint64_t length)
{
	return lac__round_up(lac__chunk_count(length) * sizeof(lac_le32), LAC__PACK_ALIGN_BYTES);
}

uint64_t lac__chunk_table_offset(uint64_t length)
{
	return lac__round_up(length, LAC__PACK_ALIGN_BYTES);
}

uint64_t lac__stored_bytes(uint64_t length)
{
	if (length <= LAC__CHUNK_BYTES)
		return length;
	return lac__chunk_table_offset(length) + lac__chunk_table_bytes(length);
}

uint32_t lac__chunk_checksum(uint32_t block_seed, uint64_t chunk, const void *bytes, size_t length)
{
	lac_le64 le = lac__put64(chunk);

	return lac__crc32c(lac__crc32c(block_seed, &le, sizeof(le)), bytes, length);
}

void lac__chunk_table_put(void *table, uint64_t chunk, uint32_t checksum)
{
	lac_le32 le = lac__put32(checksum);

	memcpy((uint8_t *)table + chunk * sizeof(le), &le, sizeof(le));
}

uint32_t lac__chunk_table_get(const void *table, uint64_t chunk)
{
	lac_le32 le;

	memcpy(&le, (const uint8_t *)table + chunk * sizeof(le), sizeof(le));
	return lac__get32(le);
}

/*
 * A payload proves its own length: it is what the checksum runs over. A table does not, as its
 * last chunk may be shorter, so the length goes in front of it.
 */
uint32_t lac__block_checksum(
	uint32_t block_seed, uint64_t length, const void *payload_or_table, size_t bytes)
{
	lac_le64 le = lac__put64(length);

	if (length > LAC__CHUNK_BYTES)
		block_seed = lac__crc32c(block_seed, &le, sizeof(le));
	return lac__crc32c(block_seed, payload_or_table, bytes);
}

uint64_t lac__block_end(uint64_t offset, uint64_t length, uint32_t distance, uint32_t granule_bytes)
{
	return lac__round_up(offset + lac__stored_bytes(length),
		distance == 0 ? LAC__PACK_ALIGN_BYTES : granule_bytes);
}

int lac__block_place_check(uint64_t offset, uint64_t length, uint32_t distance,
	uint32_t granule_bytes, struct lac_error *err)
{
	uint64_t first = granule_bytes; /* behind the header */

	if (length > LAC__LENGTH_MAX_BYTES)
		return LAC__BAD_FIELD(err, "length %" PRIu64, length);
	/* The end of the largest container is a multiple of every granule, so rounding stays below.
	 */
	if (!lac__range_ok(offset, lac__stored_bytes(length), LAC__OFFSET_MAX_BYTES))
		return LAC__BAD_FIELD(err, "offset %" PRIu64 ", length %" PRIu64, offset, length);
	if (distance > LAC__DISTANCE_MAX)
		return LAC__BAD_FIELD(err, "description %" PRIu32 " granules away", distance);
	if (distance == 0) {
		if (offset % LAC__PACK_ALIGN_BYTES != 0 || offset < first + LAC__DESCRIPTION_BYTES)
			return LAC__BAD_FIELD(err, "packed payload at offset %" PRIu64, offset);
		return 0;
	}
	if (length == 0)
		return LAC__BAD_FIELD(err, "empty payload, but not packed");
	if (offset % granule_bytes != 0 || offset / granule_bytes < distance + UINT64_C(1))
		return LAC__BAD_FIELD(err,
			"aligned payload at offset %" PRIu64 ", description %" PRIu32
			" granules away",
			offset, distance);
	return 0;
}
