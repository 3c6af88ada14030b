/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/space.c - phase 5: space maps and the container table's counts, recomputed from the blocks.
 *
 * The extents of a container are swept together with its map pages, one page's granules at a time:
 * memory does not depend on how long a file claims to be. As extents do not overlap (where they
 * do, it was reported, and the map is left alone) only the last one of a window reaches the next.
 *
 * Where index pages or entries are unknown, blocks may be missing from the sum: then a map that
 * knows of more blocks than we do is not wrong.
 */
#include "check/pages.h"

#include <string.h>

#include "base/checked.h"

struct sweep {
	struct lac__check_container *container;
	const struct lac__extent *at, *end; /* still to come, in ascending order */
	uint64_t next_no; /* map pages below were compared, or are known to be zero */
	uint64_t tail_granules;
	uint64_t dead; /* granules */
	bool unknown;  /* some pages of the map: the count means nothing */
	uint16_t want[LAC__MAP_GRANULES];
};

struct waiting {
	uint64_t granules, containers;
};

static uint64_t granule_of(const struct lac__checker *c, uint64_t byte)
{
	return byte / c->super.granule_bytes;
}

/* First granule behind the extent. */
static uint64_t granule_end(const struct lac__checker *c, const struct lac__extent *extent)
{
	return granule_of(c, lac__extent_end(&c->extents, extent) - 1) + 1;
}

static bool blocks_unknown(const struct lac__checker *c, const struct sweep *s)
{
	return c->blocks_unknown || s->container->blocks_unknown;
}

/* Counts blocks and descriptions for each granule of [first, first + LAC__MAP_GRANULES), and goes
   past the extents that end in it. */
static void count_window(const struct lac__checker *c, struct sweep *s, uint64_t first)
{
	const uint64_t end = first + LAC__MAP_GRANULES;

	memset(s->want, 0, sizeof(s->want));
	while (s->at < s->end && granule_of(c, s->at->start) < end) {
		uint64_t from = granule_of(c, s->at->start), to = granule_end(c, s->at);
		uint64_t add = s->at->units ? 1 : s->at->id;

		if (add > UINT8_MAX)
			add = UINT8_MAX;
		if (from < first)
			from = first;
		for (uint64_t g = from; g < to && g < end; g++) {
			if (s->want[g - first] <= LAC__GRANULE_LIVE_MAX)
				s->want[g - first] += (uint16_t)add;
		}
		if (to > end)
			break;
		s->at++;
	}
}

/* Is got what a granule may be where want blocks stand? */
static bool granule_right(
	const struct lac__checker *c, const struct sweep *s, uint64_t granule, unsigned got)
{
	const unsigned want = s->want[granule % LAC__MAP_GRANULES];

	if (granule == 0)
		return got == LAC__GRANULE_HEADER;
	if (got <= LAC__GRANULE_LIVE_MAX && got > 0) {
		if (granule >= s->tail_granules)
			return false;
		return got == want || (got > want && blocks_unknown(c, s));
	}
	if (want)
		return false;
	/* A range may be given up before any record placed something there: dead beyond the tail.
	 */
	if (granule >= s->tail_granules && got == LAC__GRANULE_RESERVED)
		return false;
	return got == LAC__GRANULE_HOLE || got == LAC__GRANULE_DEAD || got == LAC__GRANULE_RESERVED;
}

static const char *granule_text(unsigned state, char *buffer, size_t size)
{
	switch (state) {
	case LAC__GRANULE_HOLE: return "hole";
	case LAC__GRANULE_RESERVED: return "reserved";
	case LAC__GRANULE_DEAD: return "dead";
	case LAC__GRANULE_HEADER: return "header";
	default: snprintf(buffer, size, "%u", state); return buffer;
	}
}

static int report_granule(struct lac__checker *c, const struct sweep *s,
	const struct lac__page_view *view, uint64_t granule, uint64_t wrong)
{
	const unsigned slot = (unsigned)(granule % LAC__MAP_GRANULES);
	char got[16], want[16];

	return lac__report_finding(&c->report, LAC_FINDING_MAP_WRONG, view->path,
		view->offset + LAC__PAGE_HEADER_BYTES + slot,
		"container %" PRIu32 ": granule %" PRIu64 ": %s, want %s (%" PRIu64
		" wrong in this page)",
		s->container->id, granule, granule_text(view->page->body[slot], got, sizeof(got)),
		granule == 0 ? "header" : granule_text(s->want[slot], want, sizeof(want)), wrong);
}

static int compare_page(struct lac__checker *c, struct sweep *s, const struct lac__page_view *view)
{
	const uint64_t first = view->no * LAC__MAP_GRANULES;
	uint64_t wrong = 0, first_wrong = 0;

	count_window(c, s, first);
	for (unsigned slot = 0; slot < LAC__MAP_GRANULES; slot++) {
		const unsigned got = view->page->body[slot];

		s->dead += got == LAC__GRANULE_DEAD;
		if (granule_right(c, s, first + slot, got))
			continue;
		if (!wrong++)
			first_wrong = first + slot;
	}
	return wrong ? report_granule(c, s, view, first_wrong, wrong) : 0;
}

/* Map pages [s->next_no, no) are zero: nothing may stand there. */
static int compare_gap(struct lac__checker *c, struct sweep *s, uint64_t no)
{
	const uint64_t first = s->next_no * LAC__MAP_GRANULES;
	struct lac__page_ref ref = {.kind = LAC__PAGE_MAP, .container = s->container->id};
	uint64_t end, blocks = 0, granule = 0;
	char what[96];

	if (!lac__mul_ok(no, LAC__MAP_GRANULES, &end))
		end = UINT64_MAX;
	while (s->at < s->end && granule_of(c, s->at->start) < end) {
		if (!blocks++)
			granule = granule_of(c, s->at->start);
		if (granule_end(c, s->at) > end)
			break;
		s->at++;
	}
	if (granule < first)
		granule = first;
	if (!blocks && s->next_no > 0)
		return 0;
	ref.no = granule / LAC__MAP_GRANULES;
	if (blocks)
		snprintf(what, sizeof(what), "granule %" PRIu64 ": hole, want 1 or more", granule);
	else
		snprintf(what, sizeof(what), "granule 0: hole, want header");
	return lac__check_page_finding(c, LAC_FINDING_MAP_WRONG, &ref, what);
}

static void pass_unknown(const struct lac__checker *c, struct sweep *s, uint64_t end_no)
{
	uint64_t end;

	s->unknown = true;
	if (!lac__mul_ok(end_no, LAC__MAP_GRANULES, &end))
		end = UINT64_MAX;
	while (s->at < s->end && granule_end(c, s->at) <= end)
		s->at++;
}

static int take_map_page(struct lac__checker *c, void *arg, const struct lac__page_view *view)
{
	struct sweep *s = arg;
	uint64_t end = view->count == UINT64_MAX ? UINT64_MAX : view->no + view->count;
	int rc = 0;

	if (view->no > s->next_no)
		rc = compare_gap(c, s, view->no);
	s->next_no = end;
	if (rc < 0)
		return rc;
	if (!view->page) {
		pass_unknown(c, s, end);
		return 0;
	}
	rc = compare_page(c, s, view);
	return rc < 0 ? rc : lac__report_progress(&c->report, 1, 0);
}

/* ---- the table's counts ---- */

static int table_wrong(struct lac__checker *c, const struct lac__check_container *container,
	const char *what, uint64_t got, uint64_t want)
{
	const struct lac__page_ref ref = {
		.kind = LAC__PAGE_TABLE, .no = container->id / LAC__TABLE_ENTRIES};
	const uint64_t slot = container->id % LAC__TABLE_ENTRIES;
	char path[LAC__NAME_BYTES];
	uint64_t no;

	lac__name_page(&ref, path, &no);
	return lac__report_finding(&c->report, LAC_FINDING_TABLE_WRONG, path,
		lac__page_slot_offset(no, 0) + LAC__PAGE_HEADER_BYTES +
			slot * (LAC__PAGE_BODY_BYTES / LAC__TABLE_ENTRIES),
		"container %" PRIu32 ": %s %" PRIu64 ", want %" PRIu64, container->id, what, got,
		want);
}

static int compare_blocks(struct lac__checker *c, const struct lac__check_container *container)
{
	const bool unknown = c->blocks_unknown || container->blocks_unknown;
	const struct lac__table_entry *e = &container->entry;

	if (e->live_blocks != container->live_blocks &&
		!(unknown && e->live_blocks > container->live_blocks))
		return table_wrong(
			c, container, "live blocks", e->live_blocks, container->live_blocks);
	if (e->live_bytes != container->live_bytes &&
		!(unknown && e->live_bytes > container->live_bytes))
		return table_wrong(
			c, container, "live bytes", e->live_bytes, container->live_bytes);
	return 0;
}

/* hole_granules has nothing to be compared with: ranges that were skipped over are holes too. */
static int compare_granules(struct lac__checker *c, const struct sweep *s)
{
	const struct lac__table_entry *e = &s->container->entry;

	if (s->unknown || e->dead_granules == s->dead)
		return 0;
	return table_wrong(c, s->container, "dead granules", e->dead_granules, s->dead);
}

static int compare_map(
	struct lac__checker *c, struct lac__check_container *container, struct waiting *waiting)
{
	struct sweep s = {.container = container};
	size_t first, end;
	int rc;

	end = lac__extents_of(&c->extents, container->id, &first);
	if (first < end) {
		s.at = &c->extents.at[first];
		s.end = s.at + (end - first);
	}
	s.tail_granules =
		(container->entry.tail_bytes + c->super.granule_bytes - 1) / c->super.granule_bytes;
	rc = lac__check_pages_visit(c, LAC__PAGE_MAP, container->id, take_map_page, &s);
	if (rc == 0 && s.next_no < UINT64_MAX)
		rc = compare_gap(c, &s, UINT64_MAX);
	if (rc == 0)
		rc = compare_granules(c, &s);
	waiting->granules += s.dead;
	waiting->containers += s.dead > 0;
	return rc;
}

static int compare_container(
	struct lac__checker *c, struct lac__check_container *container, struct waiting *waiting)
{
	int rc;

	if (container->unknown)
		return 0;
	if (container->entry.state != LAC__CONTAINER_ACTIVE &&
		container->entry.state != LAC__CONTAINER_SEALED) {
		if (container->entry.live_blocks == 0)
			return 0;
		return table_wrong(c, container,
			"live blocks, though it holds none any more:", container->entry.live_blocks,
			0);
	}
	rc = compare_blocks(c, container);
	if (rc == 0 && !container->map_missing && !container->overlapped && !c->space_missing)
		rc = compare_map(c, container, waiting);
	return rc;
}

int lac__check_space(struct lac__checker *c)
{
	struct waiting waiting = {0};
	int rc = lac__report_begin(
		&c->report, 5, "space map and container table", c->container_count);

	for (size_t i = 0; i < c->container_count && rc == 0; i++)
		rc = compare_container(c, &c->containers[i], &waiting);
	if (rc == 0 && waiting.granules)
		rc = lac__report_finding(&c->report, LAC_FINDING_SPACE_WAITS, LAC__NAME_SPACE, 0,
			"%" PRIu64 " bytes in %" PRIu64 " containers",
			waiting.granules * c->super.granule_bytes, waiting.containers);
	return rc < 0 ? rc : lac__report_end(&c->report);
}
