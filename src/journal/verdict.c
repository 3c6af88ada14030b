/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/verdict.c - where the journal ends, and whether it may end there (R10).
 *
 * Something at X does not verify. Either a crash tore the last group, which nobody was told about,
 * or bytes that were durable are damaged. One group is in flight at a time and a segment is begun
 * only when the former is synced (rule 4.18), so each of these proves that X was durable:
 *
 *   E1  a frame behind X in the same segment and epoch: it was issued after X was synced, and its
 *       watermark says how far;
 *   E2  a header of the next segment whose prev_last_lsn lies beyond what verifies; the same number
 *       on the other hand proves that X holds nothing that ever counted;
 *   E3  a header of any later segment, when the next one has none: a gap;
 *   E4  frames in the next segment without a header, with a watermark beyond what verifies: only
 *       the first group there may be torn with its header;
 *   E5  what the caller knows from elsewhere: a checkpoint's LSN, a clean close.
 *
 * Without any, X is the torn last group, or nothing at all. The blind spot, that the last group
 * before a crash may be damaged later and pass for torn, is inherent (P3).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "journal/scan_internal.h"

/* Where the walk stopped in a segment, kept while others are looked at. */
struct stop {
	uint64_t seq, position;
	uint32_t epoch; /* 0 without a segment header */
	uint32_t tear_bytes;
	bool has_segment;
	int found;
	uint64_t unfinished_bytes;
	struct lac_error why;
};

/* The first verdict that is not CLEAN stays. */
static void judge(struct lac__jscan *scan, enum lac__journal_verdict verdict,
	enum lac_reason reason, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

static void judge(struct lac__jscan *scan, enum lac__journal_verdict verdict,
	enum lac_reason reason, uint64_t offset, const char *format, ...)
{
	char text[384];
	va_list args;

	if (scan->end.verdict == LAC__JOURNAL_CORRUPT || scan->end.verdict == verdict)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	scan->end.verdict = verdict;
	lac__error_set(&scan->end.evidence, -EUCLEAN, reason, offset, 0, "journal %s: %s",
		scan->dir, text);
}

static void see_epoch(struct lac__jscan *scan, uint32_t epoch)
{
	if (epoch > scan->end.epoch)
		scan->end.epoch = epoch;
}

/* ---- evidence ---- */

/* E1 */
static int search_behind(struct lac__jscan *scan, const struct stop *stop, struct lac_error *err)
{
	uint64_t from = stop->position + stop->tear_bytes;
	struct lac__frame_header frame;
	int rc = lac__scan_enter(scan, stop->seq, err);

	if (rc == 1) {
		rc = scan->why.code;
		if (err)
			*err = scan->why;
		lac__error_prepend(err, "segment %016" PRIx64 ".seg changed while read", stop->seq);
	}
	if (rc < 0)
		return rc;
	/* A frame with an intact header is known to its end; what its records hold is not looked
	 * at. */
	if (stop->found == LAC__FOUND_UNFINISHED && stop->unfinished_bytes > stop->tear_bytes)
		from = stop->position + stop->unfinished_bytes;
	rc = lac__scan_hunt(scan, from, stop->tear_bytes, stop->epoch, &frame, err);
	if (rc == 1)
		judge(scan, LAC__JOURNAL_CORRUPT, LAC_REASON_JOURNAL_CORRUPT, stop->position,
			"segment %016" PRIx64 ".seg: LSN %" PRIu64 " at %" PRIu64
			" does not verify (%s), but a frame at %" PRIu64
			" is intact, watermark %" PRIu64,
			stop->seq, scan->expected, stop->position, stop->why.message, frame.offset,
			frame.watermark);
	return rc < 0 ? rc : 0;
}

/* E3 */
static int search_later(struct lac__jscan *scan, const struct stop *stop, struct lac_error *err)
{
	int rc;

	for (size_t i = 0; i < scan->list.count; i++) {
		uint64_t seq = scan->list.seqs[i];

		if (seq <= stop->seq + 1)
			continue;
		rc = lac__scan_enter(scan, seq, err);
		if (rc < 0)
			return rc;
		if (rc == 1)
			continue;
		see_epoch(scan, scan->header.epoch);
		scan->end.next_seq = seq + 1;
		judge(scan, LAC__JOURNAL_CORRUPT, LAC_REASON_JOURNAL_GAP, 0,
			"segment %016" PRIx64 ".seg is missing or has no header, but %016" PRIx64
			".seg is in use from LSN %" PRIu64,
			stop->seq + 1, seq, scan->header.first_lsn);
	}
	return 0;
}

/* E4. Also learns the epoch of a first group that was torn together with its header: the next
   attempt to write there must have another one, or what is left of this one could pass for it. */
static int search_headless(struct lac__jscan *scan, const struct stop *stop, struct lac_error *err)
{
	uint64_t seq = stop->seq + 1, from = LAC__PAGE_BYTES;
	struct lac__frame_header frame;
	struct lac_error header_why;
	int rc = lac__scan_enter(scan, seq, err);

	if (rc < 0 || !scan->file)
		return rc < 0 ? rc : 0;
	if (rc == 0)
		return lac__error_set(err, -EUCLEAN, LAC_REASON_JOURNAL_CORRUPT, 0, 0,
			"segment %016" PRIx64 ".seg changed while read", seq);
	header_why = scan->why;
	if (header_why.reason == LAC_REASON_BAD_FIELD)
		judge(scan, LAC__JOURNAL_CORRUPT, LAC_REASON_JOURNAL_CORRUPT, 0,
			"segment %016" PRIx64 ".seg: %s", seq, header_why.message);
	while ((rc = lac__scan_hunt(
			scan, from, LAC__TEAR_MIN_BYTES, LAC__SCAN_ANY_EPOCH, &frame, err)) == 1) {
		see_epoch(scan, frame.epoch);
		if (frame.watermark >= scan->expected) {
			judge(scan, LAC__JOURNAL_CORRUPT, LAC_REASON_JOURNAL_CORRUPT, 0,
				"segment %016" PRIx64
				".seg: no header (%s), but a frame at %" PRIu64
				" with watermark %" PRIu64 ", want at most %" PRIu64,
				seq, header_why.message, frame.offset, frame.watermark,
				scan->expected - 1);
			return 0;
		}
		judge(scan, LAC__JOURNAL_TORN, LAC_REASON_BAD_CHECKSUM, 0,
			"segment %016" PRIx64 ".seg: a first group at %" PRIu64
			" without the segment's header (%s)",
			seq, frame.offset, header_why.message);
		from = frame.offset + LAC__FRAME_HEADER_BYTES + frame.body_bytes;
	}
	if (rc == 0 && header_why.reason == LAC_REASON_BAD_CHECKSUM)
		judge(scan, LAC__JOURNAL_TORN, LAC_REASON_BAD_CHECKSUM, 0,
			"segment %016" PRIx64 ".seg: an unfinished header (%s)", seq,
			header_why.message);
	return rc;
}

/* ---- the walk ---- */

static int walk_segment(
	struct lac__jscan *scan, struct stop *ret, uint32_t *clean_epoch, struct lac_error *err)
{
	uint64_t clean_lsn = scan->options.clean_lsn;
	int rc;

	see_epoch(scan, scan->header.epoch);
	while ((rc = lac__scan_frame(scan, err)) == LAC__FOUND_FRAME)
		/* Only a segment that the clean close was in has the epoch of that run; when the
		   scan begins behind it, what it finds was written by a later one. */
		if (clean_lsn && *clean_epoch == 0 && scan->expected > clean_lsn &&
			scan->header.first_lsn <= clean_lsn)
			*clean_epoch = scan->header.epoch;
	if (rc < 0)
		return rc;
	*ret = (struct stop){.seq = scan->seq,
		.position = scan->position,
		.epoch = scan->header.epoch,
		.tear_bytes = scan->header.tear_bytes,
		.has_segment = true,
		.found = rc,
		.unfinished_bytes = scan->unfinished_bytes,
		.why = scan->why};
	scan->end.seq = scan->seq;
	scan->end.offset = scan->position;
	return 0;
}

/* E2. The next segment has a header: 1 to go on there, 0 when the journal can't. */
static int follow(struct lac__jscan *scan, const struct stop *stop)
{
	const struct lac__segment_header *h = &scan->header;

	if (h->epoch < stop->epoch) {
		judge(scan, LAC__JOURNAL_CORRUPT, LAC_REASON_JOURNAL_CORRUPT, 0,
			"segment %016" PRIx64 ".seg: epoch %u, want at least %u", h->seq, h->epoch,
			stop->epoch);
		return 0;
	}
	if (h->prev_last_lsn == scan->expected - 1)
		return 1;
	judge(scan, LAC__JOURNAL_CORRUPT, LAC_REASON_JOURNAL_CORRUPT, stop->position,
		"segment %016" PRIx64 ".seg: ends at %" PRIu64 " with LSN %" PRIu64
		", want %" PRIu64 " as the next segment says (%s)",
		stop->seq, stop->position, scan->expected - 1, h->prev_last_lsn,
		stop->why.message[0] ? stop->why.message : "nothing follows");
	return 0;
}

/* No next segment in use: is this the end, a torn group, or damage? */
static int judge_end(struct lac__jscan *scan, const struct stop *stop, struct lac_error *err)
{
	int rc = 0;

	if (stop->found == LAC__FOUND_CONTRADICTION)
		judge(scan, LAC__JOURNAL_CORRUPT, LAC_REASON_JOURNAL_CORRUPT, stop->position,
			"segment %016" PRIx64 ".seg: %s", stop->seq, stop->why.message);
	if (stop->has_segment)
		rc = search_behind(scan, stop, err);
	if (rc == 0)
		rc = search_later(scan, stop, err);
	if (rc == 0)
		rc = search_headless(scan, stop, err);
	if (rc == 0 && stop->found == LAC__FOUND_UNFINISHED &&
		scan->end.verdict != LAC__JOURNAL_CORRUPT) {
		judge(scan, LAC__JOURNAL_TORN, LAC_REASON_BAD_CHECKSUM, stop->position,
			"segment %016" PRIx64 ".seg: an unfinished group at %" PRIu64
			", which nothing says was durable (%s)",
			stop->seq, stop->position, stop->why.message);
		scan->end.torn_bytes = stop->unfinished_bytes;
	}
	return rc;
}

/* E5 */
static void judge_length(struct lac__jscan *scan, uint32_t clean_epoch)
{
	const struct lac__jscan_options *o = &scan->options;
	uint64_t last = scan->end.last_lsn;

	if (last < o->from_lsn - 1 || last < o->least_lsn || last < o->clean_lsn)
		judge(scan, LAC__JOURNAL_CORRUPT, LAC_REASON_JOURNAL_SHORT, scan->end.offset,
			"ends with LSN %" PRIu64 ", want at least %" PRIu64
			" (checkpoint), %" PRIu64 " (start of redo), %" PRIu64 " (clean close)",
			last, o->least_lsn, o->from_lsn - 1, o->clean_lsn);
	if (clean_epoch && last > o->clean_lsn && scan->end.epoch == clean_epoch)
		judge(scan, LAC__JOURNAL_CORRUPT, LAC_REASON_JOURNAL_CORRUPT, scan->end.offset,
			"ends with LSN %" PRIu64 ", was cleanly closed at %" PRIu64
			" and not opened since",
			last, o->clean_lsn);
}

/* Segment from_seq is not there or has no header: an empty journal, unless something says
 * otherwise. */
static int judge_empty(struct lac__jscan *scan, struct lac_error *err)
{
	struct stop stop = {.seq = scan->options.from_seq - 1, .found = LAC__FOUND_NOTHING};
	int rc;

	scan->expected = scan->options.from_lsn;
	scan->end.seq = scan->options.from_seq;
	scan->end.next_seq = scan->options.from_seq;
	rc = judge_end(scan, &stop, err);
	scan->end.last_lsn = scan->options.from_lsn - 1;
	if (rc == 0)
		judge_length(scan, 0);
	return rc;
}

int lac__scan_judge(struct lac__jscan *scan, struct lac_error *err)
{
	uint32_t clean_epoch = 0;
	struct stop stop;
	int rc = lac__scan_enter(scan, scan->options.from_seq, err);

	if (rc == 1)
		return judge_empty(scan, err);
	if (rc < 0)
		return rc;
	scan->expected = scan->header.first_lsn;
	if (scan->header.first_lsn > scan->options.from_lsn)
		judge(scan, LAC__JOURNAL_CORRUPT, LAC_REASON_JOURNAL_GAP, 0,
			"segment %016" PRIx64 ".seg begins with LSN %" PRIu64 ", want %" PRIu64,
			scan->seq, scan->header.first_lsn, scan->options.from_lsn);
	do {
		rc = walk_segment(scan, &stop, &clean_epoch, err);
		if (rc < 0)
			return rc;
		rc = lac__scan_enter(scan, stop.seq + 1, err);
		if (rc < 0)
			return rc;
		if (rc == 0) {
			see_epoch(scan, scan->header.epoch);
			rc = follow(scan, &stop) ? 2 : 0;
		}
	} while (rc == 2);
	/* Where the journal can't go on, later segments only tell the highest number and epoch. */
	scan->end.next_seq = rc == 0 ? stop.seq + 2 : stop.seq + 1;
	rc = rc == 0 ? search_later(scan, &stop, err) : judge_end(scan, &stop, err);
	scan->end.last_lsn = scan->expected - 1;
	if (rc == 0)
		judge_length(scan, clean_epoch);
	return rc;
}
