/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/txn.c - transactions: collected in memory, then committed as one record.
 *
 * Small (payload up to inline_max_bytes): the payload stays in memory until the commit, is then
 * written to its containers without a sync, and goes into the record itself: one sync in all.
 * Large: blocks are written in runs as the buffer fills, into ranges that were reserved durably
 * before; the commit syncs those containers and then writes a record with checksums only. A
 * transaction gets its LSN after its data is safe, or with it (rule 4.2).
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "store/txn.h"

LAC_PUBLIC int lac_txn_begin(struct lac_store *s, struct lac_txn **ret_txn, struct lac_error *err)
{
	int rc = lac__store_usable(s, err);
	struct lac_txn *t;

	if (rc < 0)
		return rc;
	t = calloc(1, sizeof *t);
	if (!t)
		return lac__error_nomem(err);
	t->store = s;
	*ret_txn = t;
	return 0;
}

int lac__txn_grow(void **array, size_t *room, size_t count, size_t size)
{
	size_t want = *room ? *room * 2 : 16;
	void *grown;

	if (count < *room)
		return 0;
	grown = realloc(*array, want * size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*room = want;
	return 0;
}

int lac__txn_add_op(struct lac_txn *t, const struct lac__op *op, struct lac_error *err)
{
	if (t->ops_count >= LAC__RECORD_OPS_MAX)
		return lac__error_set(err, -E2BIG, LAC_REASON_TOO_BIG, 0, 0,
			"transaction has %u operations, which is the limit", LAC__RECORD_OPS_MAX);
	if (lac__txn_grow((void **)&t->ops, &t->ops_room, t->ops_count, sizeof *t->ops) < 0)
		return lac__error_nomem(err);
	t->ops[t->ops_count++] = *op;
	return 0;
}

int lac__txn_add_range(struct lac_txn *t, uint32_t container, uint64_t first, uint64_t count,
	struct lac_error *err)
{
	if (lac__txn_grow(
		    (void **)&t->ranges, &t->ranges_room, t->ranges_count, sizeof *t->ranges) < 0)
		return lac__error_nomem(err);
	t->ranges[t->ranges_count++] =
		(struct range){.container = container, .first = first, .count = count};
	return 0;
}

/* Payloads below a granule are packed, since alone they would waste most of one. */
uint32_t lac__kind_for(const struct lac_store *s, uint64_t length)
{
	return length < s->granule_bytes ? LAC__CONTAINER_PACKED : LAC__CONTAINER_ALIGNED;
}

int lac__container_write(struct lac_store *s, uint32_t container, const void *bytes, size_t length,
	uint64_t offset, struct lac_error *err)
{
	struct lac__held *held;
	int rc = lac__container_hold(s, container, &held, err);

	if (rc < 0)
		return rc;
	rc = lac__write_full(lac__held_file(held), bytes, length, offset);
	lac__held_wrote(held);
	lac__files_release(held);
	if (rc < 0)
		return lac__error_sys(err, rc, "write container %" PRIu32 ": %zu bytes at %" PRIu64,
			container, length, offset);
	return 0;
}

static int buffer_append(struct lac_txn *t, const void *data, size_t length)
{
	size_t want = t->buffer_used + length, room = t->buffer_room ? t->buffer_room : 4096;

	while (room < want)
		room *= 2;
	if (room > t->buffer_room) {
		uint8_t *grown = realloc(t->buffer, room);

		if (!grown)
			return -ENOMEM;
		t->buffer = grown;
		t->buffer_room = room;
	}
	if (length > 0)
		memcpy(t->buffer + t->buffer_used, data, length);
	t->buffer_used = want;
	return 0;
}

/* A run must fit into a container several times, or nominal sizes would mean nothing. */
static uint64_t run_bytes(const struct lac_store *s)
{
	return s->container_bytes / 4 < TXN_RUN_BYTES ? s->container_bytes / 4 : TXN_RUN_BYTES;
}

int lac__txn_buffer_put(struct lac_txn *t, const void *data, size_t length, uint64_t owner,
	uint64_t *ret_id, struct lac_error *err)
{
	struct lac_store *s = t->store;
	struct lac__op op = {
		.type = LAC__OP_PUT, .owner = owner, .length = length, .generation = 1};
	size_t at = t->buffer_used;
	int rc;

	if (t->large && at > 0 && at + length > run_bytes(s)) {
		rc = lac__txn_write_runs(t, err);
		if (rc < 0)
			return rc;
		at = 0;
	}
	if (lac__txn_grow((void **)&t->buffered, &t->buffered_room, t->buffered_count,
		    sizeof *t->buffered) < 0)
		return lac__error_nomem(err);
	rc = lac__id_take(s, &op.id, err);
	if (rc < 0)
		return rc;
	if (buffer_append(t, data, length) < 0)
		return lac__error_nomem(err);
	rc = lac__txn_add_op(t, &op, err);
	if (rc < 0) {
		t->buffer_used = at;
		return rc;
	}
	t->buffered[t->buffered_count++] = (struct buffered){.op = t->ops_count - 1, .offset = at};
	t->payload_bytes += length;
	t->large = t->large || t->payload_bytes > s->inline_max_bytes;
	*ret_id = op.id;
	return 0;
}

LAC_PUBLIC int lac_txn_delete(struct lac_txn *t, uint64_t id, struct lac_error *err)
{
	struct lac_block_info info;
	struct lac__op op = {.type = LAC__OP_DELETE, .id = id};
	int rc = lac_block_stat(t->store, id, &info, err);

	if (rc == 0)
		rc = lac__txn_add_op(t, &op, err);
	if (rc == 0)
		t->deletes++;
	return rc;
}

/* ---- commit ---- */

static int write_small_block(struct lac_txn *t, const struct lac__op *op,
	const struct lac__placing *p, struct lac_error *err)
{
	struct lac_store *s = t->store;
	uint8_t description[LAC__DESCRIPTION_BYTES], *table;
	uint64_t table_bytes = lac__chunk_table_bytes(op->length);
	int rc;

	lac__block_describe(&s->uuid, op, p->description_offset, description);
	rc = lac__container_write(
		s, op->container, description, sizeof description, p->description_offset, err);
	if (rc == 0 && op->length > 0)
		rc = lac__container_write(
			s, op->container, op->payload, op->length, op->offset, err);
	if (rc < 0 || table_bytes == 0)
		return rc;
	table = calloc(1, table_bytes);
	if (!table)
		return lac__error_nomem(err);
	lac__block_table_fill(&s->uuid, op->id, op->payload, op->length, table);
	rc = lac__container_write(s, op->container, table, table_bytes,
		op->offset + lac__chunk_table_offset(op->length), err);
	free(table);
	return rc;
}

/* Checksums of all buffered blocks; needs no place. */
static int seal_payloads(struct lac_txn *t, struct lac_error *err)
{
	for (size_t i = 0; i < t->buffered_count; i++) {
		struct lac__op *op = &t->ops[t->buffered[i].op];
		int rc;

		op->payload = t->buffer + t->buffered[i].offset;
		rc = lac__block_checksum_of(
			&t->store->uuid, op->id, op->payload, op->length, &op->checksum);
		if (rc < 0)
			return lac__error_nomem(err);
	}
	return 0;
}

static int make_rooms(struct lac_txn *t, struct lac_error *err)
{
	struct lac_store *s = t->store;
	uint64_t need[3] = {0};
	int rc = 0;

	for (size_t i = 0; i < t->buffered_count; i++) {
		uint64_t length = t->ops[t->buffered[i].op].length;
		uint32_t kind = lac__kind_for(s, length);

		need[kind] += lac__container_need(s, kind, length);
	}
	for (unsigned k = 1; k < 3 && rc == 0; k++)
		if (need[k] > 0)
			rc = lac__container_make_room(s, k, need[k], err);
	return rc;
}

static int record_places(
	struct lac_txn *t, const struct lac__placing *placing, struct lac_error *err)
{
	struct lac_store *s = t->store;

	for (size_t i = 0; i < t->buffered_count; i++) {
		struct lac__op *op = &t->ops[t->buffered[i].op];
		uint64_t first, count, description;
		int rc;

		op->container = placing[i].container;
		op->offset = placing[i].offset;
		op->distance = placing[i].distance;
		op->slot = placing[i].distance == 0
				   ? 0
				   : (uint32_t)(placing[i].description_offset % s->granule_bytes /
						LAC__DESCRIPTION_BYTES);
		op->has_payload = true;
		lac__block_granules(op->offset, op->length, op->distance, s->granule_bytes, &first,
			&count, &description);
		rc = lac__txn_add_range(t, op->container, first, count, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Gate held for reading from the placing on until the record has its LSN: a checkpoint that drew
   its line in between would take granules for closed that still get blocks (rule 4.8). */
static int small_under_gate(struct lac_txn *t, struct lac__placing *placing, uint64_t *ret_lsn,
	uint64_t *ret_missing, struct lac_error *err)
{
	int rc = lac__container_place(t->store, placing, t->buffered_count, &t->pending, err);

	if (rc == 0)
		rc = record_places(t, placing, err);
	for (size_t i = 0; i < t->buffered_count && rc == 0; i++)
		rc = write_small_block(t, &t->ops[t->buffered[i].op], &placing[i], err);
	if (rc == 0)
		rc = lac__commit_sequence(t->store, t->ops, t->ops_count,
			t->buffered_count == 0 ? LAC__COMMIT_RESERVE : 0, ret_lsn, ret_missing,
			err);
	return rc;
}

static int sequence_small(
	struct lac_txn *t, uint64_t *ret_lsn, uint64_t *ret_missing, struct lac_error *err)
{
	struct lac_store *s = t->store;
	struct lac__placing *placing = calloc(t->buffered_count + 1, sizeof *placing);
	int rc;

	if (!placing)
		return lac__error_nomem(err);
	for (size_t i = 0; i < t->buffered_count; i++) {
		placing[i].length = t->ops[t->buffered[i].op].length;
		placing[i].kind = lac__kind_for(s, placing[i].length);
	}
	rc = seal_payloads(t, err);
	while (rc == 0) {
		pthread_rwlock_rdlock(&s->gate);
		rc = small_under_gate(t, placing, ret_lsn, ret_missing, err);
		pthread_rwlock_unlock(&s->gate);
		if (rc != -EAGAIN)
			break;
		rc = make_rooms(t, err);
	}
	free(placing);
	return rc;
}

static int sync_containers(struct lac_txn *t, struct lac_error *err)
{
	for (struct lac__pending *p = t->pending; p; p = p->next) {
		struct lac__held *held;
		int rc = lac__container_hold(t->store, p->container->id, &held, err);

		if (rc < 0)
			return rc;
		rc = lac__held_sync(held, err);
		lac__files_release(held);
		if (rc < 0 && lac__rule(LAC__RULE_SYNC_FAILURE)) /* what an earlier success covered
								    may be gone too */
			return lac__store_poison(t->store, rc, err);
	}
	return 0;
}

/* After its puts the record also releases what they left of the reserved ranges. */
static int release_leftovers(struct lac_txn *t, struct lac_error *err)
{
	for (size_t i = 0; i < t->ranges_count; i++) {
		struct lac__op op = {.type = LAC__OP_RELEASE,
			.container = t->ranges[i].container,
			.first = t->ranges[i].first,
			.count = t->ranges[i].count};
		int rc = lac__txn_add_op(t, &op, err);

		if (rc < 0)
			return rc;
	}
	t->leftover = false; /* a second try finds them in its operations */
	return 0;
}

static int sequence_large(
	struct lac_txn *t, uint64_t *ret_lsn, uint64_t *ret_missing, struct lac_error *err)
{
	int rc = lac__txn_write_runs(t, err);

	/* The record holds checksums only: payloads, descriptions and tables must be durable before
	   it gets its LSN, since redo can't bring them back. */
	if (rc == 0 && lac__rule(LAC__RULE_DATA_FIRST))
		rc = sync_containers(t, err);
	if (rc == 0 && t->leftover)
		rc = release_leftovers(t, err);
	if (rc == 0)
		rc = lac__commit_sequence(
			t->store, t->ops, t->ops_count, 0, ret_lsn, ret_missing, err);
	return rc;
}

static void txn_free(struct lac_txn *t)
{
	lac__pending_drop(t->store, t->pending);
	free(t->ops);
	free(t->buffer);
	free(t->buffered);
	free(t->ranges);
	free(t);
}

/* What was placed or reserved is nobody's now: dead, so that reclaim finds it. Where even that
   record can't be had, the reserved ranges are found after the next open, the others are small. */
static void give_up_ranges(struct lac_txn *t)
{
	struct lac__op *ops;
	uint64_t lsn;

	if (t->ranges_count == 0)
		return;
	ops = calloc(t->ranges_count, sizeof *ops);
	if (!ops)
		return;
	for (size_t i = 0; i < t->ranges_count; i++) {
		ops[i].type = LAC__OP_RELEASE;
		ops[i].container = t->ranges[i].container;
		ops[i].first = t->ranges[i].first;
		ops[i].count = t->ranges[i].count;
	}
	lac__commit_sequence(t->store, ops, t->ranges_count, LAC__COMMIT_RESERVE, &lsn, NULL, NULL);
	free(ops);
}

static int sequence(
	struct lac_txn *t, uint64_t *ret_lsn, uint64_t *ret_missing, struct lac_error *err)
{
	int rc = 0;

	for (unsigned tries = 0; tries < 2; tries++) {
		rc = t->large ? sequence_large(t, ret_lsn, ret_missing, err)
			      : sequence_small(t, ret_lsn, ret_missing, err);
		if (rc != -ENOSPC || tries == 1 || !lac__checkpoint_for_space(t->store))
			break;
		if (!t->large) { /* it is placed anew */
			give_up_ranges(t);
			t->ranges_count = 0;
			lac__pending_drop(t->store, t->pending);
			t->pending = NULL;
		}
	}
	return rc;
}

LAC_PUBLIC int lac_txn_commit(struct lac_txn *t, uint64_t *ret_deleted, struct lac_error *err)
{
	struct lac_store *s = t->store;
	uint64_t lsn = 0, missing = 0;
	int rc = lac__store_own_process(s, err);

	if (rc < 0)
		return rc; /* as in lac_txn_abort */
	rc = lac__store_usable(s, err);
	if (rc == 0 && t->streams > 0)
		rc = lac__error_set(err, -EINVAL, LAC_REASON_CLOSED, 0, 0,
			"commit: %u puts are not finished", t->streams);
	if (rc == 0 && t->ops_count > 0)
		rc = sequence(t, &lsn, &missing, err);
	if (rc < 0) {
		give_up_ranges(t);
		txn_free(t);
		lac__error_prepend(err, "commit");
		return rc;
	}
	if (ret_deleted)
		*ret_deleted = t->deletes - missing;
	txn_free(t);
	rc = lac__commit_wait(s, lsn, err);
	if (rc < 0) {
		/* Of these the caller was told that nothing happened, which nobody knows here. */
		if (rc == -ENOSPC || rc == -E2BIG || rc == -ENOMEM) {
			rc = -EIO;
			if (err)
				err->code = rc;
		}
		lac__error_prepend(err, "commit: indeterminate");
		return rc;
	}
	/* Durable already: what follows is upkeep, and its failure is not this transaction's. */
	lac__checkpoint_if_due(s, NULL);
	return 0;
}

LAC_PUBLIC void lac_txn_abort(struct lac_txn *t)
{
	if (!t)
		return;
	if (lac__store_own_process(t->store, NULL) < 0)
		return; /* a forked child: the locks may be in any state */
	give_up_ranges(t);
	txn_free(t);
}
