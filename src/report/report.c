/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/report.c - findings are data: they are counted and handed to the caller, who decides
 * about their looks. Phases are told at both ends and about ten times a second between, so that a
 * callback that prints costs nothing.
 */
#include "report/report.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "report/findings.h"

#define TELL_EVERY_NS UINT64_C(100000000)

static void count(struct lac__report *r, int severity)
{
	switch (severity) {
	case LAC_SEVERITY_NOTE: r->notes++; break;
	case LAC_SEVERITY_DAMAGE: r->damages++; break;
	default: r->fatals++; break;
	}
}

int lac__report_finding(struct lac__report *r, enum lac_finding_id id, const char *path,
	uint64_t offset, const char *format, ...)
{
	const struct lac__finding_row *row = lac__finding_row(id);
	struct lac_finding finding;
	char text[640];
	va_list ap;
	int n;

	assert(row);
	if (r->stopped)
		return -ECANCELED;
	count(r, row->severity);
	if (!r->finding)
		return 0;
	n = snprintf(text, sizeof(text), "%s", row->text);
	if (format) {
		n += snprintf(text + n, sizeof(text) - (size_t)n, ": ");
		va_start(ap, format);
		vsnprintf(text + n, sizeof(text) - (size_t)n, format, ap);
		va_end(ap);
	}
	finding = (struct lac_finding){.id = row->id,
		.severity = row->severity,
		.repairable = row->repairable,
		.path = path,
		.offset = offset,
		.text = text};
	if (r->finding(r->arg, &finding) != 0)
		r->stopped = true;
	return r->stopped ? -ECANCELED : 0;
}

static int tell(struct lac__report *r, uint64_t now_ns)
{
	if (r->stopped)
		return -ECANCELED;
	r->told_ns = now_ns;
	if (r->phase && r->phase(r->arg, &r->now) != 0)
		r->stopped = true;
	return r->stopped ? -ECANCELED : 0;
}

int lac__report_begin(struct lac__report *r, int number, const char *name, uint64_t items_total)
{
	uint64_t now_ns = lac__clock_monotonic_ns();

	r->now = (struct lac_phase){
		.number = number, .name = name, .start_ns = now_ns, .items_total = items_total};
	return tell(r, now_ns);
}

int lac__report_progress(struct lac__report *r, uint64_t items, uint64_t bytes)
{
	uint64_t now_ns;

	r->now.items += items;
	r->now.bytes += bytes;
	if (r->stopped)
		return -ECANCELED;
	now_ns = lac__clock_monotonic_ns();
	return now_ns - r->told_ns < TELL_EVERY_NS ? 0 : tell(r, now_ns);
}

int lac__report_end(struct lac__report *r)
{
	r->now.end_ns = lac__clock_monotonic_ns();
	return tell(r, r->now.end_ns);
}
