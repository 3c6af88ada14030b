/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/pages.c - files of pages are read in groups: 16 pages lie, with both slots, in 128 KiB.
 *
 * A slot that can't be read is not an invalid slot (rule 4.7): its page is unknown, whatever the
 * other slot says, since the newer one may be the one that we can't see. The largest LSN is fed by
 * every slot whose checksum and identity hold, also by those of an unfinished checkpoint: a page
 * is written at durable LSNs only (rule 4.4), so the journal must reach those too.
 *
 * What a bad slot means hangs on redo. An unfinished checkpoint writes pages that changed since
 * the last one, so the journal has records for each, the base is the slot that they were made for
 * (rule 4.3), and recovery writes the bad slot anew: a note. A page without such records was
 * written by a finished checkpoint, and a bad slot has rotted. If it was the newer one, the base
 * is a page of an older time, and nothing but this would say so.
 */
#include "check/pages.h"
#include "check/retired.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_BYTES ((size_t)2 * LAC__SLOT_STRIDE_BYTES)
#define GROUP_PAGES (LAC__SLOT_STRIDE_BYTES / LAC__PAGE_BYTES)

static bool all_zero(const uint8_t *bytes, size_t length)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/* The bytes beyond the end of the file are zeros: pages that were never written. */
static int read_zero_filled(struct lac__held *held, uint8_t *bytes, size_t length, uint64_t offset)
{
	ssize_t n = lac__read_up_to(lac__held_file(held), bytes, length, offset);

	if (n < 0)
		return (int)n;
	memset(bytes + n, 0, length - (size_t)n);
	return 0;
}

static void zero_page(struct lac__page *page, const struct lac__page_ref *ref)
{
	memset(page, 0, sizeof(*page));
	page->ref = *ref;
}

enum judging {
	JUDGE_QUIET, /* nothing is reported */
	JUDGE_REDO,  /* redo touches the page */
	JUDGE_REST,  /* it does not */
};

/* Both slots have been read. */
static int judge(struct lac__checker *c, const struct lac__page_ref *ref, const uint8_t *slot0,
	const uint8_t *slot1, enum judging judging, struct lac__page *page,
	enum lac__page_found *ret_found)
{
	struct lac__slot_choice choice;
	char path[LAC__NAME_BYTES];
	uint64_t no;
	int rc = 0;

	lac__page_choose(slot0, slot1, ref, &c->super.uuid, c->super.checkpoint, page, &choice);
	*ret_found = choice.lost ? LAC__PAGE_NO_SLOT : LAC__PAGE_FOUND;
	for (unsigned s = 0; s < 2 && rc == 0 && judging != JUDGE_QUIET; s++) {
		if (choice.state[s] == LAC__SLOT_OK && choice.lsn[s] > c->max_lsn)
			c->max_lsn = choice.lsn[s];
		if (choice.state[s] != LAC__SLOT_BAD || choice.lost)
			continue;
		lac__name_page(ref, path, &no);
		rc = lac__report_finding(&c->report,
			judging == JUDGE_REDO ? LAC_FINDING_PAGE_SLOT_BAD : LAC_FINDING_PAGE_ROTTEN,
			path, lac__page_slot_offset(no, s), "page %" PRIu64 ", slot %u", ref->no,
			s);
	}
	return rc;
}

int lac__check_page_finding(struct lac__checker *c, enum lac_finding_id id,
	const struct lac__page_ref *ref, const char *what)
{
	char path[LAC__NAME_BYTES];
	uint64_t no;

	lac__name_page(ref, path, &no);
	return lac__report_finding(&c->report, id, path, lac__page_slot_offset(no, 0),
		"page %" PRIu64 "%s%s", ref->no, what ? ": " : "", what ? what : "");
}

int lac__check_page_read(struct lac__checker *c, const struct lac__page_ref *ref, bool quiet,
	struct lac__page *ret_page, enum lac__page_found *ret_found)
{
	uint8_t slots[2][LAC__PAGE_BYTES];
	struct lac__held *held = NULL;
	char path[LAC__NAME_BYTES];
	uint64_t no, size, offset = 0;
	int rc;

	lac__name_page(ref, path, &no);
	zero_page(ret_page, ref);
	*ret_found = LAC__PAGE_FOUND;
	rc = lac__check_hold(c, path, &held, &size);
	if (rc == 0 && !held)
		return 0;
	for (unsigned s = 0; s < 2 && rc == 0; s++) {
		offset = lac__page_slot_offset(no, s);
		rc = read_zero_filled(held, slots[s], LAC__PAGE_BYTES, offset);
	}
	if (held)
		lac__files_release(held);
	if (rc < 0) {
		*ret_found = LAC__PAGE_UNREADABLE;
		return quiet ? 0 : lac__check_failed(c, path, offset, rc);
	}
	return judge(
		c, ref, slots[0], slots[1], quiet ? JUDGE_QUIET : JUDGE_REDO, ret_page, ret_found);
}

/* ---- visiting all pages of a kind ---- */

struct walk {
	struct lac__checker *c;
	uint32_t kind, container;
	lac__page_visit visit;
	void *arg;
	size_t redone, redone_end; /* those of the overlay still to come */
	/* the file at hand */
	struct lac__held *held;
	char path[LAC__NAME_BYTES];
	uint64_t first_no; /* of its first page */
	uint8_t *group;
	uint32_t unreadable; /* bit: that page of the group */
};

static struct lac__page_ref walk_ref(const struct walk *w, uint64_t no)
{
	return (struct lac__page_ref){.kind = w->kind, .container = w->container, .no = no};
}

static int visit_redone(struct walk *w, const struct lac__redone *redone)
{
	char path[LAC__NAME_BYTES];
	struct lac__page_view view = {.no = redone->page.ref.no, .count = 1, .path = path};
	uint64_t no;

	if (redone->state == LAC__REDONE_SKIPPED)
		return 0;
	if (redone->state == LAC__REDONE_FINE) {
		if (redone->page.lsn == 0)
			return 0;
		view.page = &redone->page;
	}
	lac__name_page(&redone->page.ref, path, &no);
	view.offset = lac__page_slot_offset(no, 0);
	return w->visit(w->c, w->arg, &view);
}

/* Pages of the overlay below no: no file holds them. */
static int visit_redone_below(struct walk *w, uint64_t no)
{
	int rc = 0;

	while (rc == 0 && w->redone < w->redone_end) {
		const struct lac__redone *redone = w->c->overlay.sorted[w->redone];

		if (redone->page.ref.no >= no)
			break;
		w->redone++;
		rc = visit_redone(w, redone);
	}
	return rc;
}

/* A retired page is never written again, so what an unfinished checkpoint left of it stays. */
static bool is_retired(const struct walk *w, uint64_t no)
{
	uint64_t end;

	return w->kind == LAC__PAGE_INDEX && w->c->retired &&
	       lac__retired_ask(w->c->retired, no, &end) == LAC__RETIRED_YES;
}

static int visit_page(struct walk *w, uint64_t no, const uint8_t *slot0, const uint8_t *slot1)
{
	struct lac__page_ref ref = walk_ref(w, no);
	struct lac__page_view view = {.no = no, .count = 1, .path = w->path};
	enum lac__page_found found;
	struct lac__page page;
	int rc;

	view.offset = lac__page_slot_offset(no - w->first_no, 0);
	if (w->unreadable & 1u << no % GROUP_PAGES)
		return w->visit(w->c, w->arg, &view);
	if (all_zero(slot0, LAC__PAGE_BYTES) && all_zero(slot1, LAC__PAGE_BYTES))
		return 0;
	if (is_retired(w, no))
		return 0;
	rc = judge(w->c, &ref, slot0, slot1, JUDGE_REST, &page, &found);
	if (rc == 0 && found == LAC__PAGE_NO_SLOT)
		rc = lac__check_page_finding(w->c, LAC_FINDING_PAGE_LOST, &ref, NULL);
	if (rc < 0 || (found == LAC__PAGE_FOUND && page.lsn == 0))
		return rc;
	if (found == LAC__PAGE_FOUND)
		view.page = &page;
	return w->visit(w->c, w->arg, &view);
}

/* The whole group, or after an error slot by slot, to lose no more than what is unreadable. */
static int read_group(struct walk *w, uint64_t offset)
{
	int rc = read_zero_filled(w->held, w->group, GROUP_BYTES, offset);

	w->unreadable = 0;
	if (rc == 0)
		return lac__report_progress(&w->c->report, 0, GROUP_BYTES);
	for (size_t at = 0; at < GROUP_BYTES; at += LAC__PAGE_BYTES) {
		rc = read_zero_filled(w->held, w->group + at, LAC__PAGE_BYTES, offset + at);
		if (rc == 0)
			continue;
		w->unreadable |= 1u << at / LAC__PAGE_BYTES % GROUP_PAGES;
		rc = lac__check_failed(w->c, w->path, offset + at, rc);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int visit_group(struct walk *w, uint64_t group)
{
	const uint64_t first = group * GROUP_PAGES;
	const uint64_t base = lac__page_slot_offset(first, 0);
	int rc = read_group(w, base);

	for (uint64_t i = 0; i < GROUP_PAGES && rc == 0; i++) {
		const uint64_t no = w->first_no + first + i;
		const uint64_t at0 = lac__page_slot_offset(first + i, 0) - base;
		const uint64_t at1 = lac__page_slot_offset(first + i, 1) - base;

		assert(at0 + LAC__PAGE_BYTES <= GROUP_BYTES &&
			at1 + LAC__PAGE_BYTES <= GROUP_BYTES);
		rc = visit_redone_below(w, no);
		if (rc != 0)
			break;
		if (w->redone < w->redone_end && w->c->overlay.sorted[w->redone]->page.ref.no == no)
			rc = visit_redone(w, w->c->overlay.sorted[w->redone++]);
		else
			rc = visit_page(w, no, w->group + at0, w->group + at1);
	}
	return rc;
}

/* The file that begins with page first_no and holds at most pages_max. */
static int visit_file(struct walk *w, uint64_t first_no, uint64_t pages_max)
{
	struct lac__page_ref ref = walk_ref(w, first_no);
	struct lac__page_view unknown = {.no = first_no, .count = pages_max, .path = w->path};
	uint64_t size = 0, groups, no;
	int rc;

	w->first_no = first_no;
	lac__name_page(&ref, w->path, &no);
	rc = lac__check_hold(w->c, w->path, &w->held, &size);
	if (rc < 0) {
		rc = lac__check_failed(w->c, w->path, 0, rc);
		return rc < 0 ? rc : w->visit(w->c, w->arg, &unknown);
	}
	if (!w->held)
		return 0;
	groups = size / GROUP_BYTES + (size % GROUP_BYTES != 0);
	if (groups > pages_max / GROUP_PAGES)
		groups = pages_max / GROUP_PAGES;
	for (uint64_t g = 0; g < groups && rc == 0; g++)
		rc = visit_group(w, g);
	lac__files_release(w->held);
	w->held = NULL;
	return rc;
}

static int visit_index_files(struct walk *w)
{
	struct lac__names names = {0};
	uint32_t number;
	struct lac__page_view unknown = {.count = UINT64_MAX, .path = LAC__NAME_INDEX};
	int rc = lac__check_list(w->c, LAC__NAME_INDEX, &names);

	if (rc == 0 && names.unknown)
		return w->visit(w->c, w->arg, &unknown);
	for (size_t i = 0; i < names.count && rc == 0; i++) {
		if (!lac__check_name_parse(names.at[i], ".idx", &number))
			continue;
		rc = visit_redone_below(w, (uint64_t)number * LAC__INDEX_SEGMENT_PAGES);
		if (rc == 0)
			rc = visit_file(w, (uint64_t)number * LAC__INDEX_SEGMENT_PAGES,
				LAC__INDEX_SEGMENT_PAGES);
	}
	lac__names_free(&names);
	return rc;
}

int lac__check_pages_visit(struct lac__checker *c, enum lac__page_kind kind, uint32_t container,
	lac__page_visit visit, void *arg)
{
	struct walk w = {.c = c, .kind = kind, .container = container, .visit = visit, .arg = arg};
	struct lac__page_ref first = walk_ref(&w, 0), last = walk_ref(&w, UINT64_MAX);
	int rc;

	w.redone = lac__overlay_lower(&c->overlay, &first);
	w.redone_end = lac__overlay_lower(&c->overlay, &last);
	w.group = malloc(GROUP_BYTES);
	if (!w.group)
		return lac__error_nomem(c->err);
	if (kind == LAC__PAGE_INDEX)
		rc = visit_index_files(&w);
	else
		rc = visit_file(&w, 0, UINT64_MAX);
	if (rc == 0)
		rc = visit_redone_below(&w, UINT64_MAX);
	free(w.group);
	return rc;
}
