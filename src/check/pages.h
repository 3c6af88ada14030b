/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/pages.h - metadata pages as they are after redo: from their files, with what redo touched
 * in front. Reading a page feeds the largest LSN, and reports what is wrong with its slots.
 */
#ifndef LAC_CHECK_PAGES_H
#define LAC_CHECK_PAGES_H

#include "check/checker.h"

enum lac__page_found {
	LAC__PAGE_FOUND,      /* zero pages too */
	LAC__PAGE_NO_SLOT,    /* a slot is bad and none is good: not reported yet */
	LAC__PAGE_UNREADABLE, /* reported */
};

/* Reads one page that redo touches from its file. quiet: nothing is reported, for a page that is
   read again later. ret_page is the zero page unless FOUND. */
int lac__check_page_read(struct lac__checker *c, const struct lac__page_ref *ref, bool quiet,
	struct lac__page *ret_page, enum lac__page_found *ret_found);

/* Pages [no, no + count) of a visit: one page, or with page NULL some of which nothing is known. */
struct lac__page_view {
	uint64_t no, count;
	const struct lac__page *page; /* lsn > 0 */
	const char *path;
	uint64_t offset; /* of a slot of the page in path */
};
typedef int (*lac__page_visit)(
	struct lac__checker *c, void *arg, const struct lac__page_view *view);

/*
 * Visits the pages of a kind (container: of maps, else 0) in ascending order, after redo, each page
 * at most once. Pages that are not visited are zero. Stops at the first non-zero result.
 */
int lac__check_pages_visit(struct lac__checker *c, enum lac__page_kind kind, uint32_t container,
	lac__page_visit visit, void *arg);

/* Reports PAGE_LOST, PAGE_STALE, ... at the place of page ref. */
int lac__check_page_finding(struct lac__checker *c, enum lac_finding_id id,
	const struct lac__page_ref *ref, const char *what);

#endif
