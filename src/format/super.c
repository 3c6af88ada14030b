/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/super.c - the superblock.
 *
 * Each copy is verified alone; which of two valid ones is current is the caller's comparison of
 * checkpoint numbers. Bounds are checked as strictly as the meaning of a field allows: a field
 * that passes is used for arithmetic by every layer above.
 */
#include "format/super.h"

#include <errno.h>
#include <inttypes.h>

#include "base/checked.h"
#include "format/internal.h"
#include "format/limits.h"
#include "format/record.h"

#define MAGIC	       "LACSUPER"
#define INCOMPAT_KNOWN UINT64_C(0)

struct disk_super {
	struct lac__disk_prefix prefix;		  /* 0..32 */
	lac_le64 incompat;			  /* 32..40 */
	lac_le64 ro_compat;			  /* 40..48 */
	lac_le64 compat;			  /* 48..56 */
	lac_le32 granule_bytes;			  /* 56..60 */
	lac_le32 copy;				  /* 60..64 */
	lac_le64 checkpoint;			  /* 64..72 */
	lac_le64 redo_lsn;			  /* 72..80 */
	lac_le64 max_page_lsn;			  /* 80..88 */
	lac_le64 next_id;			  /* 88..96 */
	lac_le64 id_high_water;			  /* 96..104 */
	lac_le32 next_container;		  /* 104..108 */
	lac_le32 flags;				  /* 108..112 */
	lac_le64 end_lsn;			  /* 112..120 */
	lac_le64 container_bytes;		  /* 120..128 */
	lac_le32 inline_max_bytes;		  /* 128..132 */
	lac_le32 reserved1;			  /* 132..136 */
	lac_le64 segment_bytes;			  /* 136..144 */
	lac_le64 journal_seq;			  /* 144..152 */
	lac_le64 created_ns;			  /* 152..160 */
	lac_le64 filesystem_type;		  /* 160..168 */
	lac_le64 filesystem_id;			  /* 168..176 */
	lac_le32 reclaim_unit_bytes;		  /* 176..180 */
	lac_le32 place_flags;			  /* 180..184 */
	uint8_t reserved2[LAC__PAGE_BYTES - 184]; /* 184..4096 */
};
_Static_assert(sizeof(struct disk_super) == LAC__PAGE_BYTES, "a superblock is a page");
_Static_assert(offsetof(struct disk_super, checkpoint) == 64, "layout of the superblock");
_Static_assert(offsetof(struct disk_super, end_lsn) == 112, "layout of the superblock");
_Static_assert(offsetof(struct disk_super, journal_seq) == 144, "layout of the superblock");
_Static_assert(offsetof(struct disk_super, reserved2) == 184, "layout of the superblock");

void lac__super_encode(const struct lac__super *super, void *ret_page)
{
	struct disk_super *d = ret_page;

	memset(d, 0, sizeof(*d));
	d->incompat = lac__put64(super->incompat);
	d->ro_compat = lac__put64(super->ro_compat);
	d->compat = lac__put64(super->compat);
	d->granule_bytes = lac__put32(super->granule_bytes);
	d->copy = lac__put32(super->copy);
	d->checkpoint = lac__put64(super->checkpoint);
	d->redo_lsn = lac__put64(super->redo_lsn);
	d->max_page_lsn = lac__put64(super->max_page_lsn);
	d->next_id = lac__put64(super->next_id);
	d->id_high_water = lac__put64(super->id_high_water);
	d->next_container = lac__put32(super->next_container);
	d->flags = lac__put32(super->flags);
	d->end_lsn = lac__put64(super->end_lsn);
	d->container_bytes = lac__put64(super->container_bytes);
	d->inline_max_bytes = lac__put32(super->inline_max_bytes);
	d->segment_bytes = lac__put64(super->segment_bytes);
	d->journal_seq = lac__put64(super->journal_seq);
	d->created_ns = lac__put64(super->created_ns);
	d->filesystem_type = lac__put64(super->filesystem_type);
	d->filesystem_id = lac__put64(super->filesystem_id);
	d->reclaim_unit_bytes = lac__put32(super->reclaim_unit_bytes);
	d->place_flags = lac__put32(super->place_flags);
	lac__disk_seal(d, MAGIC, &super->uuid);
}

static void super_load(const struct disk_super *d, struct lac__super *ret)
{
	ret->uuid = d->prefix.uuid;
	ret->incompat = lac__get64(d->incompat);
	ret->ro_compat = lac__get64(d->ro_compat);
	ret->compat = lac__get64(d->compat);
	ret->granule_bytes = lac__get32(d->granule_bytes);
	ret->copy = lac__get32(d->copy);
	ret->flags = lac__get32(d->flags);
	ret->checkpoint = lac__get64(d->checkpoint);
	ret->redo_lsn = lac__get64(d->redo_lsn);
	ret->max_page_lsn = lac__get64(d->max_page_lsn);
	ret->end_lsn = lac__get64(d->end_lsn);
	ret->next_id = lac__get64(d->next_id);
	ret->id_high_water = lac__get64(d->id_high_water);
	ret->next_container = lac__get32(d->next_container);
	ret->inline_max_bytes = lac__get32(d->inline_max_bytes);
	ret->container_bytes = lac__get64(d->container_bytes);
	ret->segment_bytes = lac__get64(d->segment_bytes);
	ret->journal_seq = lac__get64(d->journal_seq);
	ret->created_ns = lac__get64(d->created_ns);
	ret->filesystem_type = lac__get64(d->filesystem_type);
	ret->filesystem_id = lac__get64(d->filesystem_id);
	ret->reclaim_unit_bytes = lac__get32(d->reclaim_unit_bytes);
	ret->place_flags = lac__get32(d->place_flags);
}

/* What mkfs chose, or a checkpoint copied from it. */
static int check_geometry(const struct lac__super *s, struct lac_error *err)
{
	if (!lac__is_power_of_two(s->granule_bytes) || s->granule_bytes < LAC__GRANULE_MIN_BYTES ||
		s->granule_bytes > LAC__GRANULE_MAX_BYTES)
		return LAC__BAD_FIELD(err, "copy %" PRIu32 ": granule of %" PRIu32 " bytes",
			s->copy, s->granule_bytes);
	if (s->container_bytes < 2 * (uint64_t)s->granule_bytes ||
		s->container_bytes > LAC__OFFSET_MAX_BYTES)
		return LAC__BAD_FIELD(err, "copy %" PRIu32 ": containers of %" PRIu64 " bytes",
			s->copy, s->container_bytes);
	if (s->segment_bytes % LAC__PAGE_BYTES != 0 || s->segment_bytes < LAC__SEGMENT_MIN_BYTES ||
		s->segment_bytes > LAC__SEGMENT_MAX_BYTES)
		return LAC__BAD_FIELD(err,
			"copy %" PRIu32 ": journal segments of %" PRIu64 " bytes", s->copy,
			s->segment_bytes);
	if (s->inline_max_bytes > LAC__RECORD_BYTES_MAX)
		return LAC__BAD_FIELD(err, "copy %" PRIu32 ": inline limit of %" PRIu32 " bytes",
			s->copy, s->inline_max_bytes);
	return 0;
}

/* What each checkpoint sets anew. */
static int check_state(const struct lac__super *s, struct lac_error *err)
{
	bool clean = s->flags & LAC__SUPER_CLEAN;

	if (s->flags & ~(uint32_t)LAC__SUPER_CLEAN)
		return LAC__BAD_FIELD(
			err, "copy %" PRIu32 ": unknown flags %" PRIx32, s->copy, s->flags);
	if (s->checkpoint < 1 || s->checkpoint >= LAC__CHECKPOINT_LIMIT)
		return LAC__BAD_FIELD(
			err, "copy %" PRIu32 ": checkpoint %" PRIu64, s->copy, s->checkpoint);
	if (s->redo_lsn < 1 || s->redo_lsn >= LAC__LSN_LIMIT)
		return LAC__BAD_FIELD(
			err, "copy %" PRIu32 ": redo lsn %" PRIu64, s->copy, s->redo_lsn);
	if (s->max_page_lsn >= LAC__LSN_LIMIT)
		return LAC__BAD_FIELD(err, "copy %" PRIu32 ": largest page lsn %" PRIu64, s->copy,
			s->max_page_lsn);
	if (s->end_lsn >= LAC__LSN_LIMIT || (!clean && s->end_lsn != 0))
		return LAC__BAD_FIELD(err, "copy %" PRIu32 ": end lsn %" PRIu64 ", flags %" PRIx32,
			s->copy, s->end_lsn, s->flags);
	if (clean && (s->max_page_lsn > s->end_lsn || s->redo_lsn - 1 > s->end_lsn))
		return LAC__BAD_FIELD(err,
			"copy %" PRIu32 ": clean at lsn %" PRIu64 ", below page lsn %" PRIu64
			" or redo lsn %" PRIu64,
			s->copy, s->end_lsn, s->max_page_lsn, s->redo_lsn);
	if (s->next_id < 1 || s->id_high_water > LAC__ID_LIMIT || s->next_id > s->id_high_water)
		return LAC__BAD_FIELD(err,
			"copy %" PRIu32 ": next id %" PRIu64 ", high water %" PRIu64, s->copy,
			s->next_id, s->id_high_water);
	if (s->next_container < 1)
		return LAC__BAD_FIELD(err, "copy %" PRIu32 ": next container 0", s->copy);
	if (s->journal_seq < 1 || s->journal_seq >= LAC__SEQ_LIMIT)
		return LAC__BAD_FIELD(
			err, "copy %" PRIu32 ": journal segment %" PRIu64, s->copy, s->journal_seq);
	return 0;
}

static int check_reserved(const struct disk_super *d, uint32_t copy, struct lac_error *err)
{
	if (lac__get32(d->reserved1) != 0 || !lac__disk_is_zero(d->reserved2, sizeof(d->reserved2)))
		return LAC__BAD_FIELD(err, "copy %" PRIu32 ": reserved bytes are not zero", copy);
	return 0;
}

int lac__super_decode(
	const void *page, uint32_t copy, struct lac__super *ret_super, struct lac_error *err)
{
	const struct disk_super *d = page;
	struct lac__super super;
	int rc;

	super_load(d, &super);
	rc = lac__disk_verify(page, MAGIC, err);
	if (rc == 0 && (super.incompat & ~INCOMPAT_KNOWN) != 0)
		rc = lac__error_set(err, -EOPNOTSUPP, LAC_REASON_FORMAT_UNKNOWN, 0, 0,
			"unknown features %" PRIx64, super.incompat & ~INCOMPAT_KNOWN);
	if (rc < 0) {
		if (rc == -EOPNOTSUPP)
			*ret_super = super;
		lac__error_prepend(err, "copy %" PRIu32, copy);
		goto out;
	}
	rc = -EUCLEAN;
	if (super.copy != copy)
		LAC__BAD_IDENTITY(
			err, "copy %" PRIu32 ": says it is copy %" PRIu32, copy, super.copy);
	else if (check_reserved(d, copy, err) == 0 && check_geometry(&super, err) == 0)
		rc = check_state(&super, err);
	if (rc == 0)
		*ret_super = super;
out:
	if (rc < 0 && err) {
		err->offset = (uint64_t)copy * LAC__SLOT_STRIDE_BYTES;
		err->length = LAC__PAGE_BYTES;
	}
	return rc;
}
