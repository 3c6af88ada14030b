/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/decode.c - proves a record before anything believes it.
 *
 * A record's checksum was verified with its frame, so what fails here was written wrongly or made
 * by hand. Two things are bounded on top of every field: the record's length and, against the
 * pages it lists, the number of pages its operations touch. The second keeps whoever
 * applies a record at work in proportion to its bytes, however large the ranges in it (P12).
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "format/container.h"
#include "format/entry.h"
#include "format/internal.h"
#include "format/limits.h"
#include "format/op.h"

#define INDEX_PAGES_LIMIT   (LAC__ID_LIMIT / LAC__INDEX_ENTRIES + 1)
#define RETIRED_PAGES_LIMIT (INDEX_PAGES_LIMIT / LAC__RETIRED_BITS + 1)
#define TABLE_PAGES_LIMIT   (UINT32_MAX / LAC__TABLE_ENTRIES + UINT64_C(1))
#define MAP_PAGES_LIMIT	    (LAC__OFFSET_MAX_BYTES / LAC__GRANULE_MIN_BYTES / LAC__MAP_GRANULES + 1)

static int id_check(uint64_t id, struct lac_error *err)
{
	if (id < 1 || id >= LAC__ID_LIMIT)
		return LAC__BAD_FIELD(err, "id %" PRIu64, id);
	return 0;
}

static int container_check(uint32_t container, struct lac_error *err)
{
	if (container == 0)
		return LAC__BAD_FIELD(err, "container 0");
	return 0;
}

static int block_check(const struct lac__op *op, uint32_t granule_bytes, struct lac_error *err)
{
	uint64_t first, count, description;
	int rc;

	rc = id_check(op->id, err);
	if (rc == 0)
		rc = container_check(op->container, err);
	if (rc == 0)
		rc = lac__block_place_check(
			op->offset, op->length, op->distance, granule_bytes, err);
	if (rc < 0)
		return rc;
	lac__block_granules(
		op->offset, op->length, op->distance, granule_bytes, &first, &count, &description);
	if (op->turned > count + (description != UINT64_MAX))
		return LAC__BAD_FIELD(err, "turns %" PRIu64 " granules of %" PRIu64, op->turned,
			count + (description != UINT64_MAX));
	if (op->slot > 0 &&
		(op->distance == 0 || op->slot >= granule_bytes / LAC__DESCRIPTION_BYTES))
		return LAC__BAD_FIELD(err, "slot %" PRIu32 " of the description", op->slot);
	if (op->type == LAC__OP_PUT && op->generation == 0)
		return LAC__BAD_FIELD(err, "generation 0");
	return 0;
}

static int range_check(const struct lac__op *op, uint32_t granule_bytes, struct lac_error *err)
{
	uint64_t most = op->type == LAC__OP_RELEASE ? op->count : 0;

	/* Granule 0 is the header's. */
	if (op->first < 1 || op->count < 1 ||
		!lac__range_ok(op->first, op->count, LAC__OFFSET_MAX_BYTES / granule_bytes))
		return LAC__BAD_FIELD(
			err, "granules %" PRIu64 " and %" PRIu64 " in all", op->first, op->count);
	if (op->turned > most)
		return LAC__BAD_FIELD(
			err, "turns %" PRIu64 " granules of %" PRIu64, op->turned, most);
	return container_check(op->container, err);
}

static int state_check(const struct lac__op *op, struct lac_error *err)
{
	if (op->state < LAC__CONTAINER_CREATING || op->state > LAC__CONTAINER_GONE)
		return LAC__BAD_FIELD(err, "container state %" PRIu32, op->state);
	if (op->kind != LAC__CONTAINER_ALIGNED && op->kind != LAC__CONTAINER_PACKED)
		return LAC__BAD_FIELD(err, "container kind %" PRIu32, op->kind);
	return container_check(op->container, err);
}

/* Every field that lac__op_load filled. */
static int op_check(const struct lac__op *op, uint32_t granule_bytes, struct lac_error *err)
{
	switch (op->type) {
	case LAC__OP_PUT:
	case LAC__OP_DELETE: return block_check(op, granule_bytes, err);
	case LAC__OP_RESERVE:
	case LAC__OP_RELEASE:
	case LAC__OP_HOLE: return range_check(op, granule_bytes, err);
	case LAC__OP_CONTAINER: return state_check(op, err);
	case LAC__OP_HIGH_WATER:
		if (op->first < 1 || op->count < 1 ||
			!lac__range_ok(op->first, op->count, LAC__ID_LIMIT))
			return LAC__BAD_FIELD(err, "ids %" PRIu64 " and %" PRIu64 " in all",
				op->first, op->count);
		return 0;
	default:
		if (op->first >= INDEX_PAGES_LIMIT)
			return LAC__BAD_FIELD(err, "index page %" PRIu64, op->first);
		return 0;
	}
}

/* The bytes that no field covers. */
static int op_reserved_check(const void *bytes, const struct lac__op *op, struct lac_error *err)
{
	const struct lac__disk_op *head = bytes;
	uint16_t known = op->type == LAC__OP_PUT ? LAC__OP_HAS_PAYLOAD : 0;
	uint32_t reserved = 0;

	if (lac__get16(head->flags) & ~known)
		return LAC__BAD_FIELD(err, "unknown flags %x", lac__get16(head->flags));
	if (op->type == LAC__OP_RESERVE || op->type == LAC__OP_RELEASE || op->type == LAC__OP_HOLE)
		reserved = lac__get32(((const struct lac__disk_range *)bytes)->reserved);
	if (op->type == LAC__OP_CONTAINER)
		reserved = lac__get32(((const struct lac__disk_container_op *)bytes)->reserved);
	if (reserved != 0)
		return LAC__BAD_FIELD(err, "reserved bytes are not zero");
	return 0;
}

/* The operation's own length against its type, its payload and the bytes that are left. */
static int op_size_check(const void *bytes, size_t left, struct lac__op *op, struct lac_error *err)
{
	const struct lac__disk_op *head = bytes;
	size_t fixed, size;

	if (left < sizeof(*head))
		return LAC__BAD_FIELD(err, "the record ends in it");
	fixed = lac__op_fixed_bytes(lac__get16(head->type));
	size = lac__get32(head->bytes);
	if (fixed == 0)
		return LAC__BAD_FIELD(err, "unknown type %u", lac__get16(head->type));
	if (size < fixed || size > left)
		return LAC__BAD_FIELD(
			err, "size %zu, want %zu at least and %zu at most", size, fixed, left);
	lac__op_load(bytes, op);
	if (op->has_payload && op->length > left)
		return LAC__BAD_FIELD(
			err, "payload of %" PRIu64 " bytes, %zu left", op->length, left);
	if (size != lac__op_bytes(op))
		return LAC__BAD_FIELD(err, "size %zu, want %zu", size, lac__op_bytes(op));
	if (op->has_payload && !lac__disk_is_zero((const uint8_t *)op->payload + op->length,
				       size - fixed - op->length))
		return LAC__BAD_FIELD(err, "padding is not zero");
	return 0;
}

static int ops_check(const struct lac__record *r, uint32_t granule_bytes, struct lac_error *err)
{
	const uint8_t *at = r->ops_at, *end = r->bytes + r->length;
	uint64_t touched = 0, limit = 4 * (uint64_t)r->pages + 8 * (uint64_t)r->ops;
	struct lac__op op;
	int rc;

	for (uint32_t n = 0; n < r->ops; n++) {
		rc = op_size_check(at, (size_t)(end - at), &op, err);
		if (rc == 0)
			rc = op_reserved_check(at, &op, err);
		if (rc == 0)
			rc = op_check(&op, granule_bytes, err);
		if (rc == 0) {
			touched += lac__op_page_count(&op, granule_bytes);
			if (touched > limit)
				rc = LAC__BAD_FIELD(err, "touches more pages than are listed");
		}
		if (rc < 0) {
			lac__error_prepend(
				err, "operation %" PRIu32 " at %zu", n, (size_t)(at - r->bytes));
			return rc;
		}
		at += lac__op_bytes(&op);
	}
	if (at != end)
		return LAC__BAD_FIELD(
			err, "%zu bytes after the last operation", (size_t)(end - at));
	return 0;
}

static int page_check(const struct lac__record_page *p, struct lac_error *err)
{
	static const uint64_t limits[] = {
		[LAC__PAGE_INDEX] = INDEX_PAGES_LIMIT,
		[LAC__PAGE_MAP] = MAP_PAGES_LIMIT,
		[LAC__PAGE_TABLE] = TABLE_PAGES_LIMIT,
		[LAC__PAGE_RETIRED] = RETIRED_PAGES_LIMIT,
	};

	if (p->ref.kind < LAC__PAGE_INDEX || p->ref.kind > LAC__PAGE_RETIRED)
		return LAC__BAD_FIELD(err, "page kind %" PRIu32, p->ref.kind);
	if ((p->ref.kind == LAC__PAGE_MAP) != (p->ref.container != 0))
		return LAC__BAD_FIELD(err, "page kind %" PRIu32 " of container %" PRIu32,
			p->ref.kind, p->ref.container);
	if (p->ref.no >= limits[p->ref.kind])
		return LAC__BAD_FIELD(err, "page number %" PRIu64, p->ref.no);
	if (p->prev_lsn >= LAC__LSN_LIMIT)
		return LAC__BAD_FIELD(err, "page lsn %" PRIu64, p->prev_lsn);
	return 0;
}

static int header_check(
	const struct lac__disk_record_header *d, size_t length, struct lac_error *err)
{
	if (length < sizeof(*d) || length > LAC__RECORD_BYTES_MAX)
		return LAC__BAD_FIELD(err, "record of %zu bytes", length);
	if (lac__get16(d->version) != LAC__RECORD_VERSION)
		return lac__error_set(err, -EOPNOTSUPP, LAC_REASON_FORMAT_UNKNOWN, 0, length,
			"record version %u, want %u", lac__get16(d->version), LAC__RECORD_VERSION);
	if (lac__get16(d->flags) != 0 || lac__get32(d->reserved) != 0)
		return LAC__BAD_FIELD(err, "reserved bytes are not zero");
	if (lac__get32(d->pages) > (length - sizeof(*d)) / LAC__RECORD_PAGE_BYTES)
		return LAC__BAD_FIELD(
			err, "%" PRIu32 " pages in %zu bytes", lac__get32(d->pages), length);
	if (lac__get32(d->ops) > LAC__RECORD_OPS_MAX)
		return LAC__BAD_FIELD(err, "%" PRIu32 " operations", lac__get32(d->ops));
	return 0;
}

int lac__record_decode(const void *bytes, size_t length, uint32_t granule_bytes,
	struct lac__record *ret, struct lac_error *err)
{
	const struct lac__disk_record_header *d = bytes;
	struct lac__record_page page;
	struct lac__record r;
	int rc;

	rc = header_check(d, length, err);
	if (rc < 0)
		return rc;
	r.bytes = bytes;
	r.length = length;
	r.pages = lac__get32(d->pages);
	r.ops = lac__get32(d->ops);
	r.ops_at = r.bytes + sizeof(*d) + r.pages * (size_t)LAC__RECORD_PAGE_BYTES;
	for (uint32_t n = 0; n < r.pages; n++) {
		lac__record_page_at(&r, n, &page);
		rc = page_check(&page, err);
		if (rc < 0) {
			lac__error_prepend(err, "page %" PRIu32, n);
			return rc;
		}
	}
	rc = ops_check(&r, granule_bytes, err);
	if (rc == 0)
		*ret = r;
	return rc;
}
