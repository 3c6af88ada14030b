/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/run.c - the buffered blocks of a large transaction, written to a container as one run.
 *
 * An aligned run is description granules, then payloads, each on a granule; a packed run is
 * descriptions and payloads in line. Either owns its granules alone: nothing else that is
 * acknowledged stands in them (rule 4.8).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "store/txn.h"

struct run {
	struct lac_txn *txn;
	uint32_t kind;
	size_t blocks;
	uint64_t description_granules, per_granule;
	uint64_t *description_at, *payload_at; /* by block: offsets in the run */
	uint64_t bytes;			       /* whole granules */
};

static bool belongs(const struct run *run, size_t i)
{
	struct lac_txn *t = run->txn;

	return lac__kind_for(t->store, t->ops[t->buffered[i].op].length) == run->kind;
}

static void lay_out_aligned(struct run *run)
{
	struct lac_txn *t = run->txn;
	uint64_t granule = t->store->granule_bytes, at, n = 0;

	run->per_granule = granule / LAC__DESCRIPTION_BYTES;
	if (run->per_granule > LAC__GRANULE_LIVE_MAX)
		run->per_granule = LAC__GRANULE_LIVE_MAX;
	at = (run->blocks + run->per_granule - 1) / run->per_granule * granule;
	for (size_t i = 0; i < t->buffered_count; i++) {
		if (!belongs(run, i))
			continue;
		run->description_at[i] = n / run->per_granule * granule +
					 n % run->per_granule * LAC__DESCRIPTION_BYTES;
		run->payload_at[i] = at;
		at += lac__round_up(lac__stored_bytes(t->ops[t->buffered[i].op].length), granule);
		n++;
	}
	run->bytes = at;
}

static void lay_out_packed(struct run *run)
{
	struct lac_txn *t = run->txn;
	uint64_t granule = t->store->granule_bytes, at = 0;
	unsigned in_granule = 0;

	for (size_t i = 0; i < t->buffered_count; i++) {
		uint64_t end;

		if (!belongs(run, i))
			continue;
		if (at % granule == 0)
			in_granule = 0;
		if (in_granule >= LAC__GRANULE_LIVE_MAX) {
			at = lac__round_up(at, granule);
			in_granule = 0;
		}
		end = at + LAC__DESCRIPTION_BYTES +
		      lac__round_up(t->ops[t->buffered[i].op].length, LAC__PACK_ALIGN_BYTES);
		run->description_at[i] = at;
		run->payload_at[i] = at + LAC__DESCRIPTION_BYTES;
		in_granule = (end - 1) / granule == at / granule ? in_granule + 1 : 1;
		at = end;
	}
	run->bytes = lac__round_up(at, granule);
}

static int fill(
	struct run *run, uint32_t container, uint64_t base, uint8_t *bytes, struct lac_error *err)
{
	struct lac_txn *t = run->txn;
	struct lac_store *s = t->store;

	for (size_t i = 0; i < t->buffered_count; i++) {
		struct lac__op *op = &t->ops[t->buffered[i].op];
		const uint8_t *payload = t->buffer + t->buffered[i].offset;
		uint8_t *at = bytes + run->payload_at[i];

		if (!belongs(run, i))
			continue;
		if (op->length > 0)
			memcpy(at, payload, op->length);
		if (lac__chunk_count(op->length) > 0)
			lac__block_table_fill(&s->uuid, op->id, payload, op->length,
				at + lac__chunk_table_offset(op->length));
		if (lac__block_checksum_of(&s->uuid, op->id, payload, op->length, &op->checksum) <
			0)
			return lac__error_nomem(err);
		op->container = container;
		op->offset = base + run->payload_at[i];
		op->distance = (uint32_t)(run->payload_at[i] / s->granule_bytes -
					  run->description_at[i] / s->granule_bytes);
		op->slot = (uint32_t)(run->description_at[i] % s->granule_bytes /
				      LAC__DESCRIPTION_BYTES);
		if (run->kind == LAC__CONTAINER_PACKED)
			op->distance = op->slot = 0;
		lac__block_describe(&s->uuid, op, base + run->description_at[i],
			bytes + run->description_at[i]);
	}
	return 0;
}

int lac__txn_reserve(struct lac_txn *t, uint32_t kind, uint64_t granules, uint32_t *ret_container,
	uint64_t *ret_first, struct lac_error *err)
{
	struct lac_store *s = t->store;
	int rc = lac__container_reserve(
		s, kind, granules, &t->pending, ret_container, ret_first, err);

	if (rc == -ENOSPC && lac__checkpoint_for_space(s))
		rc = lac__container_reserve(
			s, kind, granules, &t->pending, ret_container, ret_first, err);
	if (rc == 0)
		rc = lac__txn_add_range(t, *ret_container, *ret_first, granules, err);
	return rc;
}

static int write_run(struct run *run, struct lac_error *err)
{
	struct lac_txn *t = run->txn;
	uint64_t granule = t->store->granule_bytes, first;
	uint32_t container;
	uint8_t *bytes;
	int rc;

	rc = lac__txn_reserve(t, run->kind, run->bytes / granule, &container, &first, err);
	if (rc < 0)
		return rc;
	bytes = calloc(1, run->bytes);
	if (!bytes)
		return lac__error_nomem(err);
	rc = fill(run, container, first * granule, bytes, err);
	if (rc == 0)
		rc = lac__container_write(
			t->store, container, bytes, run->bytes, first * granule, err);
	free(bytes);
	return rc;
}

int lac__txn_write_runs(struct lac_txn *t, struct lac_error *err)
{
	uint64_t *offsets;
	int rc = 0;

	if (t->buffered_count == 0)
		return 0;
	offsets = calloc(2 * t->buffered_count, sizeof *offsets);
	if (!offsets)
		return lac__error_nomem(err);
	for (uint32_t kind = 1; kind < 3 && rc == 0; kind++) {
		struct run run = {.txn = t,
			.kind = kind,
			.description_at = offsets,
			.payload_at = offsets + t->buffered_count};

		for (size_t i = 0; i < t->buffered_count; i++)
			run.blocks += belongs(&run, i);
		if (run.blocks == 0)
			continue;
		if (kind == LAC__CONTAINER_ALIGNED)
			lay_out_aligned(&run);
		else
			lay_out_packed(&run);
		rc = write_run(&run, err);
	}
	free(offsets);
	/* After a failure the blocks stay buffered; a second try takes new ranges. */
	if (rc == 0)
		t->buffered_count = t->buffer_used = 0;
	else
		t->leftover = true;
	return rc;
}
