/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/extents.c - sorted in place, by a heap sort: the list may be most of the memory there is,
 * and what comes from an index is nearly sorted most of the time, which a first look finds out.
 */
#include "check/extents.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "format/block.h"
#include "format/entry.h"

/* A longer block is cut into several extents, at ends that every granule size shares. */
#define PIECE_BYTES (UINT64_C(1) << 37)

bool lac__extents_footprint(const struct lac__entry *entry, uint32_t granule_bytes,
	uint64_t *ret_start, uint64_t *ret_end)
{
	if (lac__block_place_check(
		    entry->offset, entry->length, entry->distance, granule_bytes, NULL) < 0)
		return false;
	*ret_start = entry->offset - (entry->distance == 0 ? LAC__DESCRIPTION_BYTES : 0);
	*ret_end = lac__block_end(entry->offset, entry->length, entry->distance, granule_bytes);
	return true;
}

static int push(struct lac__extents *x, const struct lac__extent *extent)
{
	if (x->count == x->room) {
		size_t room = x->room ? x->room + x->room / 2 : 1024;
		struct lac__extent *at = reallocarray(x->at, room, sizeof(*at));

		if (!at)
			return -ENOMEM;
		x->at = at;
		x->room = room;
	}
	x->at[x->count++] = *extent;
	return 0;
}

static int push_description(struct lac__extents *x)
{
	int rc = x->description.id ? push(x, &x->description) : 0;

	x->description.id = 0;
	return rc;
}

static int add_description(struct lac__extents *x, uint32_t container, uint64_t start)
{
	int rc;

	if (x->description.id && x->description.container == container &&
		x->description.start == start) {
		x->description.id++;
		return 0;
	}
	rc = push_description(x);
	x->description = (struct lac__extent){.start = start, .container = container, .id = 1};
	return rc;
}

int lac__extents_add(struct lac__extents *x, uint64_t id, const struct lac__entry *entry,
	uint64_t start, uint64_t end)
{
	int rc = 0;

	if (entry->distance)
		rc = add_description(x, entry->container,
			entry->offset - (uint64_t)entry->distance * x->granule_bytes);
	while (rc == 0 && start < end) {
		uint64_t stop = end - start <= PIECE_BYTES ? end
							   : lac__round_down(start + PIECE_BYTES,
								     LAC__GRANULE_MAX_BYTES);
		struct lac__extent extent = {.start = start,
			.container = entry->container,
			.units = (uint32_t)((stop - start) / LAC__PACK_ALIGN_BYTES),
			.id = id};

		rc = push(x, &extent);
		start = stop;
	}
	return rc;
}

uint64_t lac__extent_end(const struct lac__extents *x, const struct lac__extent *extent)
{
	if (extent->units == 0)
		return extent->start + x->granule_bytes;
	return extent->start + (uint64_t)extent->units * LAC__PACK_ALIGN_BYTES;
}

/* Ties in start: descriptions first, then by id, so that reports do not depend on the sort. */
static bool before(const struct lac__extent *a, const struct lac__extent *b)
{
	if (a->container != b->container)
		return a->container < b->container;
	if (a->start != b->start)
		return a->start < b->start;
	if ((a->units == 0) != (b->units == 0))
		return a->units == 0;
	return a->id < b->id;
}

static void sift_down(struct lac__extent *at, size_t i, size_t count)
{
	struct lac__extent moving = at[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= count)
			break;
		if (child + 1 < count && before(&at[child], &at[child + 1]))
			child++;
		if (!before(&moving, &at[child]))
			break;
		at[i] = at[child];
		i = child;
	}
	at[i] = moving;
}

int lac__extents_sort(struct lac__extents *x)
{
	bool sorted = true;
	int rc = push_description(x);

	if (rc < 0)
		return rc;
	for (size_t i = 1; i < x->count && sorted; i++)
		sorted = !before(&x->at[i], &x->at[i - 1]);
	if (sorted)
		return 0;
	for (size_t i = x->count / 2; i-- > 0;)
		sift_down(x->at, i, x->count);
	for (size_t end = x->count - 1; end > 0; end--) {
		struct lac__extent last = x->at[end];

		x->at[end] = x->at[0];
		x->at[0] = last;
		sift_down(x->at, 0, end);
	}
	return 0;
}

static size_t lower(const struct lac__extents *x, uint64_t container)
{
	size_t low = 0, high = x->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (x->at[middle].container < container)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t lac__extents_of(const struct lac__extents *x, uint32_t container, size_t *ret_first)
{
	*ret_first = lower(x, container);
	return lower(x, (uint64_t)container + 1);
}

void lac__extents_free(struct lac__extents *x)
{
	free(x->at);
	*x = (struct lac__extents){0};
}
