/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/record.h - a transaction as the journal carries it, and what it does to a page.
 *
 * A record is the unit of atomicity and has one LSN. It lists every page it touches with that
 * page's LSN before it (rule 4.3), then its operations. Every operation says all that any of its
 * pages needs (rule 4.10), so redo of one page never reads another. Sequencing, redo and check
 * all change pages by lac__op_apply and nothing else.
 *
 * Layout (doc/format.md): header of 16 bytes {le16 version, le16 flags 0, le32 pages, le32 ops,
 * le32 0}; `pages` times 24 bytes {le32 kind, le32 container, le64 no, le64 prev_lsn}; `ops` times
 * an operation {le16 type, le16 flags, le32 bytes, fields, inline payload, zeros to a multiple of
 * 8}, bytes counting the whole of it.
 */
#ifndef LAC_FORMAT_RECORD_H
#define LAC_FORMAT_RECORD_H

#include "format/block.h"
#include "format/page.h"

#define LAC__RECORD_VERSION	 1u
#define LAC__RECORD_HEADER_BYTES 16u
#define LAC__RECORD_PAGE_BYTES	 24u
#define LAC__RECORD_OPS_MAX	 (1u << 20)
#define LAC__RECORD_BYTES_MAX	 (64u << 20)

enum lac__op_type {
	LAC__OP_PUT = 1,       /* a block becomes live */
	LAC__OP_DELETE = 2,    /* a block becomes dead */
	LAC__OP_RESERVE = 3,   /* granules HOLE -> RESERVED (rule 4.12) */
	LAC__OP_RELEASE = 4,   /* granules HOLE or RESERVED -> DEAD: a range given up */
	LAC__OP_HOLE = 5,      /* granules DEAD -> HOLE: punched or truncated, and synced */
	LAC__OP_CONTAINER = 6, /* a container changes its state (rule 4.17) */
	LAC__OP_HIGH_WATER =
		7,	    /* ids below `to` may be exposed (rule 4.15); their index pages begin */
	LAC__OP_RETIRE = 8, /* an index page is retired (rule 4.16) */
};

struct lac__op {
	uint32_t type; /* enum lac__op_type */
	/* PUT, DELETE */
	uint64_t id;
	uint64_t owner; /* PUT; DELETE carries it too, for the reader of a dump */
	uint64_t length;
	uint64_t offset;    /* of the payload */
	uint32_t container; /* also of RESERVE, RELEASE, HOLE, CONTAINER */
	uint32_t checksum;  /* PUT */
	uint32_t distance;
	uint32_t generation; /* PUT */
	uint32_t slot; /* PUT, aligned: the description is number slot of its granule; packed: 0 */
	/* granules that this operation turns: PUT DEAD -> live, DELETE live -> DEAD, RELEASE ->
	 * DEAD */
	uint64_t turned;
	/* RESERVE, RELEASE, HOLE: granules [first, first + count). HIGH_WATER: ids [first, first +
	   count). RETIRE: first = index page number. */
	uint64_t first, count;
	/* CONTAINER */
	uint32_t state, kind; /* new state; kind is set with CREATING and repeated after */
	/* PUT of a small transaction: the payload (without chunk table), in the record */
	bool has_payload;
	const void *payload; /* length bytes; points into the record when decoded */
};

struct lac__record_page {
	struct lac__page_ref ref;
	uint64_t prev_lsn;
};

/* Encoded size of op, payload included. */
size_t lac__op_bytes(const struct lac__op *op);
/* Encodes op at ret_bytes; returns lac__op_bytes(op). */
size_t lac__op_encode(const struct lac__op *op, void *ret_bytes);
void lac__record_header_encode(uint32_t pages, uint32_t ops, void *ret_bytes);
void lac__record_page_encode(const struct lac__record_page *page, void *ret_bytes);

/* A verified record in memory; points into the caller's bytes. */
struct lac__record {
	const uint8_t *bytes;
	size_t length;
	uint32_t pages, ops;
	const uint8_t *ops_at;
};

/* Verifies the whole structure: bounds of every operation and field, ops and pages within limits.
   granule_bytes is the store's. Afterwards the iterators below can't fail. */
int lac__record_decode(const void *bytes, size_t length, uint32_t granule_bytes,
	struct lac__record *ret, struct lac_error *err);
void lac__record_page_at(
	const struct lac__record *record, uint32_t n, struct lac__record_page *ret);

struct lac__op_cursor {
	const uint8_t *at, *end;
	uint32_t left;
};
void lac__op_cursor_start(const struct lac__record *record, struct lac__op_cursor *ret);
/* True and *ret filled, or false at the end. */
bool lac__op_next(struct lac__op_cursor *cursor, struct lac__op *ret);

/*
 * Calls visit for each page that op touches, in ascending order within a kind, each once; stops at
 * and returns the first non-zero result. A block's map pages are those of its payload's footprint
 * and of its description granule.
 */
int lac__op_pages(const struct lac__op *op, uint32_t granule_bytes,
	int (*visit)(void *arg, const struct lac__page_ref *ref), void *arg);

/*
 * Applies op to the one page, if it touches it (else nothing happens). Does not change page->lsn:
 * the caller sets it when all operations of the record are applied. -EUCLEAN when the page
 * contradicts the operation (put of an id that is not free, delete of one that is not live or at
 * another place, a granule count out of range, ...); the page may then be partly changed.
 */
int lac__op_apply(const struct lac__op *op, uint32_t granule_bytes, uint64_t lsn,
	struct lac__page *page, struct lac_error *err);

/* Granules of a block: the payload's [ret_first, ret_first + ret_count) (for a packed one the
   description is in it), and for an aligned one the description granule, else UINT64_MAX. */
void lac__block_granules(uint64_t offset, uint64_t length, uint32_t distance,
	uint32_t granule_bytes, uint64_t *ret_first, uint64_t *ret_count,
	uint64_t *ret_description_granule);

/* Where the description of the block of a PUT stands in its container. */
uint64_t lac__op_description_offset(const struct lac__op *op, uint32_t granule_bytes);

/* How many granules op would turn (see `turned`), given the map pages before it. Called once per
   map page that op touches, summed by the caller. PUT, DELETE and RELEASE only, else 0. */
uint64_t lac__op_turns(
	const struct lac__op *op, uint32_t granule_bytes, const struct lac__page *map_page);

#endif
