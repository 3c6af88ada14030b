/* SPDX-License-Identifier: Apache-2.0 */
/* store/block.c - what stands beside a payload: description, chunk table, block checksum. */
#include <errno.h>
#include <stdlib.h>

#include "store/internal.h"

void lac__block_describe(const struct lac__uuid *uuid, const struct lac__op *op,
	uint64_t own_offset, void *ret_bytes)
{
	struct lac__description d = {.uuid = *uuid,
		.id = op->id,
		.owner = op->owner,
		.length = op->length,
		.offset = op->offset,
		.checksum = op->checksum,
		.generation = op->generation};

	lac__description_encode(&d, op->container, own_offset, ret_bytes);
}

void lac__block_table_fill(const struct lac__uuid *uuid, uint64_t id, const uint8_t *payload,
	uint64_t length, void *table)
{
	uint32_t seed = lac__block_seed(uuid, id);

	for (uint64_t chunk = 0; chunk < lac__chunk_count(length); chunk++) {
		uint64_t start = chunk * LAC__CHUNK_BYTES;
		size_t bytes =
			length - start < LAC__CHUNK_BYTES ? length - start : LAC__CHUNK_BYTES;

		lac__chunk_table_put(
			table, chunk, lac__chunk_checksum(seed, chunk, payload + start, bytes));
	}
}

int lac__block_checksum_of(const struct lac__uuid *uuid, uint64_t id, const uint8_t *payload,
	uint64_t length, uint32_t *ret)
{
	uint32_t seed = lac__block_seed(uuid, id);
	uint64_t bytes = lac__chunk_table_bytes(length);
	void *table;

	if (bytes == 0) {
		*ret = lac__block_checksum(seed, length, payload, length);
		return 0;
	}
	table = calloc(1, bytes);
	if (!table)
		return -ENOMEM;
	lac__block_table_fill(uuid, id, payload, length, table);
	*ret = lac__block_checksum(seed, length, table, bytes);
	free(table);
	return 0;
}
