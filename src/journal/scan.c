/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/scan.c - reading segments: a window over one file, the frame at a position, the search
 * for frames beyond it, and the iterator over records.
 *
 * All lengths from disk are believed only after the checksum that covers them, and even then only
 * inside the file: memory is one frame of what the file really holds (P12).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "journal/scan_internal.h"

#define WINDOW_BYTES   (1u << 20)
#define FRAME_EPOCH_AT 52 /* of the epoch in a frame header; a test compares it with format */

/* ---- the window ---- */

static int window_grow(struct lac__jscan *scan, size_t capacity)
{
	uint8_t *window;

	if (capacity <= scan->window_capacity)
		return 0;
	window = lac__aligned_alloc(capacity);
	if (!window)
		return -ENOMEM;
	free(scan->window);
	scan->window = window;
	scan->window_capacity = capacity;
	scan->window_bytes = 0;
	return 0;
}

/* Makes [offset, offset + length) of the open segment readable at *ret_bytes; returns how much of
   it the file has. Reads whole pages, for DIRECT files. */
static ssize_t fetch(struct lac__jscan *scan, uint64_t offset, size_t length,
	const uint8_t **ret_bytes, struct lac_error *err)
{
	uint64_t from = lac__round_down(offset, LAC__PAGE_BYTES);
	uint64_t have;
	size_t need = (size_t)(offset - from) + length;
	ssize_t got;

	if (offset >= scan->window_at &&
		lac__range_ok(offset - scan->window_at, length, scan->window_bytes))
		goto found;
	if (window_grow(scan, lac__round_up(need, LAC__PAGE_BYTES)) < 0)
		return lac__error_nomem(err);
	scan->window_at = from;
	scan->window_bytes = 0;
	got = lac__read_up_to(scan->file, scan->window, scan->window_capacity, from);
	if (got < 0)
		return lac__error_sys(err, (int)got,
			"read segment %016" PRIx64 ".seg of %s at %" PRIu64, scan->seq, scan->dir,
			from);
	scan->window_bytes = (size_t)got;
found:
	have = scan->window_at + scan->window_bytes;
	*ret_bytes = scan->window + (offset - scan->window_at);
	if (have <= offset)
		return 0;
	return have - offset < length ? (ssize_t)(have - offset) : (ssize_t)length;
}

/* ---- segments ---- */

void lac__scan_leave(struct lac__jscan *scan)
{
	(void)lac__close(scan->file); /* only read; a sync has its own result */
	scan->file = NULL;
	scan->window_bytes = 0;
	scan->has_header = false;
}

static int open_plain(struct lac__jscan *scan, const char *path, unsigned flags,
	struct lac_file_info *ret_info, struct lac_error *err)
{
	int rc = lac__open(scan->be, path, flags, &scan->file);

	if (rc < 0) {
		scan->file = NULL;
		return lac__error_sys(err, rc, "open %s", path);
	}
	rc = scan->be->ops->file_info(scan->file, ret_info);
	return rc < 0 ? lac__error_sys(err, rc, "look at %s", path) : 0;
}

/* What is only in the cache may vanish later, when redo has already relied on it: first it becomes
   durable, then it is read from where it is durable (rule 4.6). */
static int pass_cache(struct lac__jscan *scan, const char *path, struct lac_error *err)
{
	int rc = lac__sync(scan->file);

	if (rc < 0)
		return lac__error_sys(err, rc, "sync %s", path);
	rc = scan->be->ops->drop_cache(scan->file);
	return rc < 0 ? lac__error_sys(err, rc, "drop the cache of %s", path) : 0;
}

static int open_file(struct lac__jscan *scan, uint64_t seq, struct lac_error *err)
{
	bool past_cache = scan->options.past_cache;
	struct lac__segment_path path;
	struct lac_file_info info;
	int rc = lac__segment_path(scan->dir, seq, &path);

	if (rc < 0)
		return lac__error_sys(err, rc, "open a segment of %s", scan->dir);
	rc = open_plain(scan, path.text, past_cache ? LAC_OPEN_DIRECT : 0, &info, err);
	/* A file that somebody cut inside a page can't be read to its end past the cache. */
	if (rc == 0 && past_cache && info.size_bytes % LAC__PAGE_BYTES) {
		lac__scan_leave(scan);
		rc = open_plain(scan, path.text, 0, &info, err);
	}
	if (rc == 0 && past_cache)
		rc = pass_cache(scan, path.text, err);
	if (rc < 0)
		return rc;
	scan->file_bytes = info.size_bytes;
	rc = window_grow(scan, info.size_bytes < WINDOW_BYTES
				       ? (size_t)lac__round_up(info.size_bytes + 1, LAC__PAGE_BYTES)
				       : WINDOW_BYTES);
	return rc < 0 ? lac__error_nomem(err) : 0;
}

/* What a header must satisfy beyond its own checksum and bounds. */
static int check_header(const struct lac__segment_header *h, struct lac_error *err)
{
	if (!lac__is_power_of_two(h->tear_bytes) || h->tear_bytes < LAC__TEAR_MIN_BYTES ||
		h->tear_bytes > LAC__TEAR_MAX_BYTES || h->first_lsn == 0 ||
		h->prev_last_lsn != h->first_lsn - 1 || h->epoch == 0)
		return lac__error_set(err, -EUCLEAN, LAC_REASON_BAD_FIELD, 0, LAC__PAGE_BYTES,
			"header: epoch %u, tear_bytes %u, first_lsn %" PRIu64
			", prev_last_lsn %" PRIu64,
			h->epoch, h->tear_bytes, h->first_lsn, h->prev_last_lsn);
	return 0;
}

int lac__scan_enter(struct lac__jscan *scan, uint64_t seq, struct lac_error *err)
{
	const uint8_t *page;
	ssize_t got;
	int rc;

	lac__scan_leave(scan);
	scan->seq = seq;
	scan->why = (struct lac_error){0};
	if (!lac__segment_list_has(&scan->list, seq)) {
		lac__error_set(&scan->why, -ENOENT, LAC_REASON_MISSING_FILE, 0, 0, "no such file");
		return 1;
	}
	rc = open_file(scan, seq, err);
	if (rc < 0)
		return rc;
	got = fetch(scan, 0, LAC__PAGE_BYTES, &page, err);
	if (got < 0)
		return (int)got;
	if (got < (ssize_t)LAC__PAGE_BYTES) {
		lac__error_set(&scan->why, -EBADMSG, LAC_REASON_TRUNCATED, 0, scan->file_bytes,
			"header: the file has %" PRIu64 " bytes", scan->file_bytes);
		return 1;
	}
	rc = lac__segment_header_decode(page, &scan->options.uuid, seq, &scan->header, &scan->why);
	if (rc == 0)
		rc = check_header(&scan->header, &scan->why);
	if (rc == -EOPNOTSUPP) { /* a later release wrote it: no verdict is ours to give */
		if (err)
			*err = scan->why;
		return rc;
	}
	if (rc < 0)
		return 1;
	scan->has_header = true;
	scan->limit_bytes = scan->file_bytes < scan->header.segment_bytes
				    ? scan->file_bytes
				    : scan->header.segment_bytes;
	scan->position = lac__segment_first_offset(scan->header.tear_bytes);
	return 0;
}

/* ---- frames ---- */

static bool contradicts(const struct lac__jscan *scan, const struct lac__frame_header *f)
{
	bool marker = f->flags & LAC__FRAME_MARKER;
	uint64_t limit = lac__frame_record_bytes(scan->options.record_bytes_max);

	if (limit < LAC__GROUP_LIMIT_BYTES)
		limit = LAC__GROUP_LIMIT_BYTES;
	return f->first_lsn != scan->expected || f->watermark >= f->first_lsn ||
	       f->body_bytes > limit || f->first_lsn + f->count < f->first_lsn ||
	       marker != (f->count == 0) || marker != (f->body_bytes == 0);
}

static int not_found(struct lac__jscan *scan, uint64_t offset, uint64_t length)
{
	scan->unfinished_bytes = length;
	scan->why.offset = offset;
	scan->why.length = length;
	return LAC__FOUND_UNFINISHED;
}

static int read_body(
	struct lac__jscan *scan, const struct lac__frame_header *f, struct lac_error *err)
{
	uint64_t at = scan->position;
	size_t total = LAC__FRAME_HEADER_BYTES + (size_t)f->body_bytes;
	const uint8_t *bytes;
	ssize_t got;

	if (!lac__range_ok(at, total, scan->limit_bytes)) {
		lac__error_set(&scan->why, -EBADMSG, LAC_REASON_TRUNCATED, at, total,
			"frame at %" PRIu64 ": %zu bytes, the file has %" PRIu64, at, total,
			scan->file_bytes);
		return not_found(scan, at, scan->limit_bytes - at);
	}
	got = fetch(scan, at, total, &bytes, err);
	if (got < 0)
		return (int)got;
	if ((size_t)got < total) {
		lac__error_set(&scan->why, -EBADMSG, LAC_REASON_TRUNCATED, at, total,
			"frame at %" PRIu64 ": the file ended early", at);
		return not_found(scan, at, (uint64_t)got);
	}
	scan->body = bytes + LAC__FRAME_HEADER_BYTES;
	if (lac__frame_body_verify(f, &scan->options.uuid, scan->body, &scan->why) < 0)
		return not_found(scan, at, total);
	return LAC__FOUND_FRAME;
}

int lac__scan_frame(struct lac__jscan *scan, struct lac_error *err)
{
	struct lac__frame_header f;
	uint64_t at = scan->position;
	const uint8_t *bytes;
	ssize_t got;
	int rc;

	scan->why = (struct lac_error){0};
	scan->unfinished_bytes = 0;
	if (!lac__range_ok(at, LAC__FRAME_HEADER_BYTES, scan->limit_bytes))
		return LAC__FOUND_NOTHING;
	got = fetch(scan, at, LAC__FRAME_HEADER_BYTES, &bytes, err);
	if (got < 0)
		return (int)got;
	if (got < (ssize_t)LAC__FRAME_HEADER_BYTES)
		return LAC__FOUND_NOTHING;
	rc = lac__frame_header_decode(bytes, &scan->options.uuid, scan->seq, scan->header.epoch, at,
		scan->header.segment_bytes, &f, &scan->why);
	if (rc < 0) {
		/* Another magic is no trace, another identity is an old frame: of the frame that
		   might have been here nothing is left. */
		if (scan->why.reason == LAC_REASON_BAD_MAGIC ||
			scan->why.reason == LAC_REASON_BAD_IDENTITY)
			return LAC__FOUND_NOTHING;
		if (scan->why.reason == LAC_REASON_BAD_FIELD)
			return LAC__FOUND_CONTRADICTION;
		return not_found(scan, at, scan->header.tear_bytes);
	}
	if (contradicts(scan, &f)) {
		lac__error_set(&scan->why, -EUCLEAN, LAC_REASON_BAD_FIELD, at,
			LAC__FRAME_HEADER_BYTES,
			"frame at %" PRIu64 ": first LSN %" PRIu64
			", %u records, watermark %" PRIu64 ", want first LSN %" PRIu64,
			at, f.first_lsn, f.count, f.watermark, scan->expected);
		return LAC__FOUND_CONTRADICTION;
	}
	rc = read_body(scan, &f, err);
	if (rc != LAC__FOUND_FRAME)
		return rc;
	scan->frame = f;
	scan->expected += f.count;
	scan->position =
		lac__round_up(at + LAC__FRAME_HEADER_BYTES + f.body_bytes, scan->header.tear_bytes);
	return LAC__FOUND_FRAME;
}

/* ---- the search ---- */

/* The epoch that a frame header claims, not yet verified; see doc/format.md. */
static uint32_t claimed_epoch(const uint8_t *bytes)
{
	lac_le32 epoch;

	memcpy(&epoch, bytes + FRAME_EPOCH_AT, sizeof epoch);
	return lac__get32(epoch);
}

int lac__scan_hunt(struct lac__jscan *scan, uint64_t from, uint32_t unit, uint32_t epoch,
	struct lac__frame_header *ret, struct lac_error *err)
{
	uint64_t limit = scan->has_header ? scan->limit_bytes : scan->file_bytes;
	uint64_t segment_bytes = scan->has_header ? scan->header.segment_bytes : scan->file_bytes;
	const uint8_t *bytes;
	uint32_t wanted;
	ssize_t got;

	if (from >= limit) /* also keeps the rounding below from overflowing */
		return 0;
	for (uint64_t at = lac__round_up(from, unit);
		lac__range_ok(at, LAC__FRAME_HEADER_BYTES, limit); at += unit) {
		got = fetch(scan, at, LAC__FRAME_HEADER_BYTES, &bytes, err);
		if (got < 0)
			return (int)got;
		if (got < (ssize_t)LAC__FRAME_HEADER_BYTES)
			return 0;
		wanted = epoch == LAC__SCAN_ANY_EPOCH ? claimed_epoch(bytes) : epoch;
		if (lac__frame_header_decode(bytes, &scan->options.uuid, scan->seq, wanted, at,
			    segment_bytes, ret, NULL) == 0)
			return 1;
	}
	return 0;
}

/* ---- the public side ---- */

int lac__jscan_open(struct lac_backend *be, const char *dir,
	const struct lac__jscan_options *options, struct lac__jscan **ret, struct lac_error *err)
{
	struct lac__jscan *scan;
	int rc;

	if (options->from_lsn == 0 || options->from_seq == 0)
		return lac__error_set(err, -EINVAL, LAC_REASON_ARGUMENT, 0, 0,
			"read journal %s: from LSN %" PRIu64 ", segment %" PRIu64, dir,
			options->from_lsn, options->from_seq);
	scan = calloc(1, sizeof *scan);
	if (!scan)
		return lac__error_nomem(err);
	scan->be = be;
	scan->options = *options;
	scan->dir = strdup(dir);
	if (!scan->dir)
		rc = lac__error_nomem(err);
	else
		rc = lac__segment_list_read(be, dir, &scan->list, err);
	if (rc == 0)
		rc = lac__scan_judge(scan, err);
	if (rc == 0)
		rc = lac__jscan_rewind(scan, err);
	if (rc < 0) {
		lac__error_prepend(err, "read journal");
		lac__jscan_close(scan);
		return rc;
	}
	*ret = scan;
	return 0;
}

void lac__jscan_close(struct lac__jscan *scan)
{
	if (!scan)
		return;
	lac__scan_leave(scan);
	lac__segment_list_free(&scan->list);
	free(scan->window);
	free(scan->dir);
	free(scan);
}

void lac__jscan_end(const struct lac__jscan *scan, struct lac__jscan_end *ret)
{
	*ret = scan->end;
}

/* A segment that verified when the scan was opened; if it no longer does, somebody changed it. */
static int enter_again(struct lac__jscan *scan, uint64_t seq, struct lac_error *err)
{
	int rc = lac__scan_enter(scan, seq, err);

	if (rc == 1) {
		rc = scan->why.code;
		if (err)
			*err = scan->why;
		lac__error_prepend(
			err, "read segment %016" PRIx64 ".seg of %s again", seq, scan->dir);
	}
	scan->expected = rc == 0 ? scan->header.first_lsn : 0;
	return rc;
}

int lac__jscan_rewind(struct lac__jscan *scan, struct lac_error *err)
{
	scan->in_frame = false;
	/* Without a record there is nothing to enter. */
	scan->ended = scan->end.last_lsn < scan->options.from_lsn;
	return scan->ended ? 0 : enter_again(scan, scan->options.from_seq, err);
}

/* Moves to the next frame; 1 at the end. A segment's part of the journal ends where the next one's
   header says, so what does not verify there was judged already. */
static int next_frame(struct lac__jscan *scan, struct lac_error *err)
{
	int rc;

	for (;;) {
		if (scan->expected > scan->end.last_lsn)
			return 1;
		rc = lac__scan_frame(scan, err);
		if (rc < 0)
			return rc;
		if (rc == LAC__FOUND_FRAME)
			break;
		if (scan->seq < scan->end.seq) {
			uint64_t expected = scan->expected;

			rc = enter_again(scan, scan->seq + 1, err);
			if (rc < 0)
				return rc;
			if (scan->expected == expected)
				continue;
		}
		return lac__error_set(err, -EBADMSG, LAC_REASON_BAD_CHECKSUM, scan->position, 0,
			"read segment %016" PRIx64 ".seg of %s again: frame at %" PRIu64
			" no longer verifies",
			scan->seq, scan->dir, scan->position);
	}
	scan->in_frame = true;
	scan->record_at = 0;
	scan->record_lsn = scan->frame.first_lsn;
	return 0;
}

int lac__jscan_next(struct lac__jscan *scan, struct lac__jrecord *ret, struct lac_error *err)
{
	const void *bytes;
	size_t length;
	int rc;

	for (;;) {
		if (scan->ended)
			return 1;
		if (!scan->in_frame) {
			rc = next_frame(scan, err);
			scan->ended = rc == 1;
			if (rc != 0)
				return rc;
		}
		scan->in_frame = lac__frame_record_next(
			&scan->frame, scan->body, &scan->record_at, &bytes, &length);
		if (!scan->in_frame)
			continue;
		if (scan->record_lsn++ < scan->options.from_lsn)
			continue;
		*ret = (struct lac__jrecord){.lsn = scan->record_lsn - 1,
			.bytes = bytes,
			.length = length,
			.seq = scan->seq,
			.offset = scan->frame.offset,
			.watermark = scan->frame.watermark};
		return 0;
	}
}
