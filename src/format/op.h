/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/op.h - for this layer only: the layout of operations in a record, shared by the encoder
 * and the decoder so that they can't disagree.
 */
#ifndef LAC_FORMAT_OP_H
#define LAC_FORMAT_OP_H

#include "format/record.h"

#define LAC__OP_HAS_PAYLOAD 1u /* flag of PUT */
#define LAC__OP_ALIGN	    8u

struct lac__disk_record_header {
	lac_le16 version;  /* 0..2 */
	lac_le16 flags;	   /* 2..4, zero */
	lac_le32 pages;	   /* 4..8 */
	lac_le32 ops;	   /* 8..12 */
	lac_le32 reserved; /* 12..16 */
};
_Static_assert(sizeof(struct lac__disk_record_header) == LAC__RECORD_HEADER_BYTES, "record header");

struct lac__disk_record_page {
	lac_le32 kind;	    /* 0..4 */
	lac_le32 container; /* 4..8 */
	lac_le64 no;	    /* 8..16 */
	lac_le64 prev_lsn;  /* 16..24 */
};
_Static_assert(sizeof(struct lac__disk_record_page) == LAC__RECORD_PAGE_BYTES, "page of a record");

struct lac__disk_op {
	lac_le16 type;	/* 0..2 */
	lac_le16 flags; /* 2..4 */
	lac_le32 bytes; /* 4..8, of the whole operation */
};
_Static_assert(sizeof(struct lac__disk_op) == 8, "head of an operation");

struct lac__disk_put {
	struct lac__disk_op head; /* 0..8 */
	lac_le64 id;		  /* 8..16 */
	lac_le64 owner;		  /* 16..24 */
	lac_le64 length;	  /* 24..32 */
	lac_le64 offset;	  /* 32..40 */
	lac_le32 container;	  /* 40..44 */
	lac_le32 checksum;	  /* 44..48 */
	lac_le16 distance;	  /* 48..50 */
	lac_le16 slot;		  /* 50..52, of the description in its granule */
	lac_le32 generation;	  /* 52..56 */
	lac_le64 turned;	  /* 56..64 */
};
_Static_assert(sizeof(struct lac__disk_put) == 64, "PUT without payload");

struct lac__disk_delete {
	struct lac__disk_op head; /* 0..8 */
	lac_le64 id;		  /* 8..16 */
	lac_le64 owner;		  /* 16..24 */
	lac_le64 length;	  /* 24..32 */
	lac_le64 offset;	  /* 32..40 */
	lac_le32 container;	  /* 40..44 */
	lac_le32 distance;	  /* 44..48 */
	lac_le64 turned;	  /* 48..56 */
};
_Static_assert(sizeof(struct lac__disk_delete) == 56, "DELETE");

/* RESERVE, RELEASE, HOLE */
struct lac__disk_range {
	struct lac__disk_op head; /* 0..8 */
	lac_le32 container;	  /* 8..12 */
	lac_le32 reserved;	  /* 12..16 */
	lac_le64 first;		  /* 16..24 */
	lac_le64 count;		  /* 24..32 */
	lac_le64 turned;	  /* 32..40, zero but in RELEASE */
};
_Static_assert(sizeof(struct lac__disk_range) == 40, "RESERVE, RELEASE, HOLE");

struct lac__disk_container_op {
	struct lac__disk_op head; /* 0..8 */
	lac_le32 container;	  /* 8..12 */
	lac_le32 state;		  /* 12..16 */
	lac_le32 kind;		  /* 16..20 */
	lac_le32 reserved;	  /* 20..24 */
};
_Static_assert(sizeof(struct lac__disk_container_op) == 24, "CONTAINER");

struct lac__disk_high_water {
	struct lac__disk_op head; /* 0..8 */
	lac_le64 first;		  /* 8..16 */
	lac_le64 count;		  /* 16..24 */
};
_Static_assert(sizeof(struct lac__disk_high_water) == 24, "HIGH_WATER");

struct lac__disk_retire {
	struct lac__disk_op head; /* 0..8 */
	lac_le64 first;		  /* 8..16 */
};
_Static_assert(sizeof(struct lac__disk_retire) == 16, "RETIRE");

/* Bytes of an operation of this type without payload; 0 for a type that is none. */
size_t lac__op_fixed_bytes(uint32_t type);
/* Fills *ret from an operation whose type and size are known to be right. */
void lac__op_load(const void *bytes, struct lac__op *ret);

/* Number of pages that lac__op_pages would visit, at most; for an operation within its bounds. */
uint64_t lac__op_page_count(const struct lac__op *op, uint32_t granule_bytes);

#endif
