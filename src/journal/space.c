/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/space.c - the segments of a running journal.
 *
 * One list by ascending number: taken segments, then ready ones. Whoever changes its end or its
 * files (prepares, enlarges, releases) first sets `busy` and then works without the lock; taking
 * the first ready segment needs the lock only, because that touches no file.
 *
 * The last ready segment is for deletes and checkpoints (LAC__APPEND_RESERVE): without it a full
 * disk could never be emptied.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "journal/journal_internal.h"

#define EAGER_OPEN_FILES 2u /* with the one being prepared: three */

uint64_t lac__space_group_end(
	const struct lac__journal *j, const struct lac__group *g, size_t more_bytes)
{
	return lac__round_up(g->offset + LAC__FRAME_HEADER_BYTES + g->body_bytes + more_bytes,
		j->options.tear_bytes);
}

bool lac__space_fits(const struct lac__journal *j, const struct lac__segment *segment,
	uint64_t offset, uint64_t body_bytes)
{
	uint64_t end =
		lac__round_up(offset + LAC__FRAME_HEADER_BYTES + body_bytes, j->options.tear_bytes);

	return end + j->options.tear_bytes <= segment->size_bytes;
}

void lac__space_append(struct lac__journal *j, struct lac__segment *segment)
{
	segment->next = NULL;
	if (j->last)
		j->last->next = segment;
	else
		j->oldest = segment;
	j->last = segment;
}

static void add_ready(struct lac__journal *j, struct lac__segment *segment)
{
	lac__space_append(j, segment);
	if (!j->ready)
		j->ready = segment;
	j->ready_count++;
	j->next_seq = segment->seq + 1;
}

static void begin_busy(struct lac__journal *j)
{
	while (j->busy) {
		atomic_store(&j->hurry, true);
		pthread_cond_wait(&j->changed, &j->lock);
	}
	j->busy = true;
}

static void end_busy(struct lac__journal *j)
{
	j->busy = false;
	pthread_cond_broadcast(&j->changed);
}

/* Ready segments to keep: some for the next switches, and never fewer files than promised. */
unsigned lac__space_wanted(const struct lac__journal *j)
{
	unsigned wanted = j->options.ready_target;

	if (j->options.segments_min > j->used_count + wanted)
		wanted = j->options.segments_min - j->used_count;
	return wanted;
}

static int prepare_held(struct lac__journal *j, bool paced, struct lac_error *err)
{
	struct lac__segment *segment = calloc(1, sizeof *segment);
	bool sync_failed = false;
	struct lac_error why = {0};
	int rc;

	if (!segment)
		return lac__error_nomem(err);
	segment->seq = j->next_seq;
	segment->size_bytes = j->options.segment_bytes;
	pthread_mutex_unlock(&j->lock);
	atomic_fetch_add(&j->open_files, 1);
	rc = lac__segment_prepare(j->be, j->dir, segment->seq, &j->options,
		paced ? &j->hurry : NULL, &sync_failed, &why);
	atomic_fetch_sub(&j->open_files, 1);
	pthread_mutex_lock(&j->lock);
	if (sync_failed)
		lac__journal_fail(j, rc, &why);
	if (rc < 0) {
		free(segment);
		if (err)
			*err = why;
		return rc;
	}
	add_ready(j, segment);
	j->stats.segments_prepared++;
	return 0;
}

int lac__space_prepare(struct lac__journal *j, bool paced, struct lac_error *err)
{
	int rc;

	begin_busy(j);
	rc = prepare_held(j, paced, err);
	if (!j->stop)
		atomic_store(&j->hurry, false);
	end_busy(j);
	return rc;
}

int lac__space_open(struct lac__journal *j, struct lac__segment *segment, struct lac_error *err)
{
	struct lac__segment_path path;
	unsigned flags = LAC_OPEN_WRITE | (j->options.direct ? LAC_OPEN_DIRECT : 0);
	int rc;

	if (segment->file)
		return 0;
	rc = lac__segment_path(j->dir, segment->seq, &path);
	if (rc == 0)
		rc = lac__open(j->be, path.text, flags, &segment->file);
	if (rc < 0) {
		segment->file = NULL;
		return lac__error_sys(
			err, rc, "open segment %016" PRIx64 ".seg in %s", segment->seq, j->dir);
	}
	atomic_fetch_add(&j->open_files, 1);
	return 0;
}

int lac__space_close(struct lac__journal *j, struct lac__segment *segment)
{
	int rc = 0;

	if (segment->file) {
		rc = lac__close(segment->file);
		segment->file = NULL;
		atomic_fetch_sub(&j->open_files, 1);
	}
	return rc;
}

/* Grows the first ready segment in place; its first old_bytes are as ready as before. */
static int enlarge_file(struct lac__journal *j, struct lac__segment *segment, uint64_t size_bytes,
	bool *ret_sync_failed, struct lac_error *err)
{
	uint64_t old_bytes = segment->size_bytes;
	int rc = lac__space_open(j, segment, err);

	if (rc < 0)
		return rc;
	rc = lac__allocate(segment->file, old_bytes, size_bytes - old_bytes);
	if (rc == -EOPNOTSUPP)
		rc = 0;
	if (rc == 0)
		rc = lac__segment_fill(segment->file, old_bytes, size_bytes, NULL);
	if (rc == 0) {
		rc = lac__sync(segment->file);
		*ret_sync_failed = rc < 0 && !lac__is_space_error(rc);
	}
	if (rc < 0) {
		(void)lac__truncate(segment->file, old_bytes);
		return lac__error_sys(err, rc,
			"enlarge segment %016" PRIx64 ".seg in %s from %" PRIu64 " to %" PRIu64
			" bytes",
			segment->seq, j->dir, old_bytes, size_bytes);
	}
	return 0;
}

static int enlarge(struct lac__journal *j, uint64_t body_bytes, struct lac_error *err)
{
	struct lac__segment *segment = j->ready;
	uint64_t tear_bytes = j->options.tear_bytes;
	uint64_t size_bytes =
		lac__segment_first_offset(j->options.tear_bytes) + LAC__FRAME_HEADER_BYTES;
	struct lac_error why = {0};
	bool sync_failed = false;
	int rc;

	size_bytes = lac__round_up(size_bytes + body_bytes, tear_bytes) + tear_bytes;
	size_bytes = lac__round_up(size_bytes, LAC__PAGE_BYTES);
	j->busy = true;
	j->enlarging = true;
	pthread_mutex_unlock(&j->lock);
	rc = enlarge_file(j, segment, size_bytes, &sync_failed, &why);
	pthread_mutex_lock(&j->lock);
	j->enlarging = false;
	if (rc == 0)
		segment->size_bytes = size_bytes;
	if (sync_failed)
		lac__journal_fail(j, rc, &why);
	end_busy(j);
	if (rc < 0 && err)
		*err = why;
	return rc;
}

int lac__space_next(
	struct lac__journal *j, uint64_t body_bytes, unsigned flags, struct lac_error *err)
{
	unsigned kept = flags & LAC__APPEND_RESERVE ? 0 : 1;
	uint64_t first_offset = lac__segment_first_offset(j->options.tear_bytes);
	bool fits, enough = j->ready_count > kept;
	int rc;

	fits = enough && lac__space_fits(j, j->ready, first_offset, body_bytes);
	if (enough && fits && !j->enlarging) {
		/* An open that fails now fails the append, not a commit. Where too many are open
		   the leader opens it when it comes to it. */
		if (atomic_load(&j->open_files) < EAGER_OPEN_FILES)
			return lac__space_open(j, j->ready, err);
		return 0;
	}
	if (j->busy) {
		j->stats.waits_for_segment++;
		atomic_store(&j->hurry, true);
		pthread_cond_wait(&j->changed, &j->lock);
		return 1;
	}
	if (!enough) {
		j->stats.waits_for_segment++;
		rc = lac__space_prepare(j, false, err);
	} else {
		rc = enlarge(j, body_bytes, err);
	}
	return rc < 0 ? rc : 1;
}

struct lac__segment *lac__space_take(struct lac__journal *j)
{
	struct lac__segment *segment = j->ready;

	segment->first_lsn = j->next_lsn;
	segment->end_bytes = lac__segment_first_offset(j->options.tear_bytes);
	j->tail = segment;
	j->ready = segment->next;
	j->ready_count--;
	j->used_count++;
	pthread_cond_broadcast(&j->changed); /* the thread may have to prepare another one */
	return segment;
}

/* ---- release ---- */

/* An enlarged segment goes back to the usual size, where that can be had without a fuss. */
static int shrink(struct lac__journal *j, struct lac__segment *segment, struct lac_error *err)
{
	int rc;

	if (segment->size_bytes <= j->options.segment_bytes)
		return 0;
	if (lac__space_open(j, segment, NULL) < 0)
		return 0;
	rc = lac__truncate(segment->file, j->options.segment_bytes);
	if (rc == 0)
		segment->size_bytes = j->options.segment_bytes;
	rc = rc < 0 ? 0 : lac__sync(segment->file);
	if (lac__space_close(j, segment) < 0 && rc == 0)
		rc = -EIO;
	return rc < 0 ? lac__error_sys(err, rc, "sync a recycled segment in %s", j->dir) : 0;
}

/* Cuts the oldest segments that only hold LSNs below lsn off the list. */
static struct lac__segment *cut_oldest(
	struct lac__journal *j, uint64_t lsn, struct lac__segment **ret_end)
{
	struct lac__segment *first = j->oldest, *s = j->oldest, *last = NULL;

	while (s && s != j->ready && s->next && s->next != j->ready && s->next->durable &&
		s->next->first_lsn <= lsn) {
		last = s;
		s = s->next;
		j->used_count--;
	}
	*ret_end = last;
	if (!last)
		return NULL;
	j->oldest = s;
	last->next = NULL;
	return first;
}

/* Puts what could not be released back in front. */
static void put_back(struct lac__journal *j, struct lac__segment *first)
{
	struct lac__segment *last = first;

	if (!first)
		return;
	for (j->used_count++; last->next; last = last->next)
		j->used_count++;
	last->next = j->oldest;
	j->oldest = first;
}

/* Renames up to `recycle` segments of *list to the numbers from seq on, unlinks the others. Moves
   the renamed ones to *ret_ready; what is left in *list after a failure is still there on disk. */
static int rename_and_unlink(struct lac__journal *j, struct lac__segment **list, unsigned recycle,
	uint64_t seq, struct lac__segment **ret_ready, bool *ret_sync_failed, struct lac_error *err)
{
	struct lac__segment_path from, to;
	int rc = 0;

	while (*list) {
		struct lac__segment *s = *list;

		rc = lac__segment_path(j->dir, s->seq, &from);
		if (rc == 0)
			rc = lac__segment_path(j->dir, seq, &to);
		if (rc < 0)
			return lac__error_sys(err, rc, "release a segment in %s", j->dir);
		if (recycle == 0) {
			rc = j->be->ops->unlink(j->be, from.text);
			if (rc < 0 && rc != -ENOENT)
				return lac__error_sys(err, rc, "unlink %s", from.text);
			*list = s->next;
			free(s);
			continue;
		}
		rc = shrink(j, s, err);
		if (rc < 0) {
			*ret_sync_failed = !lac__is_space_error(rc);
			return rc;
		}
		rc = j->be->ops->rename(j->be, from.text, to.text);
		if (rc < 0)
			return lac__error_sys(err, rc, "rename %s to %s", from.text, to.text);
		*list = s->next;
		s->seq = seq++;
		s->durable = false;
		s->next = NULL;
		*ret_ready = s;
		ret_ready = &s->next;
		recycle--;
	}
	return 0;
}

static unsigned count_to_recycle(const struct lac__journal *j, const struct lac__segment *cut)
{
	unsigned count = 0, wanted = lac__space_wanted(j);

	for (; cut; cut = cut->next)
		count++;
	if (j->ready_count >= wanted)
		return 0;
	return count < wanted - j->ready_count ? count : wanted - j->ready_count;
}

/* Without the lock. The caller's checkpoint that no longer needs these is durable, so a crash
   between any two renames leaves only numbers below the first one that a scan reads, and ready
   ones. */
static int release_files(struct lac__journal *j, struct lac__segment **cut, unsigned recycle,
	uint64_t seq, struct lac__segment **ret_ready, bool *ret_sync_failed, struct lac_error *err)
{
	int rc = rename_and_unlink(j, cut, recycle, seq, ret_ready, ret_sync_failed, err);
	int sync_rc = j->be->ops->sync_dir(j->be, j->dir);

	/* Before this sync a renamed segment may lose its new name: nothing may be written to it.
	 */
	if (sync_rc < 0) {
		*ret_sync_failed = true;
		if (rc == 0)
			rc = lac__error_sys(err, sync_rc, "sync %s", j->dir);
	}
	return rc;
}

int lac__journal_release(struct lac__journal *j, uint64_t lsn, struct lac_error *err)
{
	struct lac__segment *cut, *cut_end, *ready = NULL, *s;
	struct lac_error why = {0};
	bool sync_failed = false;
	unsigned recycle;
	int rc;

	pthread_mutex_lock(&j->lock);
	begin_busy(j);
	rc = lac__journal_check(j, err); /* after poison nothing is recycled (rule 4.14) */
	cut = rc == 0 ? cut_oldest(j, lsn, &cut_end) : NULL;
	if (!cut)
		goto out;
	recycle = count_to_recycle(j, cut);
	uint64_t seq = j->next_seq;

	pthread_mutex_unlock(&j->lock);
	rc = release_files(j, &cut, recycle, seq, &ready, &sync_failed, &why);
	pthread_mutex_lock(&j->lock);
	if (sync_failed)
		lac__journal_fail(j, rc, &why);
	put_back(j, cut);
	while ((s = ready)) {
		ready = s->next;
		add_ready(j, s);
		j->stats.segments_recycled++;
	}
	if (rc < 0 && err)
		*err = why;
out:
	end_busy(j);
	pthread_mutex_unlock(&j->lock);
	return rc;
}

/* ---- the thread ---- */

/* Prepares whenever fewer segments are ready than wanted. After a failure it waits until something
   has changed: a release, a switch, an append that found no space. */
static void *prepare_thread(void *arg)
{
	struct lac__journal *j = arg;

	pthread_mutex_lock(&j->lock);
	while (!j->stop) {
		if (j->poison || j->busy || j->ready_count >= lac__space_wanted(j) ||
			lac__space_prepare(j, true, NULL) < 0)
			if (!j->stop)
				pthread_cond_wait(&j->changed, &j->lock);
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

int lac__space_thread_start(struct lac__journal *j)
{
	int rc;

	if (!j->options.background)
		return 0;
	rc = -pthread_create(&j->thread, NULL, prepare_thread, j);
	j->has_thread = rc == 0;
	return rc;
}

void lac__space_thread_stop(struct lac__journal *j)
{
	if (!j->has_thread)
		return;
	pthread_mutex_lock(&j->lock);
	j->stop = true;
	atomic_store(&j->hurry, true);
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
	pthread_join(j->thread, NULL);
	j->has_thread = false;
}
