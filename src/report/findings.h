/* SPDX-License-Identifier: Apache-2.0 */
/* report/findings.h - a row of the table in lacuna/check.h. */
#ifndef LAC_REPORT_FINDINGS_H
#define LAC_REPORT_FINDINGS_H

#include "base/public.h"
#include "lacuna/check.h"

struct lac__finding_row {
	int id;
	int severity;
	bool repairable;
	const char *name, *text;
};

/* NULL for a number that is no finding. */
const struct lac__finding_row *lac__finding_row(int id);

#endif
