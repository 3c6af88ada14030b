/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/redo.c - phase 2: the journal's verdict, and what recovery will make of the pages, in
 * memory. A store that only needs recovery is sound.
 *
 * Two passes, as recovery has to make them: the first finds the containers that end up dropped,
 * whose maps may be unlinked already (rule 4.17), the high-water mark, and the blocks whose
 * payload recovery writes again from the journal; the second applies the records. Redo ends
 * before a record that does not decode: the pages are then as of the record before.
 *
 * A page without a valid slot may still come from the journal alone: one that was first written
 * by a checkpoint that tore begins with a record whose previous LSN is 0.
 */
#include "check/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/record.h"
#include "journal/journal.h"

struct redo {
	struct lac__checker *c;
	struct lac__jscan *scan;
	struct lac__u64_set dropped; /* containers */
	uint64_t records, stop_lsn;  /* records below stop_lsn decode */
	/* the record being applied */
	struct lac__jrecord at;
	bool unlisted; /* reported for this record */
};

static void record_path(const struct lac__jrecord *at, char *ret)
{
	snprintf(ret, LAC__NAME_BYTES, LAC__NAME_JOURNAL "/%016" PRIx64 ".seg", at->seq);
}

static int record_bad(struct lac__checker *c, const struct lac__jrecord *at, const char *why)
{
	char path[LAC__NAME_BYTES];

	record_path(at, path);
	return lac__report_finding(&c->report, LAC_FINDING_RECORD_BAD, path, at->offset,
		"record %" PRIu64 ": %s", at->lsn, why);
}

/* An error of the scan itself: the disk's is a finding, bytes that changed since are not. */
static int scan_failed(struct lac__checker *c, int rc, const struct lac_error *why)
{
	if (rc == -EBADMSG || rc == -EUCLEAN) {
		if (c->err)
			*c->err = *why;
		lac__error_prepend(c->err, "check journal: it changed meanwhile");
		return rc;
	}
	c->hopeless = true;
	return lac__check_failed(c, LAC__NAME_JOURNAL, why->offset, rc);
}

/* ---- first pass ---- */

static int learn_op(struct redo *r, const struct lac__op *op)
{
	struct lac__checker *c = r->c;

	switch (op->type) {
	case LAC__OP_CONTAINER:
		if (op->state == LAC__CONTAINER_CREATING && op->container >= c->next_container)
			c->next_container = (uint64_t)op->container + 1;
		if (op->state == LAC__CONTAINER_GONE || op->state == LAC__CONTAINER_DROPPING)
			return lac__u64_set_add(&r->dropped, op->container);
		return 0;
	case LAC__OP_HIGH_WATER:
		if (op->first + op->count > c->high_water)
			c->high_water = op->first + op->count;
		return 0;
	case LAC__OP_PUT: return op->has_payload ? lac__u64_set_add(&c->replayed, op->id) : 0;
	default: return 0;
	}
}

static int learn(struct redo *r)
{
	struct lac_error why = {0};
	struct lac__op_cursor cursor;
	struct lac__record record;
	struct lac__jrecord at;
	struct lac__op op;
	int rc;

	r->stop_lsn = UINT64_MAX;
	while ((rc = lac__jscan_next(r->scan, &at, &why)) == 0) {
		if (lac__record_decode(
			    at.bytes, at.length, r->c->super.granule_bytes, &record, &why) < 0) {
			r->stop_lsn = at.lsn;
			rc = record_bad(r->c, &at, why.message);
			break;
		}
		lac__op_cursor_start(&record, &cursor);
		while (lac__op_next(&cursor, &op)) {
			if (learn_op(r, &op) < 0)
				return lac__error_nomem(r->c->err);
		}
		r->records++;
		rc = lac__report_progress(&r->c->report, 1, at.length);
		if (rc < 0)
			return rc;
	}
	lac__u64_set_sort(&r->dropped);
	lac__u64_set_sort(&r->c->replayed);
	if (rc < 0)
		return r->c->report.stopped ? rc : scan_failed(r->c, rc, &why);
	return 0;
}

/* ---- second pass ---- */

/* As the table's page on disk has it: a container that is dropped there stays so. */
static int dropped_on_disk(struct redo *r, uint32_t container, bool *ret_dropped)
{
	struct lac__page_ref ref = {.kind = LAC__PAGE_TABLE, .no = container / LAC__TABLE_ENTRIES};
	enum lac__page_found found;
	struct lac__table_entry entry;
	struct lac__page page;
	int rc = lac__check_page_read(r->c, &ref, true, &page, &found);

	*ret_dropped = false;
	if (rc < 0 || found != LAC__PAGE_FOUND)
		return rc;
	if (lac__table_get(&page, container % LAC__TABLE_ENTRIES, &entry, NULL) == 0)
		*ret_dropped = entry.state == LAC__CONTAINER_GONE ||
			       entry.state == LAC__CONTAINER_DROPPING;
	return 0;
}

static int load(struct redo *r, const struct lac__page_ref *ref, struct lac__redone **ret)
{
	struct lac__redone *redone = lac__overlay_add(&r->c->overlay, ref);
	enum lac__page_found found = LAC__PAGE_FOUND;
	bool dropped = false;
	int rc = 0;

	if (!redone)
		return lac__error_nomem(r->c->err);
	*ret = redone;
	if (ref->kind == LAC__PAGE_MAP) {
		dropped = lac__u64_set_has(&r->dropped, ref->container);
		if (!dropped)
			rc = dropped_on_disk(r, ref->container, &dropped);
		if (rc < 0)
			return rc;
	}
	if (dropped) {
		redone->state = LAC__REDONE_SKIPPED;
		return 0;
	}
	rc = lac__check_page_read(r->c, ref, false, &redone->page, &found);
	if (found == LAC__PAGE_NO_SLOT)
		redone->state = LAC__REDONE_LOST;
	else if (found == LAC__PAGE_UNREADABLE)
		redone->state = LAC__REDONE_UNKNOWN;
	return rc;
}

/* Rule 4.3: the page is what the record was made for. */
static int open_page(struct redo *r, const struct lac__record_page *listed)
{
	struct lac__redone *redone = lac__overlay_find(&r->c->overlay, &listed->ref);
	char what[96];
	int rc = 0;

	if (!redone)
		rc = load(r, &listed->ref, &redone);
	if (rc < 0)
		return rc;
	redone->listed_lsn = r->at.lsn;
	if (redone->state == LAC__REDONE_SKIPPED || redone->state == LAC__REDONE_UNKNOWN ||
		redone->page.lsn >= r->at.lsn)
		return 0;
	if (listed->prev_lsn == redone->page.lsn) {
		redone->applying_lsn = r->at.lsn;
		if (redone->state != LAC__REDONE_LOST)
			return 0;
		redone->state = LAC__REDONE_FINE;
		return lac__check_page_finding(r->c, LAC_FINDING_PAGE_SLOT_BAD, &listed->ref,
			"the journal has all of the page");
	}
	snprintf(what, sizeof(what), "record %" PRIu64 ": lsn %" PRIu64 ", want %" PRIu64,
		r->at.lsn, redone->page.lsn, listed->prev_lsn);
	rc = lac__check_page_finding(r->c,
		redone->state == LAC__REDONE_LOST ? LAC_FINDING_PAGE_LOST : LAC_FINDING_PAGE_STALE,
		&listed->ref, redone->state == LAC__REDONE_LOST ? NULL : what);
	redone->state = LAC__REDONE_UNKNOWN;
	return rc;
}

struct op_at {
	struct redo *r;
	const struct lac__op *op;
};

static int apply_to_page(void *arg, const struct lac__page_ref *ref)
{
	struct op_at *x = arg;
	struct redo *r = x->r;
	struct lac__redone *redone = lac__overlay_find(&r->c->overlay, ref);
	struct lac_error why = {0};

	if (!redone || redone->listed_lsn != r->at.lsn) {
		if (r->unlisted)
			return 0;
		r->unlisted = true;
		return record_bad(r->c, &r->at, "an operation touches a page that is not listed");
	}
	if (redone->state != LAC__REDONE_FINE || redone->applying_lsn != r->at.lsn)
		return 0;
	if (lac__op_apply(x->op, r->c->super.granule_bytes, r->at.lsn, &redone->page, &why) == 0)
		return 0;
	redone->state = LAC__REDONE_UNKNOWN;
	return record_bad(r->c, &r->at, why.message);
}

static int apply(struct redo *r, const struct lac__record *record)
{
	struct lac__record_page listed;
	struct lac__op_cursor cursor;
	struct lac__op op;
	struct op_at x = {.r = r, .op = &op};
	int rc = 0;

	r->unlisted = false;
	for (uint32_t n = 0; n < record->pages && rc == 0; n++) {
		lac__record_page_at(record, n, &listed);
		rc = open_page(r, &listed);
	}
	lac__op_cursor_start(record, &cursor);
	while (rc == 0 && lac__op_next(&cursor, &op))
		rc = lac__op_pages(&op, r->c->super.granule_bytes, apply_to_page, &x);
	for (uint32_t n = 0; n < record->pages && rc == 0; n++) {
		struct lac__redone *redone;

		lac__record_page_at(record, n, &listed);
		redone = lac__overlay_find(&r->c->overlay, &listed.ref);
		if (redone->applying_lsn == r->at.lsn)
			redone->page.lsn = r->at.lsn;
	}
	return rc;
}

static int apply_all(struct redo *r)
{
	struct lac_error why = {0};
	struct lac__record record;
	int rc = lac__jscan_rewind(r->scan, &why);

	if (rc < 0)
		return scan_failed(r->c, rc, &why);
	for (;;) {
		rc = lac__jscan_next(r->scan, &r->at, &why);
		if (rc < 0)
			return scan_failed(r->c, rc, &why);
		if (rc > 0 || r->at.lsn >= r->stop_lsn)
			break;
		rc = lac__record_decode(
			r->at.bytes, r->at.length, r->c->super.granule_bytes, &record, &why);
		if (rc < 0)
			return scan_failed(r->c, rc, &why);
		rc = apply(r, &record);
		if (rc < 0)
			return rc;
	}
	return lac__overlay_sort(&r->c->overlay) < 0 ? lac__error_nomem(r->c->err) : 0;
}

static int report_verdict(struct lac__checker *c, const struct lac__jscan_end *end)
{
	char path[LAC__NAME_BYTES];

	if (end->verdict == LAC__JOURNAL_CLEAN)
		return 0;
	snprintf(path, sizeof(path), LAC__NAME_JOURNAL "/%016" PRIx64 ".seg", end->seq);
	return lac__report_finding(&c->report,
		end->verdict == LAC__JOURNAL_TORN ? LAC_FINDING_JOURNAL_TORN
						  : LAC_FINDING_JOURNAL_CORRUPT,
		path, end->offset, "%s", end->evidence.message);
}

static int read_journal(struct redo *r)
{
	const struct lac__super *s = &r->c->super;
	const struct lac__jscan_options options = {
		.uuid = s->uuid,
		.from_lsn = s->redo_lsn,
		.from_seq = s->journal_seq,
		.least_lsn = s->max_page_lsn,
		.clean_lsn = s->flags & LAC__SUPER_CLEAN ? s->end_lsn : 0,
		.record_bytes_max = LAC__RECORD_BYTES_MAX,
		.past_cache = false,
	};
	struct lac_error why = {0};
	struct lac__jscan_end end;
	int rc = lac__jscan_open(r->c->be, LAC__NAME_JOURNAL, &options, &r->scan, &why);

	if (rc < 0)
		return scan_failed(r->c, rc, &why);
	lac__jscan_end(r->scan, &end);
	r->c->head_lsn = end.last_lsn;
	rc = report_verdict(r->c, &end);
	if (rc == 0)
		rc = learn(r);
	if (rc == 0 && r->records && !r->c->hopeless)
		rc = lac__report_finding(&r->c->report, LAC_FINDING_JOURNAL_REDO, LAC__NAME_JOURNAL,
			0, "%" PRIu64 " records from %" PRIu64 " on", r->records, s->redo_lsn);
	if (rc == 0 && !r->c->hopeless)
		rc = apply_all(r);
	return rc;
}

int lac__check_journal(struct lac__checker *c)
{
	struct redo r = {.c = c};
	int rc = lac__report_begin(&c->report, 2, "journal", 0);

	/* Reported; without it pages are as their checkpoints left them, each at its own LSN. */
	if (c->journal_missing) {
		c->hopeless = !(c->super.flags & LAC__SUPER_CLEAN);
		c->head_lsn = c->super.end_lsn;
	} else if (rc == 0) {
		rc = read_journal(&r);
	}
	lac__jscan_close(r.scan);
	free(r.dropped.at);
	return rc < 0 ? rc : lac__report_end(&c->report);
}
