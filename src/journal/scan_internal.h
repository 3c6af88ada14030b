/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/scan_internal.h - the walker that scan.c provides and verdict.c drives.
 *
 * A scan has at most one segment open, reads it through one window of memory, and knows the frame
 * it stands on. Nothing here concludes anything from what it finds; I/O errors always go up.
 */
#ifndef LAC_JOURNAL_SCAN_INTERNAL_H
#define LAC_JOURNAL_SCAN_INTERNAL_H

#include "journal/journal_internal.h"

/* What stands where a frame should begin. */
enum lac__scan_found {
	LAC__FOUND_FRAME,      /* one that verifies */
	LAC__FOUND_NOTHING,    /* the end of the space, zeros, an old frame: no trace of a frame */
	LAC__FOUND_UNFINISHED, /* part of a frame */
	LAC__FOUND_CONTRADICTION, /* a header that verifies and can't be true */
};

struct lac__jscan {
	struct lac_backend *be;
	char *dir;
	struct lac__jscan_options options;
	struct lac__segment_list list;

	/* the open segment */
	struct lac_file *file;
	uint64_t seq;
	uint64_t file_bytes;
	struct lac__segment_header header;
	bool has_header;
	uint64_t limit_bytes; /* the smaller of file_bytes and header.segment_bytes */

	/* bytes [window_at, window_at + window_bytes) of it */
	uint8_t *window;
	size_t window_capacity;
	uint64_t window_at;
	size_t window_bytes;

	/* where it stands */
	uint64_t position; /* of the next frame */
	uint64_t expected; /* its first LSN */

	/* the frame read last, in the window */
	struct lac__frame_header frame;
	const uint8_t *body;
	struct lac_error why; /* why there is none */
	uint64_t unfinished_bytes;

	/* lac__jscan_next */
	bool in_frame, ended;
	size_t record_at;
	uint64_t record_lsn;

	struct lac__jscan_end end;
};

/* Opens segment seq and reads its header. 0: it has one that verifies; 1: it has none or there is
   no such file (scan->why says which), the file stays open if there is one. */
int lac__scan_enter(struct lac__jscan *scan, uint64_t seq, struct lac_error *err);
void lac__scan_leave(struct lac__jscan *scan);

/* Looks at scan->position. Negative, or enum lac__scan_found. With FRAME position and expected move
   behind it. */
int lac__scan_frame(struct lac__jscan *scan, struct lac_error *err);

/* Searches the open segment from `from` on for a frame header of that epoch. 1 and *ret, or 0. */
#define LAC__SCAN_ANY_EPOCH 0u
int lac__scan_hunt(struct lac__jscan *scan, uint64_t from, uint32_t unit, uint32_t epoch,
	struct lac__frame_header *ret, struct lac_error *err);

/* verdict.c: walks everything and fills scan->end. */
int lac__scan_judge(struct lac__jscan *scan, struct lac_error *err);

#endif
