/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/overlay.h - pages in memory that stand in front of those on disk: what redo touched. And a
 * set of numbers, made once and then asked.
 */
#ifndef LAC_CHECK_OVERLAY_H
#define LAC_CHECK_OVERLAY_H

#include <stdbool.h>

#include "format/page.h"

enum lac__redone_state {
	LAC__REDONE_FINE,
	LAC__REDONE_LOST,    /* no slot verifies; redo may still make it from nothing */
	LAC__REDONE_UNKNOWN, /* reported */
	LAC__REDONE_SKIPPED, /* its file is unlinked by recovery, or was */
};

struct lac__redone {
	struct lac__page page;
	enum lac__redone_state state;
	uint64_t listed_lsn;   /* the last record that lists the page */
	uint64_t applying_lsn; /* the last record that changes it */
};

struct lac__overlay {
	struct lac__redone **slots; /* open addressing */
	size_t capacity, count;
	struct lac__redone **sorted; /* by kind, container, number; count of them */
};

struct lac__redone *lac__overlay_find(
	const struct lac__overlay *o, const struct lac__page_ref *ref);
/* A new zero page for ref, which is not there yet; NULL when out of memory. */
struct lac__redone *lac__overlay_add(struct lac__overlay *o, const struct lac__page_ref *ref);
/* After the last add. */
int lac__overlay_sort(struct lac__overlay *o);
/* First in sorted that is not before ref. */
size_t lac__overlay_lower(const struct lac__overlay *o, const struct lac__page_ref *ref);
void lac__overlay_free(struct lac__overlay *o);

struct lac__u64_set {
	uint64_t *at;
	size_t count, room;
};

int lac__u64_set_add(struct lac__u64_set *s, uint64_t value);
void lac__u64_set_sort(struct lac__u64_set *s);
bool lac__u64_set_has(const struct lac__u64_set *s, uint64_t value);

#endif
