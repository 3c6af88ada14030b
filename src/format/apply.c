/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/apply.c - what an operation does to a page.
 *
 * The only code that changes pages: commit, redo and check go through it, so they can't disagree
 * on what a record means. It looks at nothing but the operation and the one page, since redo has
 * pages at different LSNs before it; and it trusts neither, since a page that verifies may still
 * contradict the journal.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "format/container.h"
#include "format/entry.h"
#include "format/op.h"

#define CONTRADICTION(err, ...)                                                                    \
	lac__error_set((err), -EUCLEAN, LAC_REASON_RECORD_BAD, 0, 0, __VA_ARGS__)

/* ---- which pages ---- */

uint64_t lac__op_description_offset(const struct lac__op *op, uint32_t granule_bytes)
{
	uint64_t payload = op->offset / granule_bytes;

	if (op->distance == 0)
		return op->offset - LAC__DESCRIPTION_BYTES;
	return (payload - op->distance) * granule_bytes + op->slot * LAC__DESCRIPTION_BYTES;
}

void lac__block_granules(uint64_t offset, uint64_t length, uint32_t distance,
	uint32_t granule_bytes, uint64_t *ret_first, uint64_t *ret_count,
	uint64_t *ret_description_granule)
{
	uint64_t start = distance == 0 ? offset - LAC__DESCRIPTION_BYTES : offset;
	uint64_t end = lac__block_end(offset, length, distance, granule_bytes);

	*ret_first = start / granule_bytes;
	*ret_count = (end + granule_bytes - 1) / granule_bytes - *ret_first;
	*ret_description_granule = distance == 0 ? UINT64_MAX : *ret_first - distance;
}

/* Granules of one container that an operation concerns: a range, and at most one in front of it. */
struct extent {
	uint64_t first, count; /* count may be 0 */
	uint64_t alone;	       /* or UINT64_MAX */
};

static struct extent extent_of(const struct lac__op *op, uint32_t granule_bytes)
{
	struct extent x = {0, 0, UINT64_MAX};

	switch (op->type) {
	case LAC__OP_PUT:
	case LAC__OP_DELETE:
		lac__block_granules(op->offset, op->length, op->distance, granule_bytes, &x.first,
			&x.count, &x.alone);
		break;
	case LAC__OP_RESERVE:
	case LAC__OP_RELEASE:
	case LAC__OP_HOLE:
		x.first = op->first;
		x.count = op->count;
		break;
	case LAC__OP_CONTAINER: x.count = op->state == LAC__CONTAINER_CREATING; break;
	}
	return x;
}

/* Pages [*ret_from, *ret_to) that hold units [first, first + count). */
static void pages_of(
	uint64_t first, uint64_t count, uint64_t per_page, uint64_t *ret_from, uint64_t *ret_to)
{
	*ret_from = first / per_page;
	*ret_to = count == 0 ? *ret_from : (first + count - 1) / per_page + 1;
}

typedef int visit_fn(void *arg, const struct lac__page_ref *ref);

static int visit_range(
	uint32_t kind, uint32_t container, uint64_t from, uint64_t to, visit_fn *visit, void *arg)
{
	int rc = 0;

	for (uint64_t no = from; no < to && rc == 0; no++)
		rc = visit(arg, &(struct lac__page_ref){kind, container, no});
	return rc;
}

static int visit_maps(const struct lac__op *op, const struct extent *x, visit_fn *visit, void *arg)
{
	uint64_t from, to, alone = x->alone / LAC__MAP_GRANULES;
	int rc = 0;

	pages_of(x->first, x->count, LAC__MAP_GRANULES, &from, &to);
	if (x->alone != UINT64_MAX && (alone != from || from == to))
		rc = visit_range(LAC__PAGE_MAP, op->container, alone, alone + 1, visit, arg);
	if (rc == 0)
		rc = visit_range(LAC__PAGE_MAP, op->container, from, to, visit, arg);
	return rc;
}

int lac__op_pages(const struct lac__op *op, uint32_t granule_bytes,
	int (*visit)(void *arg, const struct lac__page_ref *ref), void *arg)
{
	uint64_t from, to;
	struct extent x;
	int rc = 0;

	switch (op->type) {
	case LAC__OP_HIGH_WATER:
		pages_of(op->first, op->count, LAC__INDEX_ENTRIES, &from, &to);
		return visit_range(LAC__PAGE_INDEX, 0, from, to, visit, arg);
	case LAC__OP_RETIRE:
		from = op->first / LAC__RETIRED_BITS;
		return visit_range(LAC__PAGE_RETIRED, 0, from, from + 1, visit, arg);
	case LAC__OP_PUT:
	case LAC__OP_DELETE:
		from = op->id / LAC__INDEX_ENTRIES;
		rc = visit_range(LAC__PAGE_INDEX, 0, from, from + 1, visit, arg);
		break;
	}
	x = extent_of(op, granule_bytes);
	if (rc == 0)
		rc = visit_maps(op, &x, visit, arg);
	from = op->container / LAC__TABLE_ENTRIES;
	if (rc == 0)
		rc = visit_range(LAC__PAGE_TABLE, 0, from, from + 1, visit, arg);
	return rc;
}

uint64_t lac__op_page_count(const struct lac__op *op, uint32_t granule_bytes)
{
	struct extent x = extent_of(op, granule_bytes);
	uint64_t from, to, others = 1; /* table or retired */

	if (op->type == LAC__OP_HIGH_WATER) {
		pages_of(op->first, op->count, LAC__INDEX_ENTRIES, &from, &to);
		return to - from;
	}
	if (op->type == LAC__OP_PUT || op->type == LAC__OP_DELETE)
		others += 2; /* index, and the description's map page */
	pages_of(x.first, x.count, LAC__MAP_GRANULES, &from, &to);
	return to - from + others;
}

/* ---- index ---- */

static int index_put(const struct lac__op *op, unsigned slot, const struct lac__entry *entry,
	struct lac__page *page, struct lac_error *err)
{
	if (entry->state != LAC__ENTRY_FREE)
		return CONTRADICTION(err,
			"put of id %" PRIu64 ": its entry is in state %" PRIu32 ", want free",
			op->id, entry->state);
	lac__entry_put(page, slot,
		&(struct lac__entry){
			.state = LAC__ENTRY_LIVE,
			.container = op->container,
			.offset = op->offset,
			.length = op->length,
			.owner = op->owner,
			.checksum = op->checksum,
			.distance = op->distance,
		});
	return 0;
}

static int index_delete(const struct lac__op *op, unsigned slot, const struct lac__entry *entry,
	struct lac__page *page, struct lac_error *err)
{
	if (entry->state != LAC__ENTRY_LIVE)
		return CONTRADICTION(err,
			"delete of id %" PRIu64 ": its entry is in state %" PRIu32 ", want live",
			op->id, entry->state);
	if (entry->container != op->container || entry->offset != op->offset ||
		entry->length != op->length || entry->distance != op->distance)
		return CONTRADICTION(err,
			"delete of id %" PRIu64 ": container %" PRIu32 ", offset %" PRIu64
			", length %" PRIu64 ", distance %" PRIu32 ", want %" PRIu32 ", %" PRIu64
			", %" PRIu64 ", %" PRIu32,
			op->id, op->container, op->offset, op->length, op->distance,
			entry->container, entry->offset, entry->length, entry->distance);
	lac__entry_put(page, slot, &(struct lac__entry){.state = LAC__ENTRY_DEAD});
	return 0;
}

/* HIGH_WATER gives a page its first LSN and leaves its body alone. */
static int index_apply(const struct lac__op *op, struct lac__page *page, struct lac_error *err)
{
	unsigned slot = (unsigned)(op->id % LAC__INDEX_ENTRIES);
	struct lac__entry entry;
	int rc;

	if (op->type != LAC__OP_PUT && op->type != LAC__OP_DELETE)
		return 0;
	if (op->id / LAC__INDEX_ENTRIES != page->ref.no)
		return 0;
	rc = lac__entry_get(page, slot, &entry, err);
	if (rc < 0)
		return rc;
	return op->type == LAC__OP_PUT ? index_put(op, slot, &entry, page, err)
				       : index_delete(op, slot, &entry, page, err);
}

/* ---- space map ---- */

/* The state of a granule after op, or -1 where it may not be in state `from`. */
static int granule_next(const struct lac__op *op, uint8_t from)
{
	bool live = from >= 1 && from <= LAC__GRANULE_LIVE_MAX;

	switch (op->type) {
	case LAC__OP_PUT:
		if (from == LAC__GRANULE_HOLE || from == LAC__GRANULE_RESERVED ||
			from == LAC__GRANULE_DEAD)
			return 1;
		return live && from < LAC__GRANULE_LIVE_MAX ? from + 1 : -1;
	case LAC__OP_DELETE:
		if (!live)
			return -1;
		return from == 1 ? LAC__GRANULE_DEAD : from - 1;
	case LAC__OP_RESERVE: return from == LAC__GRANULE_HOLE ? LAC__GRANULE_RESERVED : -1;
	case LAC__OP_RELEASE:
		if (from == LAC__GRANULE_HOLE || from == LAC__GRANULE_RESERVED)
			return LAC__GRANULE_DEAD;
		return live || from == LAC__GRANULE_DEAD ? from : -1;
	case LAC__OP_HOLE: return from == LAC__GRANULE_DEAD ? LAC__GRANULE_HOLE : -1;
	default: /* CONTAINER, CREATING */
		return from == LAC__GRANULE_HOLE ? LAC__GRANULE_HEADER : -1;
	}
}

/* The part [*ret_from, *ret_to) of body that [first, first + count) covers; empty if none. */
static void clip(const struct lac__page *page, uint64_t first, uint64_t count, unsigned *ret_from,
	unsigned *ret_to)
{
	uint64_t base = page->ref.no * LAC__MAP_GRANULES, limit = base + LAC__MAP_GRANULES;
	uint64_t end = first + count;

	*ret_from = *ret_to = 0;
	if (count == 0 || end <= base || first >= limit)
		return;
	*ret_from = first > base ? (unsigned)(first - base) : 0;
	*ret_to = end < limit ? (unsigned)(end - base) : LAC__MAP_GRANULES;
}

static int map_range(const struct lac__op *op, uint64_t first, uint64_t count,
	struct lac__page *page, struct lac_error *err)
{
	unsigned from, to;
	int next;

	clip(page, first, count, &from, &to);
	for (unsigned i = from; i < to; i++) {
		next = granule_next(op, page->body[i]);
		if (next < 0)
			return CONTRADICTION(err,
				"operation of type %" PRIu32 " on container %" PRIu32
				": granule %" PRIu64 " is in state %u",
				op->type, op->container, page->ref.no * LAC__MAP_GRANULES + i,
				page->body[i]);
		page->body[i] = (uint8_t)next;
	}
	return 0;
}

static int map_apply(const struct lac__op *op, uint32_t granule_bytes, struct lac__page *page,
	struct lac_error *err)
{
	struct extent x;
	int rc = 0;

	if (op->type == LAC__OP_HIGH_WATER || op->type == LAC__OP_RETIRE ||
		op->container != page->ref.container)
		return 0;
	x = extent_of(op, granule_bytes);
	if (x.alone != UINT64_MAX)
		rc = map_range(op, x.alone, 1, page, err);
	if (rc == 0)
		rc = map_range(op, x.first, x.count, page, err);
	return rc;
}

/* Granules of body in [first, first + count) that op turns. */
static uint64_t turns_in(
	const struct lac__op *op, uint64_t first, uint64_t count, const struct lac__page *page)
{
	uint64_t turns = 0;
	unsigned from, to;

	clip(page, first, count, &from, &to);
	for (unsigned i = from; i < to; i++) {
		uint8_t state = page->body[i];

		if (op->type == LAC__OP_PUT)
			turns += state == LAC__GRANULE_DEAD;
		else if (op->type == LAC__OP_DELETE)
			turns += state == 1;
		else
			turns += state == LAC__GRANULE_HOLE || state == LAC__GRANULE_RESERVED;
	}
	return turns;
}

uint64_t lac__op_turns(
	const struct lac__op *op, uint32_t granule_bytes, const struct lac__page *map_page)
{
	struct extent x;
	uint64_t turns;

	if (op->type != LAC__OP_PUT && op->type != LAC__OP_DELETE && op->type != LAC__OP_RELEASE)
		return 0;
	if (map_page->ref.kind != LAC__PAGE_MAP || map_page->ref.container != op->container)
		return 0;
	x = extent_of(op, granule_bytes);
	turns = turns_in(op, x.first, x.count, map_page);
	if (x.alone != UINT64_MAX)
		turns += turns_in(op, x.alone, 1, map_page);
	return turns;
}

/* ---- container table ---- */

/* True when a container in state `from` may go to state `to`. */
static bool state_follows(uint32_t from, uint32_t to, uint64_t live_blocks)
{
	switch (to) {
	case LAC__CONTAINER_CREATING: return from == LAC__CONTAINER_NONE;
	case LAC__CONTAINER_ACTIVE: return from == LAC__CONTAINER_CREATING;
	case LAC__CONTAINER_SEALED: return from == LAC__CONTAINER_ACTIVE;
	case LAC__CONTAINER_DROPPING:
		return live_blocks == 0 &&
		       (from == LAC__CONTAINER_CREATING || from == LAC__CONTAINER_ACTIVE ||
			       from == LAC__CONTAINER_SEALED);
	case LAC__CONTAINER_GONE:
		return from == LAC__CONTAINER_CREATING || from == LAC__CONTAINER_DROPPING;
	default: return false;
	}
}

static int table_state(const struct lac__op *op, uint32_t granule_bytes, uint64_t lsn,
	struct lac__table_entry *t, struct lac_error *err)
{
	if (!state_follows(t->state, op->state, t->live_blocks))
		return CONTRADICTION(err,
			"container %" PRIu32 ": state %" PRIu32 " to %" PRIu32 " with %" PRIu64
			" live blocks",
			op->container, t->state, op->state, t->live_blocks);
	if (t->state != LAC__CONTAINER_NONE && t->kind != op->kind)
		return CONTRADICTION(err, "container %" PRIu32 ": kind %" PRIu32 ", want %" PRIu32,
			op->container, op->kind, t->kind);
	if (op->state == LAC__CONTAINER_CREATING)
		*t = (struct lac__table_entry){
			.kind = op->kind, .tail_bytes = granule_bytes, .birth_lsn = lsn};
	else if (op->state == LAC__CONTAINER_GONE)
		*t = (struct lac__table_entry){.kind = t->kind, .birth_lsn = t->birth_lsn};
	t->state = op->state;
	return 0;
}

/* What may happen in a container of which state. */
static bool state_permits(uint32_t state, uint32_t op_type)
{
	switch (op_type) {
	case LAC__OP_PUT:
	case LAC__OP_RESERVE: return state == LAC__CONTAINER_ACTIVE;
	case LAC__OP_DELETE:
		return state == LAC__CONTAINER_ACTIVE || state == LAC__CONTAINER_SEALED;
	default:
		return state == LAC__CONTAINER_ACTIVE || state == LAC__CONTAINER_SEALED ||
		       state == LAC__CONTAINER_DROPPING;
	}
}

static bool take(uint64_t *counter, uint64_t amount)
{
	if (*counter < amount)
		return false;
	*counter -= amount;
	return true;
}

static void raise_tail(struct lac__table_entry *t, uint64_t end)
{
	if (end > t->tail_bytes)
		t->tail_bytes = end;
}

/* False where a counter would fall below zero; overflows are found by lac__table_check, as every
   addend is below 2^51. */
static bool table_count(
	const struct lac__op *op, uint32_t granule_bytes, struct lac__table_entry *t)
{
	switch (op->type) {
	case LAC__OP_PUT:
		t->live_blocks++;
		t->live_bytes += op->length;
		raise_tail(t, lac__block_end(op->offset, op->length, op->distance, granule_bytes));
		return take(&t->dead_granules, op->turned);
	case LAC__OP_DELETE:
		t->dead_granules += op->turned;
		return take(&t->live_blocks, 1) && take(&t->live_bytes, op->length);
	case LAC__OP_RESERVE: raise_tail(t, (op->first + op->count) * granule_bytes); return true;
	case LAC__OP_RELEASE: t->dead_granules += op->turned; return true;
	default: /* HOLE */
		t->hole_granules += op->count;
		return take(&t->dead_granules, op->count);
	}
}

static int table_apply(const struct lac__op *op, uint32_t granule_bytes, uint64_t lsn,
	struct lac__page *page, struct lac_error *err)
{
	unsigned slot = op->container % LAC__TABLE_ENTRIES;
	struct lac__table_entry t;
	int rc;

	if (op->type == LAC__OP_HIGH_WATER || op->type == LAC__OP_RETIRE ||
		op->container / LAC__TABLE_ENTRIES != page->ref.no)
		return 0;
	rc = lac__table_get(page, slot, &t, err);
	if (rc < 0)
		return rc;
	if (op->type == LAC__OP_CONTAINER)
		rc = table_state(op, granule_bytes, lsn, &t, err);
	else if (!state_permits(t.state, op->type))
		rc = CONTRADICTION(err,
			"operation of type %" PRIu32 " on container %" PRIu32
			", which is in state %" PRIu32,
			op->type, op->container, t.state);
	else if (!table_count(op, granule_bytes, &t) || lac__table_check(&t, slot, NULL) < 0)
		rc = CONTRADICTION(err,
			"operation of type %" PRIu32 " on container %" PRIu32
			": a count leaves its bounds",
			op->type, op->container);
	if (rc == 0)
		lac__table_put(page, slot, &t);
	return rc;
}

/* ---- retired index pages ---- */

static int retired_apply(const struct lac__op *op, struct lac__page *page, struct lac_error *err)
{
	unsigned bit = (unsigned)(op->first % LAC__RETIRED_BITS);
	uint8_t mask = (uint8_t)(1u << bit % 8);

	if (op->type != LAC__OP_RETIRE || op->first / LAC__RETIRED_BITS != page->ref.no)
		return 0;
	if (page->body[bit / 8] & mask)
		return CONTRADICTION(err, "index page %" PRIu64 " is retired twice", op->first);
	page->body[bit / 8] |= mask;
	return 0;
}

int lac__op_apply(const struct lac__op *op, uint32_t granule_bytes, uint64_t lsn,
	struct lac__page *page, struct lac_error *err)
{
	assert(lac__is_power_of_two(granule_bytes));
	switch (page->ref.kind) {
	case LAC__PAGE_INDEX: return index_apply(op, page, err);
	case LAC__PAGE_MAP: return map_apply(op, granule_bytes, page, err);
	case LAC__PAGE_TABLE: return table_apply(op, granule_bytes, lsn, page, err);
	case LAC__PAGE_RETIRED: return retired_apply(op, page, err);
	default: return CONTRADICTION(err, "page kind %" PRIu32, page->ref.kind);
	}
}
