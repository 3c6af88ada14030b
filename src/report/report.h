/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/report.h - findings and phases on their way to the caller: counted, worded from the one
 * table in lacuna/check.h, and throttled.
 *
 * Everything is called from one thread. Once a callback returned non-zero every call gives
 * -ECANCELED, and no callback is called any more.
 */
#ifndef LAC_REPORT_REPORT_H
#define LAC_REPORT_REPORT_H

#include "lacuna/check.h"

struct lac__report {
	/* Set by the user; each may be NULL. */
	int (*finding)(void *arg, const struct lac_finding *finding);
	int (*phase)(void *arg, const struct lac_phase *phase);
	void *arg;
	/* Read by the user. */
	uint64_t notes, damages, fatals;
	bool stopped;
	/* Its own. */
	struct lac_phase now;
	uint64_t told_ns;
};

/*
 * Counts a finding and tells it. severity and repairable come from the table; the text is the
 * table's, then ": " and what format says of this case (NULL = nothing).
 */
int lac__report_finding(struct lac__report *r, enum lac_finding_id id, const char *path,
	uint64_t offset, const char *format, ...) __attribute__((format(printf, 5, 6)));

int lac__report_begin(struct lac__report *r, int number, const char *name, uint64_t items_total);
/* Adds to the counts of the running phase; tells about ten times a second. */
int lac__report_progress(struct lac__report *r, uint64_t items, uint64_t bytes);
int lac__report_end(struct lac__report *r);

#endif
