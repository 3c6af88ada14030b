/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/recover.c - from what is on disk to a store that is as if it had been closed.
 *
 * Order: read (super, journal, pages), redo in memory, and only then write (rules 4.6, 4.7):
 *   1. The journal is scanned past the page cache and its verdict formed. CORRUPT ends here.
 *   2. Every record is decoded; containers that are dropped later are noted, since their map
 *      files may be gone (rule 4.17).
 *   3. Redo: each record's pages are brought forward, the chain of LSNs checked (rule 4.3).
 *   4. Payloads of small transactions are written again, but only where the final index says that
 *      the block is live at that very place (rule 4.1).
 *   5. A checkpoint makes it durable. A crash anywhere before its super is durable leaves the old
 *      super, the same journal, and slots that the next recovery ignores.
 *
 * Metadata slots are read through the cache. That is sound although rule 4.6 speaks of them: a slot
 * counts only up to the super's checkpoint number, the super is read past the cache, and a super
 * of that number was written only after a sync of all slots up to it had succeeded. Slots whose
 * sync failed, whose bytes may be in the cache alone, carry a higher number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/internal.h"

struct recovery {
	struct lac_store *store;
	struct lac__jscan *scan;
	struct lac__jscan_end end;
	struct lac_error *err;
	uint32_t
		*dropped; /* containers whose DROPPING or GONE is in the journal, or in the table */
	size_t dropped_count, dropped_room;
	uint64_t records;
	uint64_t lsn; /* of the record at hand */
};

void lac__journal_options_of(struct lac_store *s, struct lac__journal_options *ret)
{
	struct lac_place_info place;
	uint32_t tear = LAC__PAGE_BYTES;

	if (!s->options.journal_whole_pages &&
		s->backend->ops->place_info(s->backend, LAC__NAME_JOURNAL, &place) == 0 &&
		place.physical_sector_bytes >= 512 && place.physical_sector_bytes <= 65536 &&
		(place.physical_sector_bytes & (place.physical_sector_bytes - 1)) == 0)
		tear = place.physical_sector_bytes;
	*ret = (struct lac__journal_options){.uuid = s->uuid,
		.segment_bytes = s->super.segment_bytes,
		.segments_min = 3,
		.ready_target = 1,
		.tear_bytes = tear,
		.record_bytes_max = LAC__RECORD_BYTES_MAX,
		.direct = !s->options.journal_buffered,
		.background = !s->options.no_background};
	if (ret->background) {
		/* One ready segment is the reserve, which asks for a checkpoint when it is all
		   there is left; two more are being filled or wait, so that no commit waits for
		   one. */
		ret->ready_target = 3;
		ret->segments_min = 4;
	}
}

static bool is_dropped(const struct recovery *r, uint32_t container)
{
	for (size_t i = 0; i < r->dropped_count; i++)
		if (r->dropped[i] == container)
			return true;
	return false;
}

static int add_dropped(struct recovery *r, uint32_t container)
{
	if (is_dropped(r, container))
		return 0;
	if (r->dropped_count == r->dropped_room) {
		size_t room = r->dropped_room ? r->dropped_room * 2 : 16;
		uint32_t *grown = realloc(r->dropped, room * sizeof *grown);

		if (!grown)
			return lac__error_nomem(r->err);
		r->dropped = grown;
		r->dropped_room = room;
	}
	r->dropped[r->dropped_count++] = container;
	return 0;
}

static int first_look(struct recovery *r, const struct lac__record *record)
{
	struct lac_store *s = r->store;
	struct lac__op_cursor cursor;
	struct lac__op op;
	int rc = 0;

	lac__op_cursor_start(record, &cursor);
	while (rc == 0 && lac__op_next(&cursor, &op)) {
		if (op.type == LAC__OP_HIGH_WATER && op.first + op.count > s->sequenced_high_water)
			s->sequenced_high_water = op.first + op.count;
		if (op.type != LAC__OP_CONTAINER)
			continue;
		if (op.container >= s->next_container)
			s->next_container = op.container + 1;
		if (op.state == LAC__CONTAINER_DROPPING || op.state == LAC__CONTAINER_GONE)
			rc = add_dropped(r, op.container);
	}
	return rc;
}

/* Lists a page of the record: it is dirty from now on, even when redo has nothing to do with it. */
static int redo_list_page(struct recovery *r, const struct lac__record_page *listed)
{
	struct lac_store *s = r->store;
	struct lac__cached *cached;
	uint64_t got;
	int rc;

	if (listed->ref.kind == LAC__PAGE_MAP && is_dropped(r, listed->ref.container))
		return 0;
	rc = lac__pages_get_redo(s->pages, &listed->ref, listed->prev_lsn == 0, &cached, r->err);
	if (rc < 0)
		return rc;
	lac__pages_lock(s->pages);
	got = cached->page.lsn;
	cached->mark = r->lsn;
	lac__pages_dirty(s->pages, cached, r->lsn);
	lac__pages_unlock(s->pages);
	lac__pages_put(s->pages, cached);
	if (got < r->lsn && got != listed->prev_lsn && lac__rule(LAC__RULE_CHAIN)) {
		char path[LAC__NAME_BYTES];
		uint64_t in_file;

		lac__name_page(&listed->ref, path, &in_file);
		return lac__error_set(r->err, -EUCLEAN, LAC_REASON_PAGE_STALE,
			lac__page_slot_offset(in_file, 0), LAC__PAGE_BYTES,
			"redo record %" PRIu64 ": %s page %" PRIu64 ": its lsn is %" PRIu64
			", want %" PRIu64,
			r->lsn, path, in_file, got, listed->prev_lsn);
	}
	return 0;
}

struct redo_op {
	struct recovery *recovery;
	const struct lac__op *op;
};

static int redo_page(void *arg, const struct lac__page_ref *ref)
{
	struct redo_op *redo = arg;
	struct recovery *r = redo->recovery;
	struct lac_store *s = r->store;
	struct lac__cached *cached;
	int rc;

	if (ref->kind == LAC__PAGE_MAP && is_dropped(r, ref->container))
		return 0;
	rc = lac__pages_get(s->pages, ref, &cached, r->err);
	if (rc < 0)
		return rc;
	lac__pages_lock(s->pages);
	if (cached->mark != r->lsn)
		rc = lac__error_set(r->err, -EUCLEAN, LAC_REASON_RECORD_BAD, 0, 0,
			"redo record %" PRIu64 ": touches a page that it does not list", r->lsn);
	else if (cached->page.lsn < r->lsn)
		rc = lac__op_apply(redo->op, s->granule_bytes, r->lsn, &cached->page, r->err);
	lac__pages_unlock(s->pages);
	lac__pages_put(s->pages, cached);
	return rc;
}

static int redo_finish_page(struct recovery *r, const struct lac__record_page *listed)
{
	struct lac_store *s = r->store;
	struct lac__cached *cached;
	int rc;

	if (listed->ref.kind == LAC__PAGE_MAP && is_dropped(r, listed->ref.container))
		return 0;
	rc = lac__pages_get(s->pages, &listed->ref, &cached, r->err);
	if (rc < 0)
		return rc;
	lac__pages_lock(s->pages);
	lac__pages_changed(s->pages, cached, r->lsn);
	lac__pages_unlock(s->pages);
	lac__pages_put(s->pages, cached);
	return 0;
}

static int redo(struct recovery *r, const struct lac__record *record)
{
	struct lac__record_page listed;
	struct lac__op_cursor cursor;
	struct lac__op op;
	int rc = 0;

	for (uint32_t i = 0; i < record->pages && rc == 0; i++) {
		lac__record_page_at(record, i, &listed);
		rc = redo_list_page(r, &listed);
	}
	lac__op_cursor_start(record, &cursor);
	while (rc == 0 && lac__op_next(&cursor, &op)) {
		struct redo_op redo_op = {.recovery = r, .op = &op};

		rc = lac__op_pages(&op, r->store->granule_bytes, redo_page, &redo_op);
	}
	for (uint32_t i = 0; i < record->pages && rc == 0; i++) {
		lac__record_page_at(record, i, &listed);
		rc = redo_finish_page(r, &listed);
	}
	return rc;
}

static int write_payload(struct recovery *r, const struct lac__op *op)
{
	struct lac_store *s = r->store;
	uint64_t bytes = lac__chunk_table_bytes(op->length);
	uint64_t at = lac__op_description_offset(op, s->granule_bytes);
	uint8_t description[LAC__DESCRIPTION_BYTES], *table = NULL;
	int rc;

	lac__block_describe(&s->uuid, op, at, description);
	rc = lac__container_write(s, op->container, description, sizeof description, at, r->err);
	if (rc == 0 && op->length > 0)
		rc = lac__container_write(
			s, op->container, op->payload, op->length, op->offset, r->err);
	if (rc < 0 || bytes == 0)
		return rc;
	table = calloc(1, bytes);
	if (!table)
		return lac__error_nomem(r->err);
	lac__block_table_fill(&s->uuid, op->id, op->payload, op->length, table);
	rc = lac__container_write(s, op->container, table, bytes,
		op->offset + lac__chunk_table_offset(op->length), r->err);
	free(table);
	return rc;
}

/* Rule 4.1: after all redo, so that a range which was deleted, punched or dropped since is left
 * alone. */
static int restore_payloads(struct recovery *r, const struct lac__record *record)
{
	struct lac_store *s = r->store;
	struct lac__op_cursor cursor;
	struct lac__op op;
	int rc = 0;

	lac__op_cursor_start(record, &cursor);
	while (rc == 0 && lac__op_next(&cursor, &op)) {
		struct lac__entry entry;
		uint64_t lsn;

		if (op.type != LAC__OP_PUT || !op.has_payload)
			continue;
		rc = lac__entry_lookup(s, op.id, &entry, &lsn, r->err);
		if (rc == 0 &&
			((entry.state == LAC__ENTRY_LIVE && entry.container == op.container &&
				 entry.offset == op.offset) ||
				!lac__rule(LAC__RULE_REDO_FIRST)))
			rc = write_payload(r, &op);
	}
	return rc;
}

static int each_record(
	struct recovery *r, int (*visit)(struct recovery *, const struct lac__record *))
{
	struct lac__jrecord j;
	int rc = lac__jscan_rewind(r->scan, r->err);

	while (rc == 0 && (rc = lac__jscan_next(r->scan, &j, r->err)) == 0) {
		struct lac__record record;

		r->lsn = j.lsn;
		r->records++;
		rc = lac__record_decode(
			j.bytes, j.length, r->store->granule_bytes, &record, r->err);
		if (rc == 0)
			rc = visit(r, &record);
		if (rc < 0)
			lac__error_prepend(r->err, "record %" PRIu64, j.lsn);
	}
	return rc < 0 ? rc : 0;
}

static int always_durable(void *arg, uint64_t lsn, struct lac_error *err)
{
	return 0; /* what was scanned was synced before */
}

static int make_durable(struct recovery *r)
{
	struct lac_store *s = r->store;
	struct lac__super super = s->super;
	uint64_t max_lsn = 0;
	int rc = lac__files_sync(s->files, LAC__NAME_DATA "/", r->err);

	super.checkpoint++;
	super.copy = !super.copy;
	if (rc == 0)
		rc = lac__pages_checkpoint(s->pages, super.checkpoint, UINT64_MAX, always_durable,
			NULL, &max_lsn, r->err);
	if (rc < 0)
		return rc;
	if (max_lsn > super.max_page_lsn)
		super.max_page_lsn = max_lsn;
	super.redo_lsn = r->end.last_lsn + 1;
	super.journal_seq = r->end.next_seq;
	super.id_high_water = s->sequenced_high_water;
	super.next_id = s->next_id;
	super.next_container = s->next_container;
	super.flags = 0;
	super.end_lsn = 0;
	rc = lac__super_write(s, &super, r->err);
	if (rc < 0)
		return rc;
	s->super = super;
	lac__pages_checkpoint_done(s->pages, super.checkpoint);
	return 0;
}

static int open_scan(struct recovery *r)
{
	struct lac_store *s = r->store;
	struct lac__jscan_options options = {.uuid = s->uuid,
		.from_lsn = s->super.redo_lsn,
		.from_seq = s->super.journal_seq,
		.least_lsn = s->super.max_page_lsn,
		.clean_lsn = s->super.flags & LAC__SUPER_CLEAN ? s->super.end_lsn : 0,
		.record_bytes_max = LAC__RECORD_BYTES_MAX,
		.past_cache = true};
	int rc = lac__jscan_open(s->backend, LAC__NAME_JOURNAL, &options, &r->scan, r->err);

	if (rc < 0)
		return rc;
	lac__jscan_end(r->scan, &r->end);
	if (r->end.verdict != LAC__JOURNAL_CORRUPT)
		return 0;
	if (r->err)
		*r->err = r->end.evidence;
	rc = r->end.evidence.code < 0 ? r->end.evidence.code : -EUCLEAN;
	return rc;
}

static int redo_everything(struct recovery *r)
{
	struct lac_store *s = r->store;
	int rc = each_record(r, first_look);

	s->id_high_water = s->sequenced_high_water;
	if (rc == 0)
		rc = each_record(r, redo);
	/* Here reading ends and writing begins. */
	if (rc == 0)
		rc = each_record(r, restore_payloads);
	return rc;
}

int lac__recover(struct lac_store *s, struct lac__jscan_end *ret_end, struct lac_error *err)
{
	struct recovery r = {.store = s, .err = err};
	bool clean;
	int rc;

	s->id_high_water = s->super.id_high_water;
	s->sequenced_high_water = s->super.id_high_water;
	s->next_container = s->super.next_container;
	s->next_id = s->super.next_id;
	rc = open_scan(&r);
	if (rc < 0)
		goto out;
	clean = (s->super.flags & LAC__SUPER_CLEAN) && r.end.verdict == LAC__JOURNAL_CLEAN &&
		r.end.last_lsn == s->super.end_lsn;
	if (!clean) {
		rc = redo_everything(&r);
		if (rc < 0)
			goto out;
		if (lac__rule(LAC__RULE_HIGH_WATER))
			s->next_id = s->id_high_water; /* whatever was exposed is below */
		rc = make_durable(&r);
		if (rc < 0)
			goto out;
		lac__store_log(s, LAC_LOG_INFO,
			"recovered: %" PRIu64 " records up to lsn %" PRIu64 "%s", r.records / 3,
			r.end.last_lsn,
			r.end.verdict == LAC__JOURNAL_TORN ? ", an unfinished group dropped" : "");
	}
	s->marked_clean = clean;
	s->sequenced_lsn = r.end.last_lsn;
	*ret_end = r.end;
out:
	if (rc < 0)
		lac__error_prepend(err, "recover");
	lac__jscan_close(r.scan);
	free(r.dropped);
	return rc;
}
