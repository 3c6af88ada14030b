/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/record.c - records and operations as bytes: encoding, and iteration over what
 * format/decode.c has verified.
 */
#include "format/record.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "format/op.h"

size_t lac__op_fixed_bytes(uint32_t type)
{
	switch (type) {
	case LAC__OP_PUT: return sizeof(struct lac__disk_put);
	case LAC__OP_DELETE: return sizeof(struct lac__disk_delete);
	case LAC__OP_RESERVE:
	case LAC__OP_RELEASE:
	case LAC__OP_HOLE: return sizeof(struct lac__disk_range);
	case LAC__OP_CONTAINER: return sizeof(struct lac__disk_container_op);
	case LAC__OP_HIGH_WATER: return sizeof(struct lac__disk_high_water);
	case LAC__OP_RETIRE: return sizeof(struct lac__disk_retire);
	default: return 0;
	}
}

size_t lac__op_bytes(const struct lac__op *op)
{
	size_t bytes = lac__op_fixed_bytes(op->type);

	if (op->type == LAC__OP_PUT && op->has_payload)
		bytes += lac__round_up(op->length, LAC__OP_ALIGN);
	return bytes;
}

static void put_encode(const struct lac__op *op, struct lac__disk_put *d)
{
	uint8_t *payload = (uint8_t *)(d + 1);

	assert(op->distance <= UINT16_MAX && op->slot <= UINT16_MAX);
	d->id = lac__put64(op->id);
	d->owner = lac__put64(op->owner);
	d->length = lac__put64(op->length);
	d->offset = lac__put64(op->offset);
	d->container = lac__put32(op->container);
	d->checksum = lac__put32(op->checksum);
	d->distance = lac__put16((uint16_t)op->distance);
	d->slot = lac__put16((uint16_t)op->slot);
	d->generation = lac__put32(op->generation);
	d->turned = lac__put64(op->turned);
	if (!op->has_payload)
		return;
	d->head.flags = lac__put16(LAC__OP_HAS_PAYLOAD);
	if (op->length > 0)
		memcpy(payload, op->payload, op->length);
	memset(payload + op->length, 0, lac__round_up(op->length, LAC__OP_ALIGN) - op->length);
}

static void delete_encode(const struct lac__op *op, struct lac__disk_delete *d)
{
	d->id = lac__put64(op->id);
	d->owner = lac__put64(op->owner);
	d->length = lac__put64(op->length);
	d->offset = lac__put64(op->offset);
	d->container = lac__put32(op->container);
	d->distance = lac__put32(op->distance);
	d->turned = lac__put64(op->turned);
}

static void range_encode(const struct lac__op *op, struct lac__disk_range *d)
{
	d->container = lac__put32(op->container);
	d->reserved = lac__put32(0);
	d->first = lac__put64(op->first);
	d->count = lac__put64(op->count);
	d->turned = lac__put64(op->type == LAC__OP_RELEASE ? op->turned : 0);
}

static void container_encode(const struct lac__op *op, struct lac__disk_container_op *d)
{
	d->container = lac__put32(op->container);
	d->state = lac__put32(op->state);
	d->kind = lac__put32(op->kind);
	d->reserved = lac__put32(0);
}

static void high_water_encode(const struct lac__op *op, struct lac__disk_high_water *d)
{
	d->first = lac__put64(op->first);
	d->count = lac__put64(op->count);
}

static void retire_encode(const struct lac__op *op, struct lac__disk_retire *d)
{
	d->first = lac__put64(op->first);
}

size_t lac__op_encode(const struct lac__op *op, void *ret_bytes)
{
	struct lac__disk_op *head = ret_bytes;
	size_t bytes = lac__op_bytes(op);

	assert(bytes > 0 && bytes <= LAC__RECORD_BYTES_MAX);
	head->type = lac__put16((uint16_t)op->type);
	head->flags = lac__put16(0);
	head->bytes = lac__put32((uint32_t)bytes);
	switch (op->type) {
	case LAC__OP_PUT: put_encode(op, ret_bytes); break;
	case LAC__OP_DELETE: delete_encode(op, ret_bytes); break;
	case LAC__OP_RESERVE:
	case LAC__OP_RELEASE:
	case LAC__OP_HOLE: range_encode(op, ret_bytes); break;
	case LAC__OP_CONTAINER: container_encode(op, ret_bytes); break;
	case LAC__OP_HIGH_WATER: high_water_encode(op, ret_bytes); break;
	case LAC__OP_RETIRE: retire_encode(op, ret_bytes); break;
	}
	return bytes;
}

void lac__record_header_encode(uint32_t pages, uint32_t ops, void *ret_bytes)
{
	struct lac__disk_record_header *d = ret_bytes;

	d->version = lac__put16(LAC__RECORD_VERSION);
	d->flags = lac__put16(0);
	d->pages = lac__put32(pages);
	d->ops = lac__put32(ops);
	d->reserved = lac__put32(0);
}

void lac__record_page_encode(const struct lac__record_page *page, void *ret_bytes)
{
	struct lac__disk_record_page *d = ret_bytes;

	d->kind = lac__put32(page->ref.kind);
	d->container = lac__put32(page->ref.container);
	d->no = lac__put64(page->ref.no);
	d->prev_lsn = lac__put64(page->prev_lsn);
}

void lac__record_page_at(const struct lac__record *record, uint32_t n, struct lac__record_page *ret)
{
	const struct lac__disk_record_page *d =
		(const void *)(record->bytes + LAC__RECORD_HEADER_BYTES);

	assert(n < record->pages);
	d += n;
	ret->ref.kind = lac__get32(d->kind);
	ret->ref.container = lac__get32(d->container);
	ret->ref.no = lac__get64(d->no);
	ret->prev_lsn = lac__get64(d->prev_lsn);
}

static void put_load(const struct lac__disk_put *d, struct lac__op *ret)
{
	ret->id = lac__get64(d->id);
	ret->owner = lac__get64(d->owner);
	ret->length = lac__get64(d->length);
	ret->offset = lac__get64(d->offset);
	ret->container = lac__get32(d->container);
	ret->checksum = lac__get32(d->checksum);
	ret->distance = lac__get16(d->distance);
	ret->slot = lac__get16(d->slot);
	ret->generation = lac__get32(d->generation);
	ret->turned = lac__get64(d->turned);
	ret->has_payload = lac__get16(d->head.flags) & LAC__OP_HAS_PAYLOAD;
	ret->payload = ret->has_payload ? d + 1 : NULL;
}

static void delete_load(const struct lac__disk_delete *d, struct lac__op *ret)
{
	ret->id = lac__get64(d->id);
	ret->owner = lac__get64(d->owner);
	ret->length = lac__get64(d->length);
	ret->offset = lac__get64(d->offset);
	ret->container = lac__get32(d->container);
	ret->distance = lac__get32(d->distance);
	ret->turned = lac__get64(d->turned);
}

static void range_load(const struct lac__disk_range *d, struct lac__op *ret)
{
	ret->container = lac__get32(d->container);
	ret->first = lac__get64(d->first);
	ret->count = lac__get64(d->count);
	ret->turned = lac__get64(d->turned);
}

static void container_load(const struct lac__disk_container_op *d, struct lac__op *ret)
{
	ret->container = lac__get32(d->container);
	ret->state = lac__get32(d->state);
	ret->kind = lac__get32(d->kind);
}

static void high_water_load(const struct lac__disk_high_water *d, struct lac__op *ret)
{
	ret->first = lac__get64(d->first);
	ret->count = lac__get64(d->count);
}

static void retire_load(const struct lac__disk_retire *d, struct lac__op *ret)
{
	ret->first = lac__get64(d->first);
}

void lac__op_load(const void *bytes, struct lac__op *ret)
{
	const struct lac__disk_op *head = bytes;

	*ret = (struct lac__op){.type = lac__get16(head->type)};
	switch (ret->type) {
	case LAC__OP_PUT: put_load(bytes, ret); break;
	case LAC__OP_DELETE: delete_load(bytes, ret); break;
	case LAC__OP_RESERVE:
	case LAC__OP_RELEASE:
	case LAC__OP_HOLE: range_load(bytes, ret); break;
	case LAC__OP_CONTAINER: container_load(bytes, ret); break;
	case LAC__OP_HIGH_WATER: high_water_load(bytes, ret); break;
	case LAC__OP_RETIRE: retire_load(bytes, ret); break;
	}
}

void lac__op_cursor_start(const struct lac__record *record, struct lac__op_cursor *ret)
{
	ret->at = record->ops_at;
	ret->end = record->bytes + record->length;
	ret->left = record->ops;
}

bool lac__op_next(struct lac__op_cursor *cursor, struct lac__op *ret)
{
	const struct lac__disk_op *head = (const void *)cursor->at;

	if (cursor->left == 0)
		return false;
	assert((size_t)(cursor->end - cursor->at) >= lac__get32(head->bytes));
	lac__op_load(cursor->at, ret);
	cursor->at += lac__get32(head->bytes);
	cursor->left--;
	return true;
}
