/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/common.h - constants that several structures of format 1 share. doc/format.md is the
 * specification; a change here changes it in the same commit.
 *
 * Layer format is pure: it turns bytes into host structures and back, verifies, and applies a
 * record to a page. No I/O, no allocation, no clock. Decoders take hostile bytes: they return
 * -EBADMSG for a wrong magic or checksum, -EUCLEAN for a field that contradicts its bounds or the
 * expected identity, -EOPNOTSUPP for a version or feature unknown here, and never read beyond
 * the length they are given. Reserved bytes are zero, and verified to be zero.
 */
#ifndef LAC_FORMAT_COMMON_H
#define LAC_FORMAT_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "base/endian.h"
#include "base/error.h"

#define LAC__FORMAT_VERSION 1u

#define LAC__PAGE_BYTES 4096u /* every metadata page, superblock copy and header */
#define LAC__SLOT_STRIDE_BYTES                                                                     \
	65536u /* distance of two copies of one thing: at least a tear unit of                     \
		  any device and a block of any filesystem (rule 4.8) */
#define LAC__GRANULE_MIN_BYTES 4096u
#define LAC__GRANULE_MAX_BYTES 65536u
#define LAC__PACK_ALIGN_BYTES  64u    /* packed payloads and descriptions start on this */
#define LAC__CHUNK_BYTES       65536u /* a payload longer than this carries a chunk table */
#define LAC__LENGTH_MAX_BYTES  (UINT64_C(1) << 47) /* longest block */
#define LAC__OFFSET_MAX_BYTES  (UINT64_C(1) << 50) /* end of the largest container */
#define LAC__GRANULE_LIVE_MAX  250u		   /* blocks that may share a granule */

struct lac__uuid {
	uint8_t b[16];
};

#endif
