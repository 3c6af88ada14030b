/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/stream.c - putting a block piece by piece.
 *
 * A short one is collected in memory and then put as any other. A long one gets its range, of known
 * length, at once (RESERVED durably first, rule 4.12) and goes there as it comes, by whole chunks,
 * whose checksums go out to the chunk table just as they come: memory does not grow with the
 * block.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/crc32c.h"
#include "store/txn.h"

enum { TABLE_PIECE_BYTES = 4096 };

struct lac_put {
	struct lac_txn *txn;
	uint64_t length, owner, written;
	uint8_t *piece; /* short: the whole block; long: up to TXN_STREAM_BYTES of it */
	size_t piece_used;
	bool streamed, added;
	int failed; /* a failed piece makes the put useless */
	struct lac__op op;
	uint64_t description_offset;
	uint64_t flushed; /* payload bytes written to the container */
	uint32_t seed;
	uint8_t table[TABLE_PIECE_BYTES];
	uint64_t table_flushed; /* table bytes written */
	size_t table_used;
	uint32_t table_crc; /* chained over what was flushed */
};

LAC_PUBLIC int lac_put_begin(struct lac_txn *t, uint64_t length, uint64_t owner,
	struct lac_put **ret_put, struct lac_error *err)
{
	struct lac_store *s = t->store;
	struct lac_put *put;
	uint64_t granules, first;
	int rc = lac__store_usable(s, err);

	if (rc < 0)
		return rc;
	if (length > LAC__LENGTH_MAX_BYTES)
		return lac__error_set(err, -E2BIG, LAC_REASON_TOO_BIG, 0, length,
			"put: %" PRIu64 " bytes, limit %" PRIu64, length,
			(uint64_t)LAC__LENGTH_MAX_BYTES);
	put = calloc(1, sizeof *put);
	if (put)
		put->piece = malloc(length < TXN_STREAM_BYTES ? length + 1 : TXN_STREAM_BYTES);
	if (!put || !put->piece) {
		free(put);
		return lac__error_nomem(err);
	}
	put->txn = t;
	put->length = length;
	put->owner = owner;
	put->streamed = length > TXN_STREAM_BYTES;
	if (put->streamed) {
		t->large = true;
		granules = 1 + lac__round_up(lac__stored_bytes(length), s->granule_bytes) /
				       s->granule_bytes;
		put->op = (struct lac__op){.type = LAC__OP_PUT,
			.owner = owner,
			.length = length,
			.generation = 1,
			.distance = 1};
		rc = lac__id_take(s, &put->op.id, err);
		if (rc == 0)
			rc = lac__txn_reserve(t, LAC__CONTAINER_ALIGNED, granules,
				&put->op.container, &first, err);
		if (rc < 0) {
			free(put->piece);
			free(put);
			return rc;
		}
		put->description_offset = first * s->granule_bytes;
		put->op.offset = (first + 1) * s->granule_bytes;
		put->seed = lac__block_seed(&s->uuid, put->op.id);
	}
	t->streams++;
	*ret_put = put;
	return 0;
}

static int flush_table(struct lac_put *put, size_t bytes, struct lac_error *err)
{
	int rc = lac__container_write(put->txn->store, put->op.container, put->table, bytes,
		put->op.offset + lac__chunk_table_offset(put->length) + put->table_flushed, err);

	if (rc < 0)
		return rc;
	put->table_crc = put->table_flushed == 0
				 ? lac__block_checksum(put->seed, put->length, put->table, bytes)
				 : lac__crc32c(put->table_crc, put->table, bytes);
	put->table_flushed += bytes;
	put->table_used = 0;
	memset(put->table, 0, sizeof put->table);
	return 0;
}

static int flush_piece(struct lac_put *put, struct lac_error *err)
{
	int rc = lac__container_write(put->txn->store, put->op.container, put->piece,
		put->piece_used, put->op.offset + put->flushed, err);

	for (size_t at = 0; at < put->piece_used && rc == 0; at += LAC__CHUNK_BYTES) {
		size_t bytes = put->piece_used - at < LAC__CHUNK_BYTES ? put->piece_used - at
								       : LAC__CHUNK_BYTES;
		uint64_t chunk = (put->flushed + at) / LAC__CHUNK_BYTES;

		lac__chunk_table_put(put->table, put->table_used / 4,
			lac__chunk_checksum(put->seed, chunk, put->piece + at, bytes));
		put->table_used += 4;
		if (put->table_used == sizeof put->table)
			rc = flush_table(put, sizeof put->table, err);
	}
	put->flushed += put->piece_used;
	put->piece_used = 0;
	return rc;
}

LAC_PUBLIC int lac_put_write(
	struct lac_put *put, const void *data, size_t length, struct lac_error *err)
{
	const uint8_t *from = data;
	int rc = lac__store_own_process(put->txn->store, err);

	if (rc < 0) /* its range is the parent's, who may have made live blocks of it */
		return rc;
	if (put->failed)
		return lac__error_set(err, put->failed, LAC_REASON_CLOSED, 0, 0,
			"put: an earlier piece of this block failed");
	if (length > put->length - put->written)
		return lac__error_set(err, -E2BIG, LAC_REASON_TOO_BIG, put->written, length,
			"put: more than the %" PRIu64 " bytes that were announced", put->length);
	put->written += length;
	while (length > 0) {
		size_t take = length;

		if (put->streamed && take > TXN_STREAM_BYTES - put->piece_used)
			take = TXN_STREAM_BYTES - put->piece_used;
		memcpy(put->piece + put->piece_used, from, take);
		put->piece_used += take;
		from += take;
		length -= take;
		if (put->streamed && put->piece_used == TXN_STREAM_BYTES) {
			put->failed = flush_piece(put, err);
			if (put->failed)
				return put->failed;
		}
	}
	return 0;
}

static int finish_streamed(struct lac_put *put, uint64_t *ret_id, struct lac_error *err)
{
	struct lac_txn *t = put->txn;
	uint8_t description[LAC__DESCRIPTION_BYTES];
	uint64_t table_bytes = lac__chunk_table_bytes(put->length);
	int rc = put->piece_used > 0 ? flush_piece(put, err) : 0;

	if (rc == 0 && put->table_flushed < table_bytes)
		rc = flush_table(put, table_bytes - put->table_flushed, err);
	if (rc < 0)
		return rc;
	put->op.checksum = put->table_crc;
	lac__block_describe(&t->store->uuid, &put->op, put->description_offset, description);
	rc = lac__container_write(t->store, put->op.container, description, sizeof description,
		put->description_offset, err);
	if (rc == 0)
		rc = lac__txn_add_op(t, &put->op, err);
	if (rc == 0) {
		t->payload_bytes += put->length;
		*ret_id = put->op.id;
	}
	return rc;
}

LAC_PUBLIC void lac_put_abort(struct lac_put *put)
{
	if (!put)
		return;
	put->txn->streams--;
	if (put->streamed && !put->added)
		put->txn->leftover = true; /* its range is given up when the transaction ends */
	free(put->piece);
	free(put);
}

LAC_PUBLIC int lac_put_finish(struct lac_put *put, uint64_t *ret_id, struct lac_error *err)
{
	uint64_t id;
	int rc = lac__store_own_process(put->txn->store, err);

	if (rc == 0 && put->failed)
		rc = lac__error_set(
			err, put->failed, LAC_REASON_CLOSED, 0, 0, "put: an earlier piece failed");
	else if (rc == 0 && put->written != put->length)
		rc = lac__error_set(err, -EINVAL, LAC_REASON_ARGUMENT, 0, 0,
			"put: %" PRIu64 " bytes were announced, %" PRIu64 " came", put->length,
			put->written);
	else if (rc == 0 && put->streamed)
		rc = finish_streamed(put, &id, err);
	else if (rc == 0)
		rc = lac__txn_buffer_put(
			put->txn, put->piece, put->piece_used, put->owner, &id, err);
	put->added = rc == 0;
	lac_put_abort(put);
	if (rc == 0 && ret_id)
		*ret_id = id;
	return rc;
}

LAC_PUBLIC int lac_txn_put(struct lac_txn *t, const void *data, size_t length, uint64_t owner,
	uint64_t *ret_id, struct lac_error *err)
{
	struct lac_put *put;
	uint64_t id;
	int rc;

	if (length <= TXN_STREAM_BYTES) {
		rc = lac__store_usable(t->store, err);
		if (rc == 0)
			rc = lac__txn_buffer_put(t, data, length, owner, &id, err);
	} else {
		rc = lac_put_begin(t, length, owner, &put, err);
		if (rc < 0)
			return rc;
		rc = lac_put_write(put, data, length, err);
		if (rc < 0)
			lac_put_abort(put);
		else
			rc = lac_put_finish(put, &id, err);
	}
	if (rc == 0 && ret_id)
		*ret_id = id;
	return rc;
}
