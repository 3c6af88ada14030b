/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/clock.c - the two clocks of the system. Both calls can fail only for an unknown clock, which
 * these are not on any system that we build for; zero is returned then, and nothing depends on it.
 */
#include "base/clock.h"

#include <time.h>

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) < 0)
		return 0;
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t lac__clock_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t lac__clock_wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}
