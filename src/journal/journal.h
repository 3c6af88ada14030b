/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/journal.h - the write-ahead log: segments in one directory, group commit, recovery.
 *
 * Knows nothing of stores: records are bytes with a log sequence number (LSN), dense from 1.
 *
 * Files in `dir`: SEQ.seg with SEQ = 16 hex digits. Segments 1..a-1 are full or ended, a is the
 * active one, a+1.. are ready: allocated and fully written (by zeros, or by old frames when
 * recycled), under their final name, their directory synced, but without a valid header for that
 * number. The first group that goes to a+1 writes header and frame with one sync (rule 4.18: by
 * then every sync of a has returned, and the header names a's last LSN).
 *
 * Life: lac__journal_create once; then lac__jscan_open to read what is there; then
 * lac__journal_start to append. Starting writes nothing: the first append after it goes to a new
 * segment with the next epoch, so a torn tail of the former one is never looked at again (R12).
 */
#ifndef LAC_JOURNAL_JOURNAL_H
#define LAC_JOURNAL_JOURNAL_H

#include "format/frame.h"
#include "io/io.h"

struct lac__journal_options {
	struct lac__uuid uuid;
	uint64_t segment_bytes; /* nominal, multiple of 4096, at least 16 KiB */
	uint32_t segments_min;	/* files kept allocated at all times, at least 3 */
	uint32_t ready_target;	/* ready segments that background work keeps, at least 1; better 3,
				   since the journal is pressed with one left */
	uint32_t tear_bytes;	/* frames start on multiples: physical sector, or page to be safe */
	uint64_t record_bytes_max; /* longest record; longer is -E2BIG */
	uint64_t group_bytes_max;  /* a group takes no further record beyond this; 0 = 1 MiB */
	bool direct;		   /* write past the page cache where possible */
	bool background;	   /* prepare segments in a thread of its own; else within calls */
};

/* Makes segments_min ready segments in dir, which exists. Durable on return. */
int lac__journal_create(struct lac_backend *be, const char *dir,
	const struct lac__journal_options *options, struct lac_error *err);

/* ---- reading ---- */

enum lac__journal_verdict {
	LAC__JOURNAL_CLEAN,   /* ends exactly where it should, nothing follows */
	LAC__JOURNAL_TORN,    /* an unfinished group at the end, that nothing says was durable */
	LAC__JOURNAL_CORRUPT, /* damage below what was durable, or a gap, or too short */
};

struct lac__jscan; /* not thread-safe */

struct lac__jscan_options {
	struct lac__uuid uuid;
	uint64_t from_lsn; /* first LSN wanted */
	uint64_t from_seq; /* segment that holds it, or would */
	uint64_t
		least_lsn; /* the journal reaches at least this far, else CORRUPT (JOURNAL_SHORT) */
	uint64_t clean_lsn; /* non-zero: cleanly closed at this LSN; ending elsewhere without a
			       later epoch is CORRUPT */
	uint64_t record_bytes_max;
	bool past_cache; /* sync each segment, then drop its cache or read DIRECT (rule 4.6). Never
			    set by a reader that must not write (check): sync is a write. */
};

struct lac__jscan_end {
	enum lac__journal_verdict verdict;
	uint64_t last_lsn;    /* of the last record that verifies; from_lsn - 1 without one */
	uint64_t seq, offset; /* where the valid part ends: segment, byte */
	uint32_t epoch;	      /* highest epoch seen, also of a torn first group without a header */
	uint64_t next_seq; /* first segment number without a valid header: where appending goes on;
			      with CORRUPT, one above the last valid header */
	uint64_t torn_bytes; /* with TORN: bytes of the unfinished group, as far as they can be told
			      */
	struct lac_error evidence; /* with TORN and CORRUPT: what was found, and why this verdict */
};

/*
 * Reads and verifies everything from from_seq to the end and forms the verdict (R10): what does not
 * verify at X is CORRUPT if a later frame of the same segment and epoch has an intact header (it
 * was issued after X was synced), or a later segment's header names a later end (rule 4.18), or a
 * segment between is missing, or the next segment has no header but a frame whose watermark covers
 * X; else TORN where traces of a frame are left, CLEAN where none are. Reads all of the last
 * segment and the next one. Returns 0 with every verdict; negative for an I/O error (never taken
 * for an end: P13), lack of memory, or a format of a later release (-EOPNOTSUPP). Memory: one frame
 * plus a fixed buffer.
 */
int lac__jscan_open(struct lac_backend *be, const char *dir,
	const struct lac__jscan_options *options, struct lac__jscan **ret, struct lac_error *err);
void lac__jscan_close(struct lac__jscan *scan); /* NULL is fine */
void lac__jscan_end(const struct lac__jscan *scan, struct lac__jscan_end *ret);

struct lac__jrecord {
	uint64_t lsn;
	const void *bytes; /* valid until the next call */
	size_t length;
	uint64_t seq, offset; /* of its frame */
	uint64_t watermark;   /* of its frame */
};

/* The next record from from_lsn on, up to the end found; 0, or 1 at the end. May be rewound and
   walked again; bytes are verified again each time (-EIO and -EBADMSG are then real changes under
   our feet). */
int lac__jscan_next(struct lac__jscan *scan, struct lac__jrecord *ret, struct lac_error *err);
int lac__jscan_rewind(struct lac__jscan *scan, struct lac_error *err);

/* ---- appending ---- */

struct lac__journal;

/*
 * Called by the thread that made a group durable, before any waiter returns, in LSN order, never
 * twice at once, with no journal lock held. Must not call the journal but for its queries.
 */
typedef void (*lac__journal_durable_fn)(void *arg, uint64_t last_lsn);

/*
 * Opens the journal for appending after end (from a scan that was not CORRUPT, or made up by a
 * repair). keep_seq: oldest segment still needed (older files are recycled). Segments beyond
 * end->next_seq that are missing are made. Without space for them the journal still starts, even
 * without any ready segment: then every append gives -ENOSPC until a release (after a checkpoint,
 * which needs no journal space) makes one ready. Holds at most 3 files open.
 */
int lac__journal_start(struct lac_backend *be, const char *dir,
	const struct lac__journal_options *options, const struct lac__jscan_end *end,
	uint64_t keep_seq, lac__journal_durable_fn durable, void *arg, struct lac__journal **ret,
	struct lac_error *err);

enum lac__append_flags {
	LAC__APPEND_RESERVE = 1, /* may use the last ready segment (delete, reclaim, close): without
				    it append gives ENOSPC instead (rule 4.13) */
};

/*
 * Adds a record to the open group and gives it the next LSN. The space for it is real when this
 * returns 0; -ENOSPC, -E2BIG and the poison's error leave no trace. Not durable: see wait. Any
 * thread; the caller orders its own calls. Where the active segment and the allowed ready ones have
 * no room: with background (or not) it first tries to prepare one, and only then gives -ENOSPC.
 */
int lac__journal_append(struct lac__journal *j, const void *record, size_t length, unsigned flags,
	uint64_t *ret_lsn, struct lac_error *err);

/*
 * Returns 0 once lsn is durable and the durable callback has returned for it. One waiter becomes
 * the leader, writes the group and syncs; no timer. After the first failed write or sync every call
 * returns that error (P5), also for records that are in fact on disk: indeterminate (P2).
 */
int lac__journal_wait(struct lac__journal *j, uint64_t lsn, struct lac_error *err);

/* Writes a marker that confirms the last group, if it is not confirmed yet; durable on return.
   Always has space. Nothing to do before the first append of this run: a marker can't open a
   segment. */
int lac__journal_mark(struct lac__journal *j, struct lac_error *err);

/*
 * Segments that only hold LSNs below lsn are no longer needed: they are renamed to be ready ones
 * (as many as options want, the rest is unlinked). Durable renames on return. The newest segment
 * with a durable header always stays, so that a scan finds the epoch. The caller's checkpoint, with
 * journal_seq from lac__journal_seq_of of an LSN not above this one, is durable before the call.
 */
int lac__journal_release(struct lac__journal *j, uint64_t lsn, struct lac_error *err);
/* The segment from which a scan for lsn has to start: what a checkpoint stores as journal_seq. It
   has a durable header, unless nothing was ever written. */
uint64_t lac__journal_seq_of(struct lac__journal *j, uint64_t lsn);

uint64_t lac__journal_next_lsn(struct lac__journal *j);
uint64_t lac__journal_durable_lsn(struct lac__journal *j);
/* Bytes of frames in segments that are not released: what redo would have to read. Segments of
   earlier runs count in full. */
uint64_t lac__journal_live_bytes(struct lac__journal *j);
/* True when the journal can't take another full segment without a release: time for a checkpoint.
   The rest of the active segment and the reserve remain for it. */
bool lac__journal_pressed(struct lac__journal *j);

/* Fails all coming appends and waits with code, as a failed sync does. The first call counts. */
void lac__journal_poison(struct lac__journal *j, int code, const struct lac_error *why);
int lac__journal_poisoned(struct lac__journal *j, struct lac_error *ret_why);

struct lac__journal_stats {
	uint64_t records, record_bytes, groups, group_records_max, frame_bytes, written_bytes;
	uint64_t syncs, sync_ns, segments_switched, segments_prepared, segments_recycled,
		waits_for_segment;
	uint64_t files, file_bytes;
};
void lac__journal_stats(struct lac__journal *j, struct lac__journal_stats *ret);

/* All waiters have returned. Appended but unwaited records may or may not become durable. Writes
   nothing. Returns the poison, if any. */
int lac__journal_close(struct lac__journal *j);

#endif
