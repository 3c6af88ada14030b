/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/extents.h - where the live blocks stand: 24 bytes each, sorted by container and start, so
 * that overlaps are neighbours and a space map is recomputed in one sweep.
 *
 * Descriptions of aligned blocks stand in granules of their own, which count how many live blocks
 * have theirs in them; consecutive blocks of one such granule share an extent.
 */
#ifndef LAC_CHECK_EXTENTS_H
#define LAC_CHECK_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/page.h"

struct lac__extent {
	uint64_t start; /* byte in the container */
	uint32_t container;
	uint32_t units; /* of LAC__PACK_ALIGN_BYTES; 0 = a granule of descriptions */
	uint64_t id;	/* of the block; with units 0 the number of descriptions */
};

struct lac__extents {
	struct lac__extent *at;
	size_t count, room;
	uint32_t granule_bytes;
	struct lac__extent description; /* the one being filled; id 0 = none */
};

/* Bytes that a block takes for itself; false when entry is out of its bounds. */
bool lac__extents_footprint(const struct lac__entry *entry, uint32_t granule_bytes,
	uint64_t *ret_start, uint64_t *ret_end);

int lac__extents_add(struct lac__extents *x, uint64_t id, const struct lac__entry *entry,
	uint64_t start, uint64_t end);
/* After the last add. */
int lac__extents_sort(struct lac__extents *x);
uint64_t lac__extent_end(const struct lac__extents *x, const struct lac__extent *extent);
/* The extents of container are [*ret_first, return value). */
size_t lac__extents_of(const struct lac__extents *x, uint32_t container, size_t *ret_first);
void lac__extents_free(struct lac__extents *x);

#endif
