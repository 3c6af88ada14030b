/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/block.h - what describes a block inside its container, so that the index can be rebuilt
 * from containers alone, and how its payload is checksummed.
 *
 * Place of a block, all derived from (offset, length, description distance):
 *   packed   [description 64][payload]           offset = start of payload, description at offset -
 * 64; both 64-aligned; footprint [offset - 64, round_up(offset + length, 64)) aligned  payload at a
 * granule; its description in a description granule that lies `distance` granules before the
 * payload's first granule; footprint of the payload [offset, round_up(offset + stored, granule)),
 * where stored = length, or with a chunk table round_up(length, 64) + table bytes. A payload longer
 * than LAC__CHUNK_BYTES is followed, at round_up(length, 64), by its chunk table: one CRC32C per
 * chunk. Its block checksum is that of the table. Blocks shorter than a granule go to packed
 * containers, all others to aligned ones.
 */
#ifndef LAC_FORMAT_BLOCK_H
#define LAC_FORMAT_BLOCK_H

#include "format/common.h"

#define LAC__DESCRIPTION_BYTES 64u

struct lac__description {
	struct lac__uuid uuid;
	uint64_t id;
	uint64_t owner;
	uint64_t length;     /* bytes of payload */
	uint64_t offset;     /* of the payload in the container */
	uint32_t checksum;   /* block checksum, see lac__block_checksum */
	uint32_t generation; /* copies made by relocation, from 1; the highest wins */
};

/* The checksum field is seeded with container and the description's own offset. */
void lac__description_encode(
	const struct lac__description *d, uint32_t container, uint64_t own_offset, void *ret_bytes);
int lac__description_decode(const void *bytes, uint32_t container, uint64_t own_offset,
	const struct lac__uuid *uuid, struct lac__description *ret, struct lac_error *err);

/* Seed of everything that proves a payload to be that of this block of this store (P4). */
uint32_t lac__block_seed(const struct lac__uuid *uuid, uint64_t id);

/* Number of chunks: 0 up to LAC__CHUNK_BYTES, else ceil(length / LAC__CHUNK_BYTES). */
uint64_t lac__chunk_count(uint64_t length);
/* Bytes of the chunk table, a multiple of 64, 0 without one. Table: 4 bytes a chunk, then zeros. */
uint64_t lac__chunk_table_bytes(uint64_t length);
/* Offset of the table from the payload's start. */
uint64_t lac__chunk_table_offset(uint64_t length);
/* length, or with a table the end of the table. */
uint64_t lac__stored_bytes(uint64_t length);

/* CRC of chunk number `chunk` with its bytes; the chunk number is part of the seed. */
uint32_t lac__chunk_checksum(uint32_t block_seed, uint64_t chunk, const void *bytes, size_t length);
void lac__chunk_table_put(void *table, uint64_t chunk, uint32_t checksum);
uint32_t lac__chunk_table_get(const void *table, uint64_t chunk);
/* Block checksum: of the payload where it has no table, of the table's bytes where it has one. For
   a payload in pieces chain lac__crc32c from lac__block_seed. Length is part of it. */
uint32_t lac__block_checksum(
	uint32_t block_seed, uint64_t length, const void *payload_or_table, size_t bytes);

#endif
