/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/histogram.h - a log-linear histogram of durations in nanoseconds: 16 linear buckets per
 * power of two, so a percentile is at most 1/16 off. Fixed size, no allocation. Not thread-safe:
 * one per thread, merged afterwards.
 */
#ifndef LAC_BASE_HISTOGRAM_H
#define LAC_BASE_HISTOGRAM_H

#include <stdint.h>

#define LAC__HISTOGRAM_BUCKETS (16 * 61)

struct lac__histogram {
	uint64_t count, sum_ns, min_ns, max_ns;
	uint64_t buckets[LAC__HISTOGRAM_BUCKETS];
};

void lac__histogram_reset(struct lac__histogram *h);
void lac__histogram_add(struct lac__histogram *h, uint64_t value_ns);
void lac__histogram_merge(struct lac__histogram *into, const struct lac__histogram *from);
/* quantile in [0, 1]; 0 when empty. */
uint64_t lac__histogram_quantile_ns(const struct lac__histogram *h, double quantile);

#endif
