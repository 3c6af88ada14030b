/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/entry.c - the entries that the bodies of index and table pages consist of.
 *
 * An index entry is 32 bytes because its number decides how many blocks a page, and so the memory
 * budget, holds: the state stands in the six low bits that every offset leaves free, the distance
 * in the sixteen high bits that no length reaches.
 */
#include "format/entry.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/checked.h"
#include "format/block.h"
#include "format/container.h"
#include "format/internal.h"
#include "format/limits.h"

struct disk_entry {
	lac_le32 container;	  /* 0..4 */
	lac_le32 checksum;	  /* 4..8 */
	lac_le64 place;		  /* 8..16: offset | state */
	lac_le64 length_distance; /* 16..24: distance << 48 | length */
	lac_le64 owner;		  /* 24..32 */
};
_Static_assert(sizeof(struct disk_entry) == 32, "size of an index entry");
_Static_assert(
	sizeof(struct disk_entry) * LAC__INDEX_ENTRIES == LAC__PAGE_BODY_BYTES, "index page");

#define STATE_MASK     (LAC__PACK_ALIGN_BYTES - 1)
#define DISTANCE_SHIFT 48
#define LENGTH_MASK    ((UINT64_C(1) << DISTANCE_SHIFT) - 1)
_Static_assert(LAC__LENGTH_MAX_BYTES <= LENGTH_MASK, "a length leaves the distance's bits free");

static int entry_check(const struct lac__entry *e, unsigned slot, struct lac_error *err)
{
	if (e->state > LAC__ENTRY_DEAD)
		return LAC__BAD_FIELD(err, "entry %u: state %" PRIu32, slot, e->state);
	if (e->state != LAC__ENTRY_LIVE) {
		if (e->container || e->offset || e->length || e->owner || e->checksum ||
			e->distance)
			return LAC__BAD_FIELD(err, "entry %u: not live, but not empty", slot);
		return 0;
	}
	if (e->container == 0)
		return LAC__BAD_FIELD(err, "entry %u: container 0", slot);
	return lac__block_place_check(
		e->offset, e->length, e->distance, LAC__GRANULE_MIN_BYTES, err);
}

int lac__entry_get(
	const struct lac__page *page, unsigned slot, struct lac__entry *ret, struct lac_error *err)
{
	const struct disk_entry *d = (const struct disk_entry *)page->body + slot;
	uint64_t place = lac__get64(d->place), packed = lac__get64(d->length_distance);
	struct lac__entry e;
	int rc;

	assert(slot < LAC__INDEX_ENTRIES);
	e.state = place & STATE_MASK;
	e.container = lac__get32(d->container);
	e.offset = place & ~(uint64_t)STATE_MASK;
	e.length = packed & LENGTH_MASK;
	e.owner = lac__get64(d->owner);
	e.checksum = lac__get32(d->checksum);
	e.distance = (uint32_t)(packed >> DISTANCE_SHIFT);
	rc = entry_check(&e, slot, err);
	if (rc == 0)
		*ret = e;
	return rc;
}

void lac__entry_put(struct lac__page *page, unsigned slot, const struct lac__entry *entry)
{
	struct disk_entry *d = (struct disk_entry *)page->body + slot;

	assert(slot < LAC__INDEX_ENTRIES && entry->state <= LAC__ENTRY_DEAD);
	if (entry->state != LAC__ENTRY_LIVE) {
		memset(d, 0, sizeof(*d));
		d->place = lac__put64(entry->state);
		return;
	}
	assert(entry->offset % LAC__PACK_ALIGN_BYTES == 0 && entry->length <= LENGTH_MASK &&
		entry->distance <= LAC__DISTANCE_MAX);
	d->container = lac__put32(entry->container);
	d->checksum = lac__put32(entry->checksum);
	d->place = lac__put64(entry->offset | entry->state);
	d->length_distance =
		lac__put64((uint64_t)entry->distance << DISTANCE_SHIFT | entry->length);
	d->owner = lac__put64(entry->owner);
}

struct disk_table_entry {
	uint8_t state;		/* 0..1 */
	uint8_t kind;		/* 1..2 */
	lac_le16 flags;		/* 2..4, zero */
	lac_le32 reserved1;	/* 4..8 */
	lac_le64 tail_bytes;	/* 8..16 */
	lac_le64 live_bytes;	/* 16..24 */
	lac_le64 live_blocks;	/* 24..32 */
	lac_le64 dead_granules; /* 32..40 */
	lac_le64 hole_granules; /* 40..48 */
	lac_le64 birth_lsn;	/* 48..56 */
	lac_le64 reserved2;	/* 56..64 */
};
_Static_assert(sizeof(struct disk_table_entry) == 64, "size of a table entry");
_Static_assert(
	sizeof(struct disk_table_entry) * LAC__TABLE_ENTRIES == LAC__PAGE_BODY_BYTES, "table page");

#define GRANULES_MAX (LAC__OFFSET_MAX_BYTES / LAC__GRANULE_MIN_BYTES)
#define BLOCKS_MAX   (LAC__OFFSET_MAX_BYTES / LAC__DESCRIPTION_BYTES)

int lac__table_check(const struct lac__table_entry *t, unsigned slot, struct lac_error *err)
{
	bool empty = !t->tail_bytes && !t->live_bytes && !t->live_blocks && !t->dead_granules &&
		     !t->hole_granules;

	if (t->state > LAC__CONTAINER_GONE)
		return LAC__BAD_FIELD(err, "container entry %u: state %" PRIu32, slot, t->state);
	if (t->state == LAC__CONTAINER_NONE) {
		if (t->kind || !empty || t->birth_lsn)
			return LAC__BAD_FIELD(
				err, "container entry %u: unused, but not empty", slot);
		return 0;
	}
	if (t->kind != LAC__CONTAINER_ALIGNED && t->kind != LAC__CONTAINER_PACKED)
		return LAC__BAD_FIELD(err, "container entry %u: kind %" PRIu32, slot, t->kind);
	if (t->birth_lsn < 1 || t->birth_lsn >= LAC__LSN_LIMIT)
		return LAC__BAD_FIELD(
			err, "container entry %u: birth lsn %" PRIu64, slot, t->birth_lsn);
	if (t->state == LAC__CONTAINER_GONE && !empty)
		return LAC__BAD_FIELD(err, "container entry %u: gone, but not empty", slot);
	if (t->tail_bytes > LAC__OFFSET_MAX_BYTES || t->live_bytes > LAC__OFFSET_MAX_BYTES ||
		t->live_blocks > BLOCKS_MAX || t->dead_granules > GRANULES_MAX ||
		t->hole_granules > GRANULES_MAX || (t->live_blocks == 0 && t->live_bytes != 0))
		return LAC__BAD_FIELD(err,
			"container entry %u: tail %" PRIu64 ", live %" PRIu64 " bytes in %" PRIu64
			" blocks, granules dead %" PRIu64 ", holes %" PRIu64,
			slot, t->tail_bytes, t->live_bytes, t->live_blocks, t->dead_granules,
			t->hole_granules);
	return 0;
}

int lac__table_get(const struct lac__page *page, unsigned slot, struct lac__table_entry *ret,
	struct lac_error *err)
{
	const struct disk_table_entry *d = (const struct disk_table_entry *)page->body + slot;
	struct lac__table_entry t;
	int rc;

	assert(slot < LAC__TABLE_ENTRIES);
	if (lac__get16(d->flags) || lac__get32(d->reserved1) || lac__get64(d->reserved2))
		return LAC__BAD_FIELD(err, "container entry %u: reserved bytes are not zero", slot);
	t.state = d->state;
	t.kind = d->kind;
	t.tail_bytes = lac__get64(d->tail_bytes);
	t.live_bytes = lac__get64(d->live_bytes);
	t.live_blocks = lac__get64(d->live_blocks);
	t.dead_granules = lac__get64(d->dead_granules);
	t.hole_granules = lac__get64(d->hole_granules);
	t.birth_lsn = lac__get64(d->birth_lsn);
	rc = lac__table_check(&t, slot, err);
	if (rc == 0)
		*ret = t;
	return rc;
}

void lac__table_put(struct lac__page *page, unsigned slot, const struct lac__table_entry *entry)
{
	struct disk_table_entry *d = (struct disk_table_entry *)page->body + slot;

	assert(slot < LAC__TABLE_ENTRIES);
	memset(d, 0, sizeof(*d));
	d->state = (uint8_t)entry->state;
	d->kind = (uint8_t)entry->kind;
	d->tail_bytes = lac__put64(entry->tail_bytes);
	d->live_bytes = lac__put64(entry->live_bytes);
	d->live_blocks = lac__put64(entry->live_blocks);
	d->dead_granules = lac__put64(entry->dead_granules);
	d->hole_granules = lac__put64(entry->hole_granules);
	d->birth_lsn = lac__put64(entry->birth_lsn);
}
