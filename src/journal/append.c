/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/append.c - group commit.
 *
 * append copies a record into the open group; wait makes its group durable. Whoever waits while
 * nobody leads becomes the leader: it closes the open group, writes and syncs it, and meanwhile the
 * next group fills. So the sync itself is the time in which a group gathers; there is no timer. A
 * leader stops when its own record is durable and hands over to one waiter of the next group, who
 * is woken for nothing else; the others of that group sleep until it is done.
 *
 * Each group is a futex of its own, so that a finished group wakes its own waiters only, and these
 * return without taking the lock again.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "journal/journal_internal.h"

#define GROUP_BYTES_DEFAULT (1u << 20)
#define GROW_ROUNDS	    8 /* times that a leader yields while its group still grows */

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* ---- poison ---- */

int lac__journal_check(const struct lac__journal *j, struct lac_error *err)
{
	if (j->poison == 0)
		return 0;
	if (err)
		*err = j->why;
	return j->poison;
}

/* Takes the oldest group off the queue and wakes its waiters with their result. */
static void finish_group(struct lac__journal *j, enum lac__group_state state)
{
	struct lac__group *g = j->head;

	j->head = g->next;
	if (j->newest == g)
		j->newest = NULL;
	if (j->open == g)
		j->open = NULL;
	lac__group_retire_buffer(j, g);
	atomic_store_explicit(&g->state, state, memory_order_release);
	if (g->waiters)
		futex_wake(&g->state, INT_MAX);
	lac__group_unref(g);
}

void lac__journal_fail(struct lac__journal *j, int code, const struct lac_error *why)
{
	if (j->poison)
		return;
	j->poison = code;
	if (why)
		j->why = *why;
	else
		lac__error_set(
			&j->why, code, LAC_REASON_POISONED, 0, 0, "the journal was given up");
	/* The group that is being written is its leader's to fail. */
	while (j->head && j->head != j->writing)
		finish_group(j, LAC__GROUP_FAILED);
	pthread_cond_broadcast(&j->changed);
}

void lac__journal_poison(struct lac__journal *j, int code, const struct lac_error *why)
{
	pthread_mutex_lock(&j->lock);
	lac__journal_fail(j, code, why);
	pthread_mutex_unlock(&j->lock);
}

int lac__journal_poisoned(struct lac__journal *j, struct lac_error *ret_why)
{
	int rc;

	pthread_mutex_lock(&j->lock);
	rc = lac__journal_check(j, ret_why);
	pthread_mutex_unlock(&j->lock);
	return rc;
}

/* ---- append ---- */

static void close_open(struct lac__journal *j)
{
	if (!j->open)
		return;
	j->open->segment->end_bytes = lac__space_group_end(j, j->open, 0);
	j->open = NULL;
}

static int begin_group(struct lac__journal *j, struct lac__segment *segment, uint64_t offset,
	bool opens_segment, size_t body_bytes)
{
	struct lac__group *g;
	int rc = lac__group_new(j, segment, offset, opens_segment, body_bytes, &g);

	if (rc < 0)
		return rc;
	close_open(j);
	if (opens_segment)
		lac__space_take(j);
	if (j->newest)
		j->newest->next = g;
	else
		j->head = g;
	j->newest = g;
	j->open = g;
	return 0;
}

/* Where a group after the open one would begin, in the same segment. */
static uint64_t next_offset(const struct lac__journal *j)
{
	return j->open ? lac__space_group_end(j, j->open, 0) : j->tail->end_bytes;
}

static bool joins_open(const struct lac__journal *j, size_t bytes)
{
	const struct lac__group *g = j->open;
	uint64_t limit =
		j->options.group_bytes_max ? j->options.group_bytes_max : GROUP_BYTES_DEFAULT;

	return g && (g->count == 0 || g->body_bytes + bytes <= limit) && g->count < UINT32_MAX &&
	       lac__space_fits(j, g->segment, g->offset, g->body_bytes + bytes);
}

/* Finds a place for a record that takes `bytes` in a body: afterwards the open group has room and
   memory for it. 1 when the lock was dropped and all has to be looked at again. */
static int make_room(struct lac__journal *j, size_t bytes, unsigned flags, struct lac_error *err)
{
	int rc = lac__journal_check(j, err);

	if (rc < 0)
		return rc;
	if (joins_open(j, bytes)) {
		rc = lac__group_reserve(j, j->open, bytes);
		return rc < 0 ? lac__error_nomem(err) : 0;
	}
	if (j->tail && lac__space_fits(j, j->tail, next_offset(j), bytes)) {
		rc = begin_group(j, j->tail, next_offset(j), false, bytes);
		return rc < 0 ? lac__error_nomem(err) : 0;
	}
	rc = lac__space_next(j, bytes, flags, err);
	if (rc != 0)
		return rc;
	rc = begin_group(
		j, j->ready, lac__segment_first_offset(j->options.tear_bytes), true, bytes);
	return rc < 0 ? lac__error_nomem(err) : 0;
}

int lac__journal_append(struct lac__journal *j, const void *record, size_t length, unsigned flags,
	uint64_t *ret_lsn, struct lac_error *err)
{
	int rc;

	if (length > j->options.record_bytes_max)
		return lac__error_set(err, -E2BIG, LAC_REASON_TOO_BIG, 0, length,
			"append to journal %s: record of %zu bytes, at most %" PRIu64, j->dir,
			length, j->options.record_bytes_max);
	pthread_mutex_lock(&j->lock);
	do
		rc = make_room(j, lac__frame_record_bytes(length), flags, err);
	while (rc == 1);
	if (rc == 0) {
		lac__group_add(j->open, record, length);
		*ret_lsn = j->next_lsn++;
		j->stats.records++;
		j->stats.record_bytes += length;
	}
	pthread_mutex_unlock(&j->lock);
	if (rc < 0)
		lac__error_prepend(err, "append to journal");
	return rc;
}

/* ---- wait ---- */

/* Lets those who are just about to append join, if there are any: only where the last group had
   company, and only as long as this one grows. */
static void let_grow(struct lac__journal *j, struct lac__group *g)
{
	for (int i = 0; i < GROW_ROUNDS && j->last_count > 1 && j->open == g; i++) {
		uint32_t count = g->count;

		pthread_mutex_unlock(&j->lock);
		sched_yield();
		pthread_mutex_lock(&j->lock);
		if (j->poison || (i > 0 && g->count == count))
			break;
	}
}

/* Publishes a group whose sync has returned 0. The callback comes first: a waiter that returns
   finds its effects. */
static void publish(struct lac__journal *j, struct lac__group *g)
{
	uint64_t last_lsn = g->first_lsn + g->count - 1;

	if (g->count && j->durable_fn) {
		pthread_mutex_unlock(&j->lock);
		j->durable_fn(j->arg, last_lsn);
		pthread_mutex_lock(&j->lock);
	}
	j->writing = NULL;
	if (j->poison) {
		finish_group(j, LAC__GROUP_FAILED);
		return;
	}
	j->durable_lsn = last_lsn;
	j->confirmed_lsn = g->watermark;
	if (g->opens_segment)
		j->stats.segments_switched++;
	g->segment->durable = true;
	j->last_count = g->count;
	finish_group(j, LAC__GROUP_DURABLE);
}

static void write_head(struct lac__journal *j)
{
	struct lac__group *g = j->head;
	struct lac_error why = {0};
	int rc;

	if (j->open == g)
		let_grow(j, g);
	if (j->poison)
		return;
	if (j->open == g)
		close_open(j);
	j->writing = g;
	g->watermark = j->durable_lsn; /* whatever else is switched on or off (R9) */
	pthread_mutex_unlock(&j->lock);
	rc = lac__group_write(j, g, &why);
	pthread_mutex_lock(&j->lock);
	if (rc < 0)
		lac__journal_fail(j, rc, &why);
	if (j->poison == 0) {
		publish(j, g);
		return;
	}
	j->writing = NULL;
	while (j->head)
		finish_group(j, LAC__GROUP_FAILED);
}

static bool is_pending(struct lac__group *g)
{
	uint32_t state = atomic_load_explicit(&g->state, memory_order_acquire);

	return state == LAC__GROUP_PENDING || state == LAC__GROUP_LEAD;
}

/* Called by the leader with the lock held: leads until g is done, then hands over. */
static void lead(struct lac__journal *j, struct lac__group *g)
{
	struct lac__group *next;

	while (is_pending(g))
		write_head(j);
	for (next = j->head; next && next->waiters == 0; next = next->next)
		;
	if (!next) {
		j->leading = false;
		return;
	}
	atomic_store_explicit(&next->state, LAC__GROUP_LEAD, memory_order_release);
	futex_wake(&next->state, 1);
}

/* Called with the lock held, returns without it: g's result. */
static enum lac__group_state wait_group(struct lac__journal *j, struct lac__group *g)
{
	bool leads = !j->leading;
	uint32_t state;

	g->waiters++;
	atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
	if (leads) {
		j->leading = true;
		lead(j, g);
	}
	pthread_mutex_unlock(&j->lock);
	for (;;) {
		state = atomic_load_explicit(&g->state, memory_order_acquire);
		if (state == LAC__GROUP_PENDING) {
			futex_wait(&g->state, state);
		} else if (state != LAC__GROUP_LEAD) {
			break;
		} else if (atomic_compare_exchange_strong(&g->state, &state, LAC__GROUP_PENDING)) {
			pthread_mutex_lock(&j->lock);
			lead(j, g);
			pthread_mutex_unlock(&j->lock);
		}
	}
	lac__group_unref(g);
	return state;
}

/* Called with the lock held, returns without it. */
static int wait_and_tell(struct lac__journal *j, struct lac__group *g, struct lac_error *err)
{
	int rc = 0;

	if (wait_group(j, g) == LAC__GROUP_FAILED) {
		pthread_mutex_lock(&j->lock);
		rc = lac__journal_check(j, err);
		pthread_mutex_unlock(&j->lock);
	}
	return rc;
}

int lac__journal_wait(struct lac__journal *j, uint64_t lsn, struct lac_error *err)
{
	struct lac__group *g;
	int rc;

	pthread_mutex_lock(&j->lock);
	rc = lac__journal_check(j, err);
	if (rc < 0 || lsn <= j->durable_lsn)
		goto out;
	if (lsn >= j->next_lsn) {
		rc = lac__error_set(err, -EINVAL, LAC_REASON_ARGUMENT, 0, 0,
			"wait for LSN %" PRIu64 ": the next one is %" PRIu64, lsn, j->next_lsn);
		goto out;
	}
	for (g = j->head; lsn >= g->first_lsn + g->count; g = g->next)
		;
	return wait_and_tell(j, g, err);
out:
	pthread_mutex_unlock(&j->lock);
	return rc;
}

/* Space for a marker is always there: every group leaves it (J4). Before the first group of this
   run there is nothing to confirm, and no segment to write it to. */
int lac__journal_mark(struct lac__journal *j, struct lac_error *err)
{
	int rc;

	pthread_mutex_lock(&j->lock);
	rc = lac__journal_check(j, err);
	if (rc < 0 || !j->tail)
		goto out;
	if (j->newest)
		return wait_and_tell(
			j, j->newest, err); /* not idle: that frame confirms the last */
	if (j->confirmed_lsn == j->durable_lsn)
		goto out;
	rc = begin_group(j, j->tail, j->tail->end_bytes, false, 0);
	if (rc == 0)
		return wait_and_tell(j, j->open, err);
	lac__error_nomem(err);
out:
	pthread_mutex_unlock(&j->lock);
	return rc;
}
