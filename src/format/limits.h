/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/limits.h - bounds of numbers on disk that have no natural one.
 *
 * They leave room above: a caller may add 2^32 to any number that was decoded (rule 4.19 does)
 * without thinking of overflow. No store reaches them by growing.
 */
#ifndef LAC_FORMAT_LIMITS_H
#define LAC_FORMAT_LIMITS_H

#include <stdint.h>

#define LAC__LSN_LIMIT	       (UINT64_C(1) << 62) /* LSNs are below */
#define LAC__CHECKPOINT_LIMIT  (UINT64_C(1) << 62) /* checkpoint numbers are below */
#define LAC__SEQ_LIMIT	       (UINT64_C(1) << 62) /* segment numbers are below */
#define LAC__ID_LIMIT	       (UINT64_C(1) << 54) /* block ids are below: 2^32 index files hold more */
#define LAC__SEGMENT_MIN_BYTES (UINT64_C(1) << 13)
#define LAC__SEGMENT_MAX_BYTES (UINT64_C(1) << 40)

#endif
