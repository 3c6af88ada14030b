/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/super.h - the superblock: what the store is, and its last checkpoint.
 *
 * The file `super` holds two copies, copy n at n * LAC__SLOT_STRIDE_BYTES. A checkpoint writes the
 * copy that the current one is not; the valid copy with the higher checkpoint number is current.
 */
#ifndef LAC_FORMAT_SUPER_H
#define LAC_FORMAT_SUPER_H

#include "format/common.h"

#define LAC__SUPER_COPIES     2u
#define LAC__SUPER_FILE_BYTES (LAC__SUPER_COPIES * (uint64_t)LAC__SLOT_STRIDE_BYTES)

enum lac__super_flags {
	LAC__SUPER_CLEAN = 1, /* closed cleanly: the journal ends at end_lsn, next_id is exact */
};

struct lac__super {
	struct lac__uuid uuid;
	uint64_t incompat, ro_compat, compat; /* feature bits; none is defined in format 1 */
	uint32_t granule_bytes;		      /* power of two, LAC__GRANULE_MIN..MAX */
	uint32_t copy;			      /* 0 or 1: which copy this is */
	uint32_t flags;			      /* enum lac__super_flags */
	uint64_t checkpoint;		      /* number of this checkpoint, from 1 */
	uint64_t redo_lsn;		      /* first LSN that redo must look at, from 1 */
	uint64_t max_page_lsn;	   /* largest LSN on any page this checkpoint relies on; the
				      journal reaches at least this far (rule 4.4) */
	uint64_t end_lsn;	   /* with CLEAN: last LSN of the journal; else 0 */
	uint64_t next_id;	   /* no id at or above was handed out when this was written
				      (exact with CLEAN, else see id_high_water) */
	uint64_t id_high_water;	   /* no id at or above was ever exposed, HWM records up to
				      redo_lsn included */
	uint32_t next_container;   /* smallest container id never used, from 1 */
	uint32_t inline_max_bytes; /* a transaction with more payload is a large one */
	uint64_t container_bytes;  /* nominal size of a container */
	uint64_t segment_bytes;	   /* nominal size of a journal segment */
	uint64_t journal_seq;	   /* segment that holds redo_lsn, or would: from 1 */
	uint64_t created_ns;	   /* wall clock, for display */
	uint64_t filesystem_type, filesystem_id; /* where the probe below was made */
	uint32_t reclaim_unit_bytes; /* what a punch really frees there; 0 = not probed */
	uint32_t place_flags;	     /* enum lac__place_flags in fs/place.h; opaque here */
};

/* Writes LAC__PAGE_BYTES at ret_page. */
void lac__super_encode(const struct lac__super *super, void *ret_page);
/* Verifies everything that one copy alone can prove; copy is the place it was read from. On
   -EOPNOTSUPP *ret_super is filled, so that the message can name versions. */
int lac__super_decode(
	const void *page, uint32_t copy, struct lac__super *ret_super, struct lac_error *err);

#endif
