/* SPDX-License-Identifier: Apache-2.0 */
/* format/names.h - the names of a store's files; doc/format.md lists them. */
#ifndef LAC_FORMAT_NAMES_H
#define LAC_FORMAT_NAMES_H

#include <inttypes.h>
#include <stdio.h>

#include "format/page.h"

#define LAC__NAME_BYTES 64 /* longest name of a file in a store, with room */

#define LAC__NAME_SUPER	     "super"
#define LAC__NAME_JOURNAL    "journal"
#define LAC__NAME_INDEX	     "index"
#define LAC__NAME_SPACE	     "space"
#define LAC__NAME_DATA	     "data"
#define LAC__NAME_QUARANTINE "quarantine"

static inline void lac__name_container(uint32_t container, char ret[LAC__NAME_BYTES])
{
	snprintf(ret, LAC__NAME_BYTES, LAC__NAME_DATA "/%08" PRIx32 ".lac", container);
}

/* The file that holds the page, and its number in that file. */
static inline void lac__name_page(
	const struct lac__page_ref *ref, char ret[LAC__NAME_BYTES], uint64_t *ret_page_in_file)
{
	*ret_page_in_file = ref->no;
	switch (ref->kind) {
	case LAC__PAGE_INDEX:
		*ret_page_in_file = ref->no % LAC__INDEX_SEGMENT_PAGES;
		snprintf(ret, LAC__NAME_BYTES, LAC__NAME_INDEX "/%08" PRIx64 ".idx",
			ref->no / LAC__INDEX_SEGMENT_PAGES);
		break;
	case LAC__PAGE_MAP:
		snprintf(
			ret, LAC__NAME_BYTES, LAC__NAME_SPACE "/%08" PRIx32 ".map", ref->container);
		break;
	case LAC__PAGE_TABLE: snprintf(ret, LAC__NAME_BYTES, LAC__NAME_SPACE "/table"); break;
	default: snprintf(ret, LAC__NAME_BYTES, LAC__NAME_INDEX "/retired"); break;
	}
}

#endif
