/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/files.c - a bounded set of open files, by path.
 *
 * One entry a path, found by hash. An entry that nobody holds stands in the list of idle ones, the
 * longest unused first, and is what gets closed when descriptors run short.
 *
 * No system call is made under the mutex, so an entry says itself that something is going on:
 *
 *	busy	one thread opens or closes it; who else wants it waits for `changed` and then looks
 *the path up again, because the entry may be gone holders	it is neither closed nor freed; a
 *thread that syncs an idle entry holds it meanwhile
 *
 * A failed sync or close is kept in the entry's syncer. After a failed sync the descriptor stays
 * open for as long as the set lives, after a failed close the entry stays without one: whoever
 * holds the path again learns from lac__held_sync that bytes were lost.
 *
 * Invariants, under `mutex`:
 * F1  open_now counts descriptors, and those that are being opened.
 * F2  An entry is idle exactly when it is open, not busy and not held.
 * F3  A dirty entry is never busy: what is being closed is clean, what is being opened was not
 *     writable before.
 * F4  An entry in the table that is neither open nor busy has a failure.
 * F5  A forgotten entry is held, and in no list.
 */
#include "io/files.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "io/syncer.h"

struct lac__held {
	struct lac__files *files;
	struct lac__syncer *syncer;
	_Atomic(struct lac_file *) file; /* NULL: not open */
	struct lac_file *superseded;	 /* the read-only one before file, until the last release */
	unsigned flags;
	unsigned holders;
	bool busy, forgotten, idle;
	struct lac__held *bucket_next;
	struct lac__held *idle_prev, *idle_next;
	char path[];
};

struct lac__files {
	struct lac_backend *be;
	unsigned limit;
	size_t bucket_mask;
	size_t entries;

	pthread_mutex_t mutex;
	pthread_cond_t changed; /* an entry is no longer busy */
	struct lac__held **buckets;
	struct lac__held *idle_first, *idle_last;
	struct lac__files_stats stats; /* syncs: of entries that are gone */
};

/* ---- table and list ---- */

static struct lac__held **bucket_of(struct lac__files *files, const char *path)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a */

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 1099511628211u;
	return &files->buckets[(hash ^ hash >> 32) & files->bucket_mask];
}

static struct lac__held *find(struct lac__files *files, const char *path)
{
	struct lac__held *e = *bucket_of(files, path);

	while (e && strcmp(e->path, path) != 0)
		e = e->bucket_next;
	return e;
}

/* Finds path, and waits as long as its entry is busy. */
static struct lac__held *find_settled(struct lac__files *files, const char *path)
{
	struct lac__held *e;

	while ((e = find(files, path)) != NULL && e->busy)
		pthread_cond_wait(&files->changed, &files->mutex);
	return e;
}

static void table_remove(struct lac__held *e)
{
	struct lac__held **link = bucket_of(e->files, e->path);

	while (*link != e)
		link = &(*link)->bucket_next;
	*link = e->bucket_next;
	e->files->entries--;
}

static void idle_append(struct lac__held *e)
{
	struct lac__files *files = e->files;

	assert(!e->idle && !e->busy && !e->forgotten && e->holders == 0 && e->file);
	e->idle = true;
	e->idle_next = NULL;
	e->idle_prev = files->idle_last;
	*(e->idle_prev ? &e->idle_prev->idle_next : &files->idle_first) = e;
	files->idle_last = e;
}

static void idle_remove(struct lac__held *e)
{
	struct lac__files *files = e->files;

	if (!e->idle)
		return;
	e->idle = false;
	*(e->idle_prev ? &e->idle_prev->idle_next : &files->idle_first) = e->idle_next;
	*(e->idle_next ? &e->idle_next->idle_prev : &files->idle_last) = e->idle_prev;
}

static void pin(struct lac__held *e)
{
	idle_remove(e);
	e->holders++;
}

static void settle(struct lac__held *e)
{
	e->busy = false;
	pthread_cond_broadcast(&e->files->changed);
}

static bool failed(struct lac__held *e)
{
	return lac__syncer_failure(e->syncer) != 0;
}

static int entry_new(struct lac__files *files, const char *path, struct lac__held **ret)
{
	size_t length = strlen(path) + 1;
	struct lac__held *e = calloc(1, sizeof(*e) + length);

	if (!e)
		return -ENOMEM;
	int rc = lac__syncer_new(&e->syncer);
	if (rc < 0) {
		free(e);
		return rc;
	}
	e->files = files;
	memcpy(e->path, path, length);
	struct lac__held **bucket = bucket_of(files, path);
	e->bucket_next = *bucket;
	*bucket = e;
	files->entries++;
	*ret = e;
	return 0;
}

/* Closed already, and out of the table. */
static void entry_free(struct lac__held *e)
{
	e->files->stats.syncs += lac__syncer_calls(e->syncer);
	lac__syncer_free(e->syncer);
	free(e);
}

/* ---- making room; these give the mutex up and take it again ---- */

/* Closes *file, whose entry can't go away meanwhile, and keeps a failure. */
static void close_unlocked(struct lac__held *e, struct lac_file *file)
{
	struct lac__files *files = e->files;

	pthread_mutex_unlock(&files->mutex);
	int rc = lac__close(file);
	pthread_mutex_lock(&files->mutex);
	if (rc < 0)
		lac__syncer_fail(e->syncer, rc);
	files->stats.open_now--;
	files->stats.closes++;
}

/* Closes an idle entry and removes it, unless the close fails. */
static void evict(struct lac__held *e)
{
	assert(e->idle && !lac__syncer_dirty(e->syncer));
	idle_remove(e);
	e->busy = true;
	close_unlocked(e, e->file);
	e->file = NULL;
	settle(e);
	if (failed(e))
		return;
	table_remove(e);
	entry_free(e);
}

/* The longest unused entry that is clean, or that is dirty and can be synced. */
static struct lac__held *oldest(struct lac__files *files, bool dirty)
{
	struct lac__held *e = files->idle_first;

	while (e && (lac__syncer_dirty(e->syncer) != dirty || (dirty && failed(e))))
		e = e->idle_next;
	return e;
}

/* Undoes pin. The last one closes what nobody needs any more, and frees a forgotten entry. */
static void unpin(struct lac__held *e)
{
	assert(e->holders > 0);
	while (e->holders == 1 && e->superseded) {
		struct lac_file *file = e->superseded;
		e->superseded = NULL;
		close_unlocked(e, file);
	}
	if (e->holders == 1 && e->forgotten && e->file)
		close_unlocked(e, e->file);
	if (--e->holders > 0)
		return;
	if (e->forgotten)
		entry_free(e);
	else if (e->file)
		idle_append(e);
	else if (!failed(e)) {
		table_remove(e);
		entry_free(e);
	}
}

/* Closes idle entries until the limit is kept. Beyond it, dirty ones are synced first if may_sync;
   each at most once, so that busy writers can't keep this here. */
static void keep_limit(struct lac__files *files, bool may_sync)
{
	uint64_t syncs_left = may_sync ? files->stats.open_now : 0;

	while (files->stats.open_now > files->limit) {
		struct lac__held *e = oldest(files, false);
		if (e) {
			evict(e);
			continue;
		}
		if (syncs_left == 0 || !(e = oldest(files, true)))
			return;
		syncs_left--;
		pin(e);
		pthread_mutex_unlock(&files->mutex);
		/* A failure stays with the entry, which is then passed over. */
		lac__syncer_sync(e->syncer, e->file);
		pthread_mutex_lock(&files->mutex);
		unpin(e);
	}
}

/* ---- the set ---- */

int lac__files_new(struct lac_backend *be, unsigned limit, struct lac__files **ret)
{
	struct lac__files *files = calloc(1, sizeof(*files));
	size_t buckets = 16;
	int rc = -ENOMEM;

	if (!files)
		return rc;
	while (buckets < limit && buckets < 65536)
		buckets *= 2;
	files->be = be;
	files->limit = limit;
	files->bucket_mask = buckets - 1;
	files->buckets = calloc(buckets, sizeof(struct lac__held *));
	if (!files->buckets)
		goto out;
	rc = -pthread_mutex_init(&files->mutex, NULL);
	if (rc < 0)
		goto out;
	rc = -pthread_cond_init(&files->changed, NULL);
	if (rc < 0) {
		pthread_mutex_destroy(&files->mutex);
		goto out;
	}
	*ret = files;
	files = NULL;
out:
	if (files)
		free(files->buckets);
	free(files);
	return rc;
}

int lac__files_free(struct lac__files *files)
{
	int rc = 0;

	if (!files)
		return 0;
	for (size_t i = 0; i <= files->bucket_mask; i++) {
		struct lac__held *e;
		while ((e = files->buckets[i]) != NULL) {
			assert(e->holders == 0 && !e->busy);
			int closed = lac__close(e->file);
			if (closed < 0)
				lac__syncer_fail(e->syncer, closed);
			if (rc == 0)
				rc = lac__syncer_failure(e->syncer);
			table_remove(e);
			entry_free(e);
		}
	}
	pthread_cond_destroy(&files->changed);
	pthread_mutex_destroy(&files->mutex);
	free(files->buckets);
	free(files);
	return rc;
}

struct lac_backend *lac__files_backend(const struct lac__files *files)
{
	return files->be;
}

/* Opens a file that is counted already; where the process has no descriptor left, in place of idle
   ones. */
static int open_unlocked(struct lac__held *e, unsigned flags, struct lac_file **ret)
{
	struct lac__files *files = e->files;
	struct lac__held *victim;
	int rc;

	for (;;) {
		pthread_mutex_unlock(&files->mutex);
		rc = lac__open(files->be, e->path, flags, ret);
		pthread_mutex_lock(&files->mutex);
		if (rc != -EMFILE && rc != -ENFILE)
			return rc;
		victim = oldest(files, false);
		if (!victim)
			return rc;
		evict(victim);
	}
}

/* Opens e, which the caller pinned, and gives the mutex up meanwhile. */
static int open_entry(struct lac__held *e, unsigned flags)
{
	struct lac__files *files = e->files;
	struct lac_file *file = NULL;

	/* The flags of the first open count. */
	flags |= e->flags;
	assert(!e->superseded && !(e->flags & LAC_OPEN_WRITE && e->file));
	assert(!lac__syncer_dirty(e->syncer) || failed(e));
	e->busy = true;
	files->stats.open_now++;
	keep_limit(files, true);
	int rc = open_unlocked(e, flags, &file);
	settle(e);
	if (rc < 0) {
		files->stats.open_now--;
		return rc;
	}
	files->stats.opens++;
	e->superseded = e->file;
	e->file = file;
	e->flags = flags;
	return 0;
}

int lac__files_hold(struct lac__files *files, const char *path, unsigned flags,
	struct lac__held **ret, struct lac_error *err)
{
	int rc = 0;

	assert((flags & (LAC_OPEN_CREATE | LAC_OPEN_EXCLUSIVE)) == 0);
	pthread_mutex_lock(&files->mutex);
	struct lac__held *e = find_settled(files, path);
	if (!e)
		rc = entry_new(files, path, &e);
	if (rc < 0)
		goto out;
	pin(e);
	if (!e->file)
		rc = open_entry(e, flags);
	else if ((flags & LAC_OPEN_WRITE) && !(e->flags & LAC_OPEN_WRITE))
		rc = open_entry(e, LAC_OPEN_WRITE);
	if (rc < 0)
		unpin(e);
	else
		*ret = e;
out:
	pthread_mutex_unlock(&files->mutex);
	return rc < 0 ? lac__error_sys(err, rc, "open %s", path) : 0;
}

void lac__files_release(struct lac__held *held)
{
	struct lac__files *files = held->files;

	pthread_mutex_lock(&files->mutex);
	unpin(held);
	/* What was opened beyond the limit goes as soon as it can, but a release waits for no sync.
	 */
	keep_limit(files, false);
	pthread_mutex_unlock(&files->mutex);
}

struct lac_file *lac__held_file(struct lac__held *held)
{
	return held->file;
}

void lac__held_wrote(struct lac__held *held)
{
	lac__syncer_wrote(held->syncer);
}

bool lac__held_dirty(struct lac__held *held)
{
	return lac__syncer_dirty(held->syncer);
}

static int sync_failure(struct lac__held *e, struct lac_error *err)
{
	return lac__error_sys(err, lac__syncer_failure(e->syncer), "sync %s", e->path);
}

int lac__held_sync(struct lac__held *held, struct lac_error *err)
{
	int rc = lac__syncer_sync(held->syncer, held->file);

	return rc < 0 ? sync_failure(held, err) : 0;
}

/* The dirty entries below prefix, each pinned, in a list that the caller frees. Those that failed
   earlier are not in it; the first such failure is returned. */
static int pin_dirty(struct lac__files *files, const char *prefix, struct lac__held ***ret,
	size_t *ret_count, struct lac_error *err)
{
	size_t length = strlen(prefix), count = 0;
	struct lac__held **list = calloc(files->entries + 1, sizeof(struct lac__held *));
	int rc = 0;

	if (!list)
		return lac__error_nomem(err);
	for (size_t i = 0; i <= files->bucket_mask; i++) {
		for (struct lac__held *e = files->buckets[i]; e; e = e->bucket_next) {
			if (strncmp(e->path, prefix, length) != 0)
				continue;
			if (failed(e) && rc == 0)
				rc = sync_failure(e, err);
			if (failed(e) || !lac__syncer_dirty(e->syncer))
				continue;
			assert(!e->busy);
			pin(e);
			list[count++] = e;
		}
	}
	*ret = list;
	*ret_count = count;
	return rc;
}

int lac__files_sync(struct lac__files *files, const char *prefix, struct lac_error *err)
{
	struct lac__held **list = NULL;
	size_t count = 0;

	pthread_mutex_lock(&files->mutex);
	int rc = pin_dirty(files, prefix, &list, &count, err);
	/* A failure of one file is no reason to leave the others at risk. */
	for (size_t i = 0; i < count; i++) {
		pthread_mutex_unlock(&files->mutex);
		int synced = lac__held_sync(list[i], rc == 0 ? err : NULL);
		pthread_mutex_lock(&files->mutex);
		if (rc == 0)
			rc = synced;
		unpin(list[i]);
	}
	keep_limit(files, false);
	pthread_mutex_unlock(&files->mutex);
	free(list);
	return rc;
}

void lac__files_forget(struct lac__files *files, const char *path)
{
	pthread_mutex_lock(&files->mutex);
	struct lac__held *e = find_settled(files, path);
	if (e) {
		/* Held for the moment, so that the last release, ours perhaps, does the closing. */
		pin(e);
		table_remove(e);
		e->forgotten = true;
		unpin(e);
	}
	pthread_mutex_unlock(&files->mutex);
}

void lac__files_stats(struct lac__files *files, struct lac__files_stats *ret)
{
	pthread_mutex_lock(&files->mutex);
	*ret = files->stats;
	for (size_t i = 0; i <= files->bucket_mask; i++) {
		for (struct lac__held *e = files->buckets[i]; e; e = e->bucket_next)
			ret->syncs += lac__syncer_calls(e->syncer);
	}
	pthread_mutex_unlock(&files->mutex);
}
