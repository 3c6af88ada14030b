/* SPDX-License-Identifier: Apache-2.0 */
/* base/checked.h - arithmetic on values that came from disk or from a caller; true = it fits. */
#ifndef LAC_BASE_CHECKED_H
#define LAC_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool lac__add_ok(uint64_t a, uint64_t b, uint64_t *ret)
{
	return !__builtin_add_overflow(a, b, ret);
}

static inline bool lac__mul_ok(uint64_t a, uint64_t b, uint64_t *ret)
{
	return !__builtin_mul_overflow(a, b, ret);
}

/* [offset, offset + length) lies inside [0, limit). */
static inline bool lac__range_ok(uint64_t offset, uint64_t length, uint64_t limit)
{
	return offset <= limit && length <= limit - offset;
}

/* unit is a power of two; the caller knows that value + unit does not overflow. */
static inline uint64_t lac__round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) & ~(unit - 1);
}

static inline uint64_t lac__round_down(uint64_t value, uint64_t unit)
{
	return value & ~(unit - 1);
}

static inline bool lac__is_power_of_two(uint64_t value)
{
	return value != 0 && (value & (value - 1)) == 0;
}

#endif
