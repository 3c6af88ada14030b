/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs/place.h - what the filesystem below a directory can do, found out by trying it there.
 */
#ifndef LAC_FS_PLACE_H
#define LAC_FS_PLACE_H

#include "io/io.h"

enum lac__place_flags {
	LAC__PLACE_ALLOCATE = 1, /* fallocate reserves real space */
	LAC__PLACE_PUNCH = 2,	 /* a punch gives space back */
	LAC__PLACE_COW = 4,	 /* overwriting takes new space: P7 and P8 weaken */
	LAC__PLACE_PARTIAL = 8,	 /* part of a preallocated extent can be freed (not on btrfs) */
	LAC__PLACE_PROBED = 16,	 /* these flags were measured, not assumed */
};

struct lac__place {
	uint64_t filesystem_type, filesystem_id;
	uint32_t block_bytes;
	uint32_t physical_sector_bytes;
	uint32_t reclaim_unit_bytes; /* smallest aligned range whose punch frees space; 0 = none
					does */
	uint32_t flags;		     /* enum lac__place_flags */
};

/* The cautious choice, nothing tried: allocation is attempted, punching too, unit = block size. */
int lac__place_assume(
	struct lac_backend *be, const char *dir, struct lac__place *ret, struct lac_error *err);
/* Tries it with a temporary file in dir (a few hundred KiB, removed again, also after a failure). A
   full disk (ENOSPC) or a read-only one leaves the assumed values without PROBED, and returns 0. */
int lac__place_probe(
	struct lac_backend *be, const char *dir, struct lac__place *ret, struct lac_error *err);

#endif
