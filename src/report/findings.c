/* SPDX-License-Identifier: Apache-2.0 */
/* report/findings.c - the table of findings, as functions. */
#include "report/findings.h"

static const struct lac__finding_row rows[] = {
#define ROW(name, number, severity, repairable, text)                                              \
	{number, LAC_SEVERITY_##severity, repairable, #name, text},
	LAC_FINDINGS(ROW)
#undef ROW
};

const struct lac__finding_row *lac__finding_row(int id)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].id == id)
			return &rows[i];
	}
	return NULL;
}

LAC_PUBLIC const char *lac_finding_name(int id)
{
	const struct lac__finding_row *row = lac__finding_row(id);

	return row ? row->name : NULL;
}

LAC_PUBLIC const char *lac_finding_text(int id)
{
	const struct lac__finding_row *row = lac__finding_row(id);

	return row ? row->text : NULL;
}
