/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/index.c - phase 4: every index entry against the container it names.
 *
 * Zero pages and pages that no file holds are the same thing: neither is visited, so what lies
 * between two visited pages is a gap, and each gap below the high-water mark must be retired. A
 * retired page is all dead whatever its slots still hold, as no checkpoint writes it any more.
 */
#include "check/pages.h"

#include "check/retired.h"
#include "format/block.h"

#define ENTRY_BYTES (LAC__PAGE_BODY_BYTES / LAC__INDEX_ENTRIES)

struct index_walk {
	struct lac__retired retired;
	uint64_t next; /* pages below were seen, or are a gap that was judged */
	uint64_t end;  /* pages below must have been written */
};

static int report_gap(struct lac__checker *c, uint64_t first, uint64_t end)
{
	const struct lac__page_ref ref = {.kind = LAC__PAGE_INDEX, .no = first};
	char path[LAC__NAME_BYTES];
	uint64_t no;

	c->blocks_unknown = true;
	lac__name_page(&ref, path, &no);
	return lac__report_finding(&c->report, LAC_FINDING_PAGE_ZERO, path,
		lac__page_slot_offset(no, 0), "pages %" PRIu64 " to %" PRIu64, first, end - 1);
}

/* Pages [first, end) are zero: those not retired have been lost. One finding for each run. */
static int judge_gap(
	struct lac__checker *c, const struct index_walk *w, uint64_t first, uint64_t end)
{
	uint64_t lost_from = UINT64_MAX, stop;
	int rc = 0;

	for (uint64_t no = first; no < end && rc == 0; no = stop) {
		enum lac__retired_answer answer = lac__retired_ask(&w->retired, no, &stop);

		if (stop > end)
			stop = end;
		if (answer == LAC__RETIRED_NO) {
			if (lost_from == UINT64_MAX)
				lost_from = no;
			continue;
		}
		if (lost_from != UINT64_MAX)
			rc = report_gap(c, lost_from, no);
		lost_from = UINT64_MAX;
	}
	if (rc == 0 && lost_from != UINT64_MAX)
		rc = report_gap(c, lost_from, end);
	return rc;
}

struct live {
	uint64_t id;
	uint64_t at; /* of the entry, in path */
	const char *path;
	struct lac__entry entry;
	uint64_t start, end; /* footprint */
};

static int entry_finding(
	struct lac__checker *c, enum lac_finding_id id, const struct live *live, const char *what)
{
	return lac__report_finding(&c->report, id, live->path, live->at,
		"block %" PRIu64 ": container %" PRIu32 ", offset %" PRIu64 ", length %" PRIu64
		": %s",
		live->id, live->entry.container, live->entry.offset, live->entry.length, what);
}

/* What is wrong with the container for this block, or NULL. */
static const char *unfit(const struct lac__check_container *container, const struct live *live)
{
	if (!container)
		return "no such container";
	if (container->entry.state != LAC__CONTAINER_ACTIVE &&
		container->entry.state != LAC__CONTAINER_SEALED)
		return "the container holds no blocks in its state";
	if ((container->entry.kind == LAC__CONTAINER_PACKED) != (live->entry.distance == 0))
		return "the container is of the other kind";
	return NULL;
}

/* Counts the block in its container, and reads it where asked to. */
static int count_block(
	struct lac__checker *c, struct lac__check_container *container, const struct live *live)
{
	const uint64_t need = live->entry.offset + lac__stored_bytes(live->entry.length);
	const bool replayed = lac__u64_set_has(&c->replayed, live->id);

	container->live_blocks++;
	container->live_bytes += live->entry.length;
	if (replayed || container->file_bytes == UINT64_MAX)
		return 0;
	if (need > container->need_bytes) {
		container->need_bytes = need;
		container->need_id = live->id;
	}
	if (!c->data || need > container->file_bytes)
		return 0;
	return lac__check_block_data(c, container, live->id, &live->entry);
}

static int check_live(struct lac__checker *c, struct live *live)
{
	struct lac__check_container *container;
	const char *why;
	bool unknown;
	int rc = 0;

	c->blocks++;
	c->live_bytes += live->entry.length;
	if (live->id >= c->high_water)
		rc = entry_finding(c, LAC_FINDING_ENTRY_ID, live, "beyond the high-water mark");
	if (rc < 0)
		return rc;
	container = lac__check_container_find(c, live->entry.container, &unknown);
	if (!lac__extents_footprint(
		    &live->entry, c->super.granule_bytes, &live->start, &live->end)) {
		c->blocks_unknown = true;
		return entry_finding(c, LAC_FINDING_ENTRY_BAD, live, "not a place for a block");
	}
	if (unknown || (container && container->unknown))
		goto add;
	why = unfit(container, live);
	if (why) {
		if (container)
			container->blocks_unknown = true;
		return entry_finding(c, LAC_FINDING_ENTRY_CONTAINER, live, why);
	}
	if (live->end > container->entry.tail_bytes) {
		rc = entry_finding(c, LAC_FINDING_ENTRY_BAD, live, "beyond the container's tail");
		container->blocks_unknown = true;
	}
	if (rc == 0)
		rc = count_block(c, container, live);
add:
	if (rc == 0 &&
		lac__extents_add(&c->extents, live->id, &live->entry, live->start, live->end) < 0)
		rc = lac__error_nomem(c->err);
	return rc;
}

static int check_entries(struct lac__checker *c, const struct lac__page_view *view)
{
	struct live live = {.path = view->path};
	struct lac_error why = {0};
	int rc = 0;

	for (unsigned slot = 0; slot < LAC__INDEX_ENTRIES && rc == 0; slot++) {
		live.id = view->no * LAC__INDEX_ENTRIES + slot;
		live.at = view->offset + LAC__PAGE_HEADER_BYTES + slot * ENTRY_BYTES;
		if (lac__entry_get(view->page, slot, &live.entry, &why) < 0) {
			c->blocks_unknown = true;
			rc = lac__report_finding(&c->report, LAC_FINDING_ENTRY_BAD, live.path,
				live.at, "block %" PRIu64 ": %s", live.id, why.message);
		} else if (live.entry.state == LAC__ENTRY_LIVE) {
			rc = check_live(c, &live);
		}
	}
	return rc;
}

static int take_index_page(struct lac__checker *c, void *arg, const struct lac__page_view *view)
{
	struct index_walk *w = arg;
	uint64_t gap_end = view->no < w->end ? view->no : w->end, stop;
	enum lac__retired_answer retired;
	int rc;

	rc = w->next < gap_end ? judge_gap(c, w, w->next, gap_end) : 0;
	if (view->no + view->count > w->next)
		w->next = view->count == UINT64_MAX ? UINT64_MAX : view->no + view->count;
	if (rc < 0)
		return rc;
	retired = lac__retired_ask(&w->retired, view->no, &stop);
	if (!view->page || retired == LAC__RETIRED_UNKNOWN) {
		c->blocks_unknown = c->blocks_unknown || !view->page || view->page->lsn;
		return 0;
	}
	if (retired == LAC__RETIRED_NO)
		rc = check_entries(c, view);
	return rc < 0 ? rc : lac__report_progress(&c->report, 1, 0);
}

/* ---- after the walk ---- */

static int report_overlap(
	struct lac__checker *c, const struct lac__extent *last, const struct lac__extent *extent)
{
	char path[LAC__NAME_BYTES];

	lac__name_container(extent->container, path);
	if (last->units == 0 || extent->units == 0)
		return lac__report_finding(&c->report, LAC_FINDING_ENTRY_OVERLAP, path,
			extent->start, "block %" PRIu64 " and descriptions at %" PRIu64,
			last->units ? last->id : extent->id,
			last->units ? extent->start : last->start);
	return lac__report_finding(&c->report, LAC_FINDING_ENTRY_OVERLAP, path, extent->start,
		"block %" PRIu64 " from %" PRIu64 " on, block %" PRIu64 " from %" PRIu64 " on",
		last->id, last->start, extent->id, extent->start);
}

static int check_overlaps(struct lac__checker *c)
{
	const struct lac__extents *x = &c->extents;
	const struct lac__extent *last = NULL; /* the one that reaches furthest */
	struct lac__check_container *container;
	bool unknown;
	int rc = 0;

	for (size_t i = 0; i < x->count && rc == 0; i++) {
		const struct lac__extent *extent = &x->at[i];

		if (last && last->container == extent->container &&
			lac__extent_end(x, last) > extent->start &&
			!(last->units == 0 && extent->units == 0)) {
			rc = report_overlap(c, last, extent);
			container = lac__check_container_find(c, extent->container, &unknown);
			if (container)
				container->overlapped = true;
		}
		if (!last || last->container != extent->container ||
			lac__extent_end(x, extent) > lac__extent_end(x, last))
			last = extent;
	}
	return rc;
}

static int check_lengths(struct lac__checker *c)
{
	char path[LAC__NAME_BYTES];
	int rc = 0;

	for (size_t i = 0; i < c->container_count && rc == 0; i++) {
		const struct lac__check_container *container = &c->containers[i];

		if (container->need_bytes <= container->file_bytes)
			continue;
		lac__name_container(container->id, path);
		rc = lac__report_finding(&c->report, LAC_FINDING_FILE_SHORT, path,
			container->file_bytes, "block %" PRIu64 " ends at %" PRIu64,
			container->need_id, container->need_bytes);
	}
	return rc;
}

int lac__check_index(struct lac__checker *c)
{
	struct index_walk w = {0};
	int rc;

	/* Ids begin at 1; the page of the last one exposed is the last that must be there. */
	w.end = c->high_water > 1 ? (c->high_water - 1) / LAC__INDEX_ENTRIES + 1 : 0;
	c->extents.granule_bytes = c->super.granule_bytes;
	rc = lac__report_begin(&c->report, 4, "index against containers", w.end);
	if (rc == 0)
		rc = lac__retired_load(c, &w.retired);
	c->retired = &w.retired;
	if (rc == 0)
		rc = lac__check_pages_visit(c, LAC__PAGE_INDEX, 0, take_index_page, &w);
	c->retired = NULL;
	if (rc == 0 && w.next < w.end && !c->index_missing)
		rc = judge_gap(c, &w, w.next, w.end);
	lac__retired_free(&w.retired);
	if (c->index_missing)
		c->blocks_unknown = true;
	if (rc == 0 && lac__extents_sort(&c->extents) < 0)
		rc = lac__error_nomem(c->err);
	if (rc == 0)
		rc = check_overlaps(c);
	if (rc == 0)
		rc = check_lengths(c);
	return rc < 0 ? rc : lac__report_end(&c->report);
}
