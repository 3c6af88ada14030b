/* SPDX-License-Identifier: Apache-2.0 */
/* base/clock.h - time, in nanoseconds. */
#ifndef LAC_BASE_CLOCK_H
#define LAC_BASE_CLOCK_H

#include <stdint.h>

uint64_t lac__clock_monotonic_ns(void);
/* Since 1970, for display only: nothing may be decided by it. */
uint64_t lac__clock_wall_ns(void);

#endif
