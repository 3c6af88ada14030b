/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/journal_internal.h - what the files of this layer share.
 *
 *   segment.c  names and listing, preparing one file, lac__journal_create
 *   scan.c     walking and verifying frames; lac__jscan_next
 *   verdict.c  what it means that something does not verify; lac__jscan_open
 *   space.c    the segments of a running journal: taking, preparing, enlarging, recycling
 *   group.c    the buffer of a group, and writing one
 *   append.c   append, wait, mark: group commit
 *   start.c    start, close, and the queries
 */
#ifndef LAC_JOURNAL_INTERNAL_H
#define LAC_JOURNAL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "journal/journal.h"

#define LAC__JOURNAL_SEGMENT_MIN_BYTES 16384u
#define LAC__TEAR_MIN_BYTES	       512u
#define LAC__TEAR_MAX_BYTES	       65536u
#define LAC__GROUP_LIMIT_BYTES	       (UINT64_C(16) << 20) /* bound of group_bytes_max */
#define LAC__RECORD_LIMIT_BYTES	       (UINT64_C(1) << 30)  /* bound of record_bytes_max */

/* ---- segment.c ---- */

struct lac__segment_path {
	char text[512];
};

int lac__segment_path(const char *dir, uint64_t seq, struct lac__segment_path *ret);
int lac__segment_temp_path(const char *dir, struct lac__segment_path *ret);

struct lac__segment_list {
	uint64_t *seqs; /* ascending */
	size_t count, capacity;
	bool temporary; /* a preparation was interrupted */
};

int lac__segment_list_read(struct lac_backend *be, const char *dir, struct lac__segment_list *ret,
	struct lac_error *err);
void lac__segment_list_free(struct lac__segment_list *list);
bool lac__segment_list_has(const struct lac__segment_list *list, uint64_t seq);

/* Where the first frame of a segment stands: behind the header page, on a tear unit. */
uint64_t lac__segment_first_offset(uint32_t tear_bytes);

int lac__journal_options_check(const struct lac__journal_options *options, struct lac_error *err);

/* True for the errors that mean a full disk: nothing is broken, and the store may go on. */
bool lac__is_space_error(int code);

/* Writes zeros over [from, to). With hurry, slowly, as long as that is false. */
int lac__segment_fill(struct lac_file *file, uint64_t from, uint64_t to, const _Atomic bool *hurry);

/* Makes the ready segment seq. On failure nothing is left of it, and *ret_sync_failed says whether
   a sync failed for another reason than space. */
int lac__segment_prepare(struct lac_backend *be, const char *dir, uint64_t seq,
	const struct lac__journal_options *options, const _Atomic bool *hurry,
	bool *ret_sync_failed, struct lac_error *err);

/* ---- a running journal ---- */

struct lac__segment {
	struct lac__segment *next; /* the next higher number */
	uint64_t seq;
	uint64_t size_bytes;
	uint64_t first_lsn;    /* once taken */
	uint64_t end_bytes;    /* once taken: where the next group goes */
	struct lac_file *file; /* may be open from taking it until its successor is written */
	bool durable;	       /* once taken: its header is on disk for good */
};

/* LAC__GROUP_LEAD asks one of the group's waiters to become the leader. */
enum lac__group_state {
	LAC__GROUP_PENDING,
	LAC__GROUP_LEAD,
	LAC__GROUP_DURABLE,
	LAC__GROUP_FAILED
};

struct lac__buffer {
	uint8_t *bytes;
	size_t capacity;
};

struct lac__group {
	struct lac__group *next;
	struct lac__segment *segment;
	uint64_t offset; /* of the frame */
	uint64_t first_lsn;
	uint64_t watermark; /* set when it is written */
	uint32_t count;	    /* records; 0 makes a marker */
	bool opens_segment; /* it carries the segment's header page */
	size_t body_bytes;
	size_t lead_bytes; /* of the buffer, before the frame: header page or shared page */
	struct lac__buffer buffer;
	unsigned waiters;	/* guarded by the journal's lock */
	_Atomic uint32_t state; /* enum lac__group_state; a futex */
	_Atomic unsigned refs;	/* the queue's and the waiters' */
};

/*
 * J1  oldest .. tail are taken, ready .. last are not; ready == tail->next, or oldest without a
 * tail that is newer; numbers are consecutive. J2  Groups are queued in LSN order, head .. ; only
 * the newest may be `open` and take records. J3  Only the leader writes groups, one at a time: it
 * has head, with `writing` set. J4  Every group in the queue has its whole frame, and a marker
 * after it, inside a segment whose blocks were allocated and written before its first record was
 * accepted (rule 4.13). J5  durable_lsn only grows, and only after a sync returned 0 and the
 * journal was not poisoned. J6  Nobody but the holder of `busy` adds segments at the end, enlarges
 * or removes them. J7  The newest segment with a durable header is never released: a scan always
 * finds the epoch.
 */
struct lac__journal {
	struct lac_backend *be;
	char *dir;
	struct lac__journal_options options;
	uint32_t epoch;
	lac__journal_durable_fn durable_fn;
	void *arg;

	pthread_mutex_t lock;	/* guards all below that does not say otherwise; no I/O under it */
	pthread_cond_t changed; /* segments were added, `busy` ended, stop, poison */

	struct lac__segment *oldest, *tail, *ready, *last;
	unsigned used_count, ready_count;
	uint64_t next_seq; /* of the next file to be made */
	bool busy;	   /* somebody prepares, enlarges or releases */
	bool enlarging;	   /* `ready` must not be taken now */

	struct lac__group *head, *newest, *open;
	struct lac__group *writing;
	bool leading;
	uint32_t last_count; /* records of the last group written */
	uint64_t next_lsn, durable_lsn, confirmed_lsn;
	struct lac__buffer spare[2];

	int poison;
	struct lac_error why;

	/* the leader's own */
	struct lac__segment *written; /* the segment that was written last */
	uint8_t *tail_page;	      /* its last page, where the next frame begins inside it */

	_Atomic unsigned open_files;
	pthread_t thread;
	bool has_thread, stop;
	_Atomic bool hurry; /* somebody waits for the segment that the thread prepares */
	struct lac__journal_stats stats;
};

/* ---- space.c; the lock is held, and may be dropped and taken again ---- */

uint64_t lac__space_group_end(
	const struct lac__journal *j, const struct lac__group *g, size_t more_bytes);
/* A frame with body_bytes of records at offset, and a marker behind it, fit into segment. */
bool lac__space_fits(const struct lac__journal *j, const struct lac__segment *segment,
	uint64_t offset, uint64_t body_bytes);
/* 0: j->ready may be taken for body_bytes and is open where possible; 1: things changed, look
   again; negative: there is no space. */
int lac__space_next(
	struct lac__journal *j, uint64_t body_bytes, unsigned flags, struct lac_error *err);
struct lac__segment *lac__space_take(struct lac__journal *j);
int lac__space_prepare(struct lac__journal *j, bool paced, struct lac_error *err);
unsigned lac__space_wanted(const struct lac__journal *j);
void lac__space_append(struct lac__journal *j, struct lac__segment *segment);
int lac__space_thread_start(struct lac__journal *j);
void lac__space_thread_stop(struct lac__journal *j);
int lac__space_open(struct lac__journal *j, struct lac__segment *segment, struct lac_error *err);
int lac__space_close(struct lac__journal *j, struct lac__segment *segment);

/* ---- group.c ---- */

/* The lock is held. */
int lac__group_new(struct lac__journal *j, struct lac__segment *segment, uint64_t offset,
	bool opens_segment, size_t body_bytes, struct lac__group **ret);
int lac__group_reserve(struct lac__journal *j, struct lac__group *g, size_t more_bytes);
void lac__group_add(struct lac__group *g, const void *record, size_t length);
void lac__group_retire_buffer(struct lac__journal *j, struct lac__group *g);
void lac__group_unref(struct lac__group *g);
/* The leader only, without the lock. */
int lac__group_write(struct lac__journal *j, struct lac__group *g, struct lac_error *err);

/* ---- append.c ---- */

/* The lock is held. The first call counts. */
void lac__journal_fail(struct lac__journal *j, int code, const struct lac_error *why);
/* The lock is held. 0, or the poison and its text. */
int lac__journal_check(const struct lac__journal *j, struct lac_error *err);

#endif
