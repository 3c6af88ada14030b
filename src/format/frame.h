/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/frame.h - journal segments and the frames in them.
 *
 * A segment is a header page, then frames. A frame is one group commit: a header of 64 bytes and
 * `count` records {le32 length, le32 0, bytes, zeros to a multiple of 8}; it starts on a multiple
 * of the segment's tear_bytes and is written and synced as one. Records have consecutive LSNs.
 * Everything is checksummed with the log's uuid, the segment's sequence number, its epoch and the
 * frame's own offset, so a stale frame of a recycled segment or of another log is never taken
 * for a live one (R7).
 */
#ifndef LAC_FORMAT_FRAME_H
#define LAC_FORMAT_FRAME_H

#include <stdbool.h>

#include "format/common.h"

#define LAC__FRAME_HEADER_BYTES	 64u
#define LAC__FRAME_RECORD_HEADER 8u

struct lac__segment_header {
	struct lac__uuid uuid;
	uint64_t seq;		/* from 1, consecutive */
	uint32_t epoch;		/* grows whenever a journal is opened again for appending */
	uint32_t tear_bytes;	/* frames start on multiples; power of two, 512..65536 */
	uint64_t segment_bytes; /* size of this file */
	uint64_t first_lsn;	/* of the first record that this segment may hold */
	uint64_t prev_last_lsn; /* authoritative end of segment seq - 1 (rule 4.18) */
};

void lac__segment_header_encode(const struct lac__segment_header *h, void *ret_page);
/* uuid and seq are what is expected; a recycled or foreign header gives -EUCLEAN (BAD_IDENTITY), a
   page of zeros -EBADMSG (BAD_MAGIC). */
int lac__segment_header_decode(const void *page, const struct lac__uuid *uuid, uint64_t seq,
	struct lac__segment_header *ret, struct lac_error *err);

enum lac__frame_flags {
	LAC__FRAME_MARKER = 1, /* no records: only confirms the watermark */
};

struct lac__frame_header {
	uint64_t seq, offset; /* where it stands */
	uint32_t epoch;
	uint32_t flags;
	uint64_t first_lsn;  /* of its first record (of the next one, in a marker) */
	uint32_t count;	     /* records */
	uint64_t watermark;  /* largest LSN known durable when this frame was issued (R8) */
	uint32_t body_bytes; /* records with their headers and padding */
	uint32_t body_crc;
};

/* Computes body_crc from body (h->body_crc is ignored), seals the header. */
void lac__frame_header_encode(const struct lac__frame_header *h, const struct lac__uuid *uuid,
	const void *body, void *ret_bytes);
/* Verifies the header alone: after that body_bytes may be trusted (it is also checked against
   segment_bytes). */
int lac__frame_header_decode(const void *bytes, const struct lac__uuid *uuid, uint64_t seq,
	uint32_t epoch, uint64_t offset, uint64_t segment_bytes, struct lac__frame_header *ret,
	struct lac_error *err);
/* Verifies the body's checksum and that its records fill it exactly. */
int lac__frame_body_verify(const struct lac__frame_header *h, const struct lac__uuid *uuid,
	const void *body, struct lac_error *err);

/* Bytes that a record of length bytes takes in a body. */
size_t lac__frame_record_bytes(size_t length);
/* Puts header and padding around a record at ret_bytes, payload copied; returns the bytes taken. */
size_t lac__frame_record_encode(const void *payload, size_t length, void *ret_bytes);
/* Walks a verified body: *position starts at 0; true and a record, or false at the end. */
bool lac__frame_record_next(const struct lac__frame_header *h, const void *body, size_t *position,
	const void **ret_payload, size_t *ret_length);

#endif
