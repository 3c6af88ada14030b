/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/entry.h - for this layer only: bounds that index entries, table entries and the operations
 * that change them have in common.
 */
#ifndef LAC_FORMAT_ENTRY_H
#define LAC_FORMAT_ENTRY_H

#include "format/page.h"

#define LAC__DISTANCE_MAX 65535u

/*
 * A block's place: alignment, room for its description behind the header granule, end of its
 * footprint within the largest container. granule_bytes is LAC__GRANULE_MIN_BYTES where the
 * store's is not known.
 */
int lac__block_place_check(uint64_t offset, uint64_t length, uint32_t distance,
	uint32_t granule_bytes, struct lac_error *err);
/* End of the payload's footprint, rounded as format/block.h says. */
uint64_t lac__block_end(
	uint64_t offset, uint64_t length, uint32_t distance, uint32_t granule_bytes);

/* Bounds of an entry, after lac__table_get and before lac__table_put. */
int lac__table_check(const struct lac__table_entry *t, unsigned slot, struct lac_error *err);

#endif
