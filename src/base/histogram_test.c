/* SPDX-License-Identifier: Apache-2.0 */
/* base/histogram_test.c - quantiles within a sixteenth, at every magnitude. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/histogram.h"

static struct lac__histogram h, other;

static void test_empty(void **state)
{
	(void)state;
	lac__histogram_reset(&h);
	assert_int_equal(lac__histogram_quantile_ns(&h, 0.5), 0);
	lac__histogram_reset(&other);
	lac__histogram_merge(&h, &other);
	assert_int_equal(h.count, 0);
	assert_int_equal(h.min_ns, 0);
}

/* A pair of values: the lower one is reported at most a sixteenth too high, never too low. */
static void check_value(uint64_t value)
{
	uint64_t got;

	lac__histogram_reset(&h);
	lac__histogram_add(&h, value);
	lac__histogram_add(&h, UINT64_MAX);
	got = lac__histogram_quantile_ns(&h, 0.5);
	assert_true(got >= value);
	assert_true(got - value <= value / 16);
	assert_int_equal(h.min_ns, value);
	assert_true(lac__histogram_quantile_ns(&h, 1) == UINT64_MAX);
}

static void test_accuracy(void **state)
{
	(void)state;
	for (uint64_t v = 0; v < 70; v++)
		check_value(v);
	for (int bit = 6; bit < 64; bit++) {
		uint64_t v = UINT64_C(1) << bit;

		check_value(v - 1);
		check_value(v);
		check_value(v + 1);
		check_value(v + v / 2 + 3);
	}
	check_value(UINT64_MAX);
}

static void test_quantiles(void **state)
{
	(void)state;
	lac__histogram_reset(&h);
	lac__histogram_reset(&other);
	for (uint64_t v = 1; v <= 10000; v++)
		lac__histogram_add(v % 2 ? &h : &other, v);
	lac__histogram_merge(&h, &other);
	assert_int_equal(h.count, 10000);
	assert_int_equal(h.sum_ns, 10000 * 10001 / 2);
	assert_int_equal(h.min_ns, 1);
	assert_int_equal(h.max_ns, 10000);
	assert_in_range(lac__histogram_quantile_ns(&h, 0.5), 5000, 5313);
	assert_in_range(lac__histogram_quantile_ns(&h, 0.99), 9900, 10000);
	assert_int_equal(lac__histogram_quantile_ns(&h, 0), 1);
	assert_int_equal(lac__histogram_quantile_ns(&h, -1), 1);
	assert_int_equal(lac__histogram_quantile_ns(&h, 0.0 / 0.0), 1);
	assert_int_equal(lac__histogram_quantile_ns(&h, 1), 10000);
	assert_int_equal(lac__histogram_quantile_ns(&h, 2), 10000);
	/* The middle one of three. */
	lac__histogram_reset(&other);
	for (uint64_t v = 1; v <= 3; v++)
		lac__histogram_add(&other, v);
	assert_int_equal(lac__histogram_quantile_ns(&other, 0.5), 2);
	/* Merging into an empty one takes the minimum over. */
	lac__histogram_reset(&other);
	lac__histogram_merge(&other, &h);
	assert_int_equal(other.min_ns, 1);
}

static void test_clock(void **state)
{
	uint64_t a = lac__clock_monotonic_ns(), b = lac__clock_monotonic_ns();

	(void)state;
	assert_true(a > 0 && b >= a);
	/* Later than 2020. */
	assert_true(lac__clock_wall_ns() > UINT64_C(1577836800000000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_accuracy),
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
