/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/page.h - metadata pages: the arrays that index, space map, container table and the list
 * of retired index pages consist of.
 *
 * A page is LAC__PAGE_BYTES: a header of 64 bytes that says who the page is, and a body of
 * LAC__PAGE_BODY_BYTES. Each page has two slots on disk (rule 4.5): page p of a file, slot s,
 * stands at lac__page_slot_offset(p, s). A body of zeros with LSN 0 is the page before its first
 * record; on disk such a page is a slot of zeros, or no slot at all.
 */
#ifndef LAC_FORMAT_PAGE_H
#define LAC_FORMAT_PAGE_H

#include <stdbool.h>

#include "format/common.h"

#define LAC__PAGE_HEADER_BYTES 64u
#define LAC__PAGE_BODY_BYTES   (LAC__PAGE_BYTES - LAC__PAGE_HEADER_BYTES)

enum lac__page_kind {
	LAC__PAGE_INDEX = 1,   /* entries of ids [no * LAC__INDEX_ENTRIES, ...) */
	LAC__PAGE_MAP = 2,     /* granule states of one container */
	LAC__PAGE_TABLE = 3,   /* container table */
	LAC__PAGE_RETIRED = 4, /* bits: index page was retired */
};

#define LAC__INDEX_ENTRIES	 126u
#define LAC__MAP_GRANULES	 LAC__PAGE_BODY_BYTES
#define LAC__TABLE_ENTRIES	 63u
#define LAC__RETIRED_BITS	 (8u * LAC__PAGE_BODY_BYTES)
#define LAC__INDEX_SEGMENT_PAGES 65536u /* pages in one index file */

/* Names a page; container is 0 but for maps. */
struct lac__page_ref {
	uint32_t kind;
	uint32_t container;
	uint64_t no;
};

/* A page in memory. The body is exactly as on disk. */
struct lac__page {
	struct lac__page_ref ref;
	uint64_t lsn;	     /* of the last record applied; 0 = never written */
	uint64_t checkpoint; /* number of the checkpoint that wrote it; 0 = none did */
	uint8_t body[LAC__PAGE_BODY_BYTES];
};

uint64_t lac__page_slot_offset(uint64_t page_in_file, unsigned slot);
/* File bytes needed for both slots of pages [0, pages): a multiple of 2 * LAC__SLOT_STRIDE_BYTES.
 */
uint64_t lac__page_file_bytes(uint64_t pages);

/* Encodes page as checkpoint number `checkpoint` would write it. */
void lac__page_encode(const struct lac__page *page, const struct lac__uuid *uuid,
	uint64_t checkpoint, void *ret_bytes);
/* Verifies checksum and identity. Returns 1 for a slot of zeros (never written, or punched). */
int lac__page_decode(const void *bytes, const struct lac__page_ref *ref,
	const struct lac__uuid *uuid, struct lac__page *ret_page, struct lac_error *err);

enum lac__slot_state {
	LAC__SLOT_ZERO, /* all zeros */
	LAC__SLOT_BAD,	/* fails its checksum or identity */
	LAC__SLOT_OK,
};

struct lac__slot_choice {
	enum lac__slot_state state[2];
	uint64_t checkpoint[2], lsn[2];
	int base;  /* slot to build on, or -1: the page is zero, or lost (see lost) */
	int write; /* slot that the next checkpoint writes: never the base */
	bool lost; /* no base, though a slot is BAD */
};

/*
 * Rule 4.5: base = the valid slot with the highest checkpoint number not above super_checkpoint.
 * Fills ret_page from it, or with the zero page named ref where there is none. Both slots have
 * been read; a slot that could not be read is not this function's business (rule 4.7).
 */
void lac__page_choose(const void *slot0, const void *slot1, const struct lac__page_ref *ref,
	const struct lac__uuid *uuid, uint64_t super_checkpoint, struct lac__page *ret_page,
	struct lac__slot_choice *ret_choice);

/* ---- index entries ---- */

enum lac__entry_state {
	LAC__ENTRY_FREE = 0, /* never committed */
	LAC__ENTRY_LIVE = 1,
	LAC__ENTRY_DEAD = 2, /* deleted; the id is never used again */
};

struct lac__entry {
	uint32_t state;	    /* enum lac__entry_state */
	uint32_t container; /* LIVE only, as all that follows */
	uint64_t offset;    /* of the payload, a multiple of 64 */
	uint64_t length;    /* bytes of payload */
	uint64_t owner;
	uint32_t checksum; /* block checksum */
	uint32_t distance; /* granules from description to payload; 0 = packed (in line) */
};

/* -EUCLEAN for an entry whose fields are out of their bounds. */
int lac__entry_get(
	const struct lac__page *page, unsigned slot, struct lac__entry *ret, struct lac_error *err);
void lac__entry_put(struct lac__page *page, unsigned slot, const struct lac__entry *entry);

/* ---- space map: one byte a granule ---- */

enum lac__granule_state {
	LAC__GRANULE_HOLE = 0, /* nothing, or punched */
	/* 1..LAC__GRANULE_LIVE_MAX: that many live blocks or descriptions */
	LAC__GRANULE_RESERVED =
		251,		   /* may hold bytes of a large transaction that is not committed */
	LAC__GRANULE_DEAD = 252,   /* holds space of deleted blocks: waits for reclaim */
	LAC__GRANULE_HEADER = 253, /* the container's header: stays until the file goes */
};

/* ---- container table ---- */

enum lac__container_state {
	LAC__CONTAINER_NONE = 0,     /* id never used */
	LAC__CONTAINER_CREATING = 1, /* its file may or may not be there */
	LAC__CONTAINER_ACTIVE = 2,   /* takes new blocks */
	LAC__CONTAINER_SEALED = 3,   /* takes none any more */
	LAC__CONTAINER_DROPPING = 4, /* no live block; its files may or may not be there */
	LAC__CONTAINER_GONE = 5,     /* files are unlinked; the id stays used */
};

struct lac__table_entry {
	uint32_t state;	     /* enum lac__container_state */
	uint32_t kind;	     /* enum lac__container_kind */
	uint64_t tail_bytes; /* end of the last range that a record placed or reserved */
	uint64_t live_bytes; /* payload of live blocks */
	uint64_t live_blocks;
	uint64_t dead_granules; /* granules in state DEAD */
	uint64_t hole_granules; /* granules given back by punch or truncation so far */
	uint64_t birth_lsn;
};

int lac__table_get(const struct lac__page *page, unsigned slot, struct lac__table_entry *ret,
	struct lac_error *err);
void lac__table_put(struct lac__page *page, unsigned slot, const struct lac__table_entry *entry);

#endif
