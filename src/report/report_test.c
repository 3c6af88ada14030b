/* SPDX-License-Identifier: Apache-2.0 */
/* report/report_test.c - the finding table is unique, counts and callbacks agree, a stop stays. */
#include "report/report.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct seen {
	int findings, phases, stop_at;
	struct lac_finding last;
	char text[700], path[64];
	struct lac_phase phase;
};

static int on_finding(void *arg, const struct lac_finding *f)
{
	struct seen *s = arg;

	s->last = *f;
	strncpy(s->text, f->text, sizeof(s->text) - 1);
	strncpy(s->path, f->path, sizeof(s->path) - 1);
	return ++s->findings == s->stop_at;
}

static int on_phase(void *arg, const struct lac_phase *p)
{
	struct seen *s = arg;

	s->phase = *p;
	s->phases++;
	return 0;
}

static void table(void **state)
{
	static const int ids[] = {
#define ID(name, number, severity, repairable, text) number,
		LAC_FINDINGS(ID)
#undef ID
	};
	const size_t count = sizeof(ids) / sizeof(ids[0]);

	for (size_t i = 0; i < count; i++) {
		assert_non_null(lac_finding_name(ids[i]));
		assert_true(strlen(lac_finding_text(ids[i])) > 0);
		for (size_t j = 0; j < i; j++)
			assert_true(ids[i] != ids[j]);
	}
	assert_string_equal(lac_finding_name(LAC_FINDING_MAP_WRONG), "MAP_WRONG");
	assert_string_equal(lac_finding_text(101), "one superblock copy does not verify");
	assert_null(lac_finding_name(0));
	assert_null(lac_finding_text(999));
}

static void findings(void **state)
{
	struct seen s = {0};
	struct lac__report r = {.finding = on_finding, .arg = &s};

	assert_int_equal(lac__report_finding(&r, LAC_FINDING_JOURNAL_TORN, "journal", 7, NULL), 0);
	assert_string_equal(s.text, lac_finding_text(LAC_FINDING_JOURNAL_TORN));
	assert_int_equal(s.last.severity, LAC_SEVERITY_NOTE);
	assert_int_equal(
		lac__report_finding(&r, LAC_FINDING_PAGE_LOST, "a", 4096, "copy %d", 1), 0);
	assert_string_equal(s.text, "no slot of a metadata page verifies: copy 1");
	assert_string_equal(s.path, "a");
	assert_int_equal(s.last.offset, 4096);
	assert_int_equal(s.last.severity, LAC_SEVERITY_DAMAGE);
	assert_true(s.last.repairable);
	assert_int_equal(lac__report_finding(&r, LAC_FINDING_SUPER_FORMAT, "a", 0, "x"), 0);
	assert_false(s.last.repairable);
	assert_int_equal(r.notes, 1);
	assert_int_equal(r.damages, 1);
	assert_int_equal(r.fatals, 1);
}

static void long_text_is_cut(void **state)
{
	struct seen s = {0};
	struct lac__report r = {.finding = on_finding, .arg = &s};
	char big[2000];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	assert_int_equal(lac__report_finding(&r, LAC_FINDING_PAGE_LOST, "a", 0, "%s", big), 0);
	assert_true(strlen(s.text) < 640);
}

static void stop_stays(void **state)
{
	struct seen s = {.stop_at = 2};
	struct lac__report r = {.finding = on_finding, .phase = on_phase, .arg = &s};

	assert_int_equal(lac__report_finding(&r, LAC_FINDING_PAGE_LOST, "a", 0, NULL), 0);
	assert_int_equal(lac__report_finding(&r, LAC_FINDING_PAGE_LOST, "a", 0, NULL), -ECANCELED);
	assert_int_equal(lac__report_finding(&r, LAC_FINDING_PAGE_LOST, "a", 0, NULL), -ECANCELED);
	assert_int_equal(lac__report_begin(&r, 1, "x", 0), -ECANCELED);
	assert_int_equal(lac__report_progress(&r, 1, 1), -ECANCELED);
	assert_int_equal(lac__report_end(&r), -ECANCELED);
	assert_int_equal(s.findings, 2);
	assert_int_equal(s.phases, 0);
}

static void phases(void **state)
{
	struct seen s = {0};
	struct lac__report r = {.phase = on_phase, .arg = &s};

	assert_int_equal(lac__report_begin(&r, 4, "index", 1000), 0);
	assert_int_equal(s.phases, 1);
	assert_int_equal(s.phase.end_ns, 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(lac__report_progress(&r, 1, 10), 0);
	assert_true(s.phases < 100);
	assert_int_equal(lac__report_end(&r), 0);
	assert_int_equal(s.phase.number, 4);
	assert_string_equal(s.phase.name, "index");
	assert_int_equal(s.phase.items, 1000);
	assert_int_equal(s.phase.items_total, 1000);
	assert_int_equal(s.phase.bytes, 10000);
	assert_true(s.phase.end_ns >= s.phase.start_ns && s.phase.end_ns != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(findings),
		cmocka_unit_test(long_text_is_cut),
		cmocka_unit_test(stop_stays),
		cmocka_unit_test(phases),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
