/* SPDX-License-Identifier: Apache-2.0 */
/* store/txn.h - a transaction being put together; shared by txn.c and stream.c. */
#ifndef LAC_STORE_TXN_H
#define LAC_STORE_TXN_H

#include "store/internal.h"

enum {
	TXN_RUN_BYTES =
		4 << 20, /* a large transaction writes its buffered blocks in runs of this */
	TXN_STREAM_BYTES = 1 << 20, /* a longer block goes to its container as it comes */
};

struct buffered {
	size_t op;     /* index of its PUT */
	size_t offset; /* of its payload in buffer */
};

struct range {
	uint32_t container;
	uint64_t first, count; /* granules */
};

struct lac_txn {
	struct lac_store *store;
	struct lac__op *ops;
	size_t ops_count, ops_room;
	uint64_t payload_bytes, deletes;
	bool large;	  /* its payload goes to containers before its record */
	bool leftover;	  /* some reserved range may hold no block of it */
	unsigned streams; /* puts not finished yet */
	uint8_t *buffer;
	size_t buffer_used, buffer_room;
	struct buffered *buffered; /* blocks whose payload is in the buffer */
	size_t buffered_count, buffered_room;
	struct lac__pending *pending;
	struct range *ranges; /* reserved or placed, given up when it aborts */
	size_t ranges_count, ranges_room;
};

int lac__txn_add_op(struct lac_txn *t, const struct lac__op *op, struct lac_error *err);
int lac__txn_add_range(struct lac_txn *t, uint32_t container, uint64_t first, uint64_t count,
	struct lac_error *err);
/* Grows *array, of elements of `size` bytes, to hold count + 1. */
int lac__txn_grow(void **array, size_t *room, size_t count, size_t size);
/* Takes the payload of a block into the buffer and adds its PUT; may write a run. */
int lac__txn_buffer_put(struct lac_txn *t, const void *data, size_t length, uint64_t owner,
	uint64_t *ret_id, struct lac_error *err);

/* run.c: writes all buffered blocks of a large transaction to their containers, unsynced. */
int lac__txn_write_runs(struct lac_txn *t, struct lac_error *err);
/* lac__container_reserve, with a checkpoint and a second try when there is no space. */
int lac__txn_reserve(struct lac_txn *t, uint32_t kind, uint64_t granules, uint32_t *ret_container,
	uint64_t *ret_first, struct lac_error *err);

#endif
