/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/histogram.c - log-linear buckets.
 *
 * Values below 16 have a bucket each. Above, a value whose highest bit is e (e >= 4) falls in one
 * of 16 equal buckets of [2^e, 2^(e+1)), by the four bits below the highest: 16 + 60 * 16 in all.
 */
#include "base/histogram.h"

#include <string.h>

#define LINEAR	    16u
#define LINEAR_BITS 4u

_Static_assert(LAC__HISTOGRAM_BUCKETS == LINEAR + (64 - LINEAR_BITS) * LINEAR, "every value fits");

static unsigned bucket_of(uint64_t value)
{
	unsigned shift;

	if (value < LINEAR)
		return (unsigned)value;
	shift = 63 - (unsigned)__builtin_clzll(value) - LINEAR_BITS;
	return (shift + 1) * LINEAR + (unsigned)((value >> shift) & (LINEAR - 1));
}

/* The largest value of a bucket: a percentile is rather said too high than too low. */
static uint64_t bucket_top(unsigned bucket)
{
	unsigned shift;
	uint64_t first;

	if (bucket < LINEAR)
		return bucket;
	shift = bucket / LINEAR - 1;
	first = (uint64_t)(LINEAR + bucket % LINEAR) << shift;
	return first + ((UINT64_C(1) << shift) - 1);
}

void lac__histogram_reset(struct lac__histogram *h)
{
	memset(h, 0, sizeof(*h));
}

void lac__histogram_add(struct lac__histogram *h, uint64_t value_ns)
{
	if (h->count == 0 || value_ns < h->min_ns)
		h->min_ns = value_ns;
	if (value_ns > h->max_ns)
		h->max_ns = value_ns;
	h->count++;
	h->sum_ns += value_ns;
	h->buckets[bucket_of(value_ns)]++;
}

void lac__histogram_merge(struct lac__histogram *into, const struct lac__histogram *from)
{
	if (from->count == 0)
		return;
	if (into->count == 0 || from->min_ns < into->min_ns)
		into->min_ns = from->min_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	into->count += from->count;
	into->sum_ns += from->sum_ns;
	for (unsigned i = 0; i < LAC__HISTOGRAM_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

/* The smallest rank that covers the quantile, 1..count. */
static uint64_t rank_of(const struct lac__histogram *h, double quantile)
{
	double exact = quantile * (double)h->count;
	uint64_t rank;

	if (!(quantile > 0))
		return 1;
	if (quantile >= 1)
		return h->count;
	rank = (uint64_t)exact;
	if ((double)rank < exact)
		rank++;
	if (rank < 1)
		return 1;
	return rank < h->count ? rank : h->count;
}

uint64_t lac__histogram_quantile_ns(const struct lac__histogram *h, double quantile)
{
	uint64_t rank, seen = 0, top;

	if (h->count == 0)
		return 0;
	rank = rank_of(h, quantile);
	for (unsigned i = 0; i < LAC__HISTOGRAM_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen < rank)
			continue;
		top = bucket_top(i);
		return top > h->max_ns ? h->max_ns : top < h->min_ns ? h->min_ns : top;
	}
	return h->max_ns;
}
