/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/reclaim.c - the space of deleted blocks goes back to the filesystem.
 *
 * A granule that is DEAD in the space map has no block and never gets one again, so nothing has
 * to be looked up at the time of the punch but: is its DELETE durable (else a power cut could
 * bring the block back over zeros), has every reader left who may still see it, and is it clear
 * of granules that are still being filled (S3). Then punch, sync, and only then the HOLE record:
 * were it first, a crash could lose the punch and nobody would know of the space (rule 4.11).
 *
 * Order of preference: unlink the whole container, truncate its dead end, punch runs of granules.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "store/internal.h"

enum { RUNS_MAX = 1024, PUNCH_BYTES_MAX = 16 << 20 };

struct dead_run {
	uint64_t first, count; /* granules */
};

struct scan {
	struct lac_store *store;
	uint32_t container;
	uint8_t state;	/* granule state that is looked for */
	uint64_t below; /* granules at or above are left alone */
	uint64_t max_lsn;
	struct dead_run runs[RUNS_MAX];
	size_t count;
	uint64_t next; /* granule to go on from */
};

static void add_granule(struct scan *scan, uint64_t granule)
{
	struct dead_run *last = scan->count > 0 ? &scan->runs[scan->count - 1] : NULL;

	if (last && last->first + last->count == granule)
		last->count++;
	else
		scan->runs[scan->count++] = (struct dead_run){.first = granule, .count = 1};
}

/* Collects runs from scan->next on until the array is full or the end is reached. */
static int collect(struct scan *scan, uint64_t end, struct lac_error *err)
{
	struct lac_store *s = scan->store;

	scan->count = 0;
	while (scan->next < end && scan->count < RUNS_MAX) {
		struct lac__page_ref ref = {.kind = LAC__PAGE_MAP,
			.container = scan->container,
			.no = scan->next / LAC__MAP_GRANULES};
		uint64_t base = ref.no * LAC__MAP_GRANULES;
		uint64_t stop = base + LAC__MAP_GRANULES < end ? base + LAC__MAP_GRANULES : end;
		struct lac__cached *cached;
		int rc = lac__pages_get(s->pages, &ref, &cached, err);

		if (rc < 0)
			return rc;
		lac__pages_lock(s->pages);
		if (cached->page.lsn > scan->max_lsn)
			scan->max_lsn = cached->page.lsn;
		for (; scan->next < stop && scan->count < RUNS_MAX; scan->next++)
			if (cached->page.body[scan->next - base] == scan->state)
				add_granule(scan, scan->next);
		lac__pages_unlock(s->pages);
		lac__pages_put(s->pages, cached);
	}
	return 0;
}

/* Only whole units of freeing, seen from the file's start, give space back. */
static void align_runs(struct scan *scan)
{
	struct lac_store *s = scan->store;
	uint64_t unit = s->reclaim_unit_bytes / s->granule_bytes;
	size_t kept = 0;

	if (unit <= 1)
		return;
	for (size_t i = 0; i < scan->count; i++) {
		uint64_t from = (scan->runs[i].first + unit - 1) / unit * unit;
		uint64_t to = (scan->runs[i].first + scan->runs[i].count) / unit * unit;

		if (from < to)
			scan->runs[kept++] = (struct dead_run){.first = from, .count = to - from};
	}
	scan->count = kept;
}

static int record_runs(struct scan *scan, uint32_t type, struct lac_error *err)
{
	struct lac__op *ops = calloc(scan->count, sizeof *ops);
	int rc;

	if (!ops)
		return lac__error_nomem(err);
	for (size_t i = 0; i < scan->count; i++) {
		ops[i].type = type;
		ops[i].container = scan->container;
		ops[i].first = scan->runs[i].first;
		ops[i].count = scan->runs[i].count;
	}
	rc = lac__commit(scan->store, ops, scan->count, LAC__COMMIT_RESERVE, err);
	free(ops);
	return rc;
}

static void pace(struct lac_store *s, uint64_t bytes)
{
	uint64_t rate = s->options.reclaim_bytes_per_second, ns;
	struct timespec wait;

	if (rate == 0 || !s->reclaim_paced)
		return;
	ns = bytes * UINT64_C(1000000000) / rate;
	wait = (struct timespec){
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
	nanosleep(&wait, NULL);
}

static int punch_run(struct lac_store *s, struct lac_file *file, const struct dead_run *run,
	struct lac_reclaim_result *result)
{
	uint64_t at = run->first * s->granule_bytes, end = at + run->count * s->granule_bytes;

	while (at < end) {
		uint64_t bytes = end - at < PUNCH_BYTES_MAX ? end - at : PUNCH_BYTES_MAX;
		int rc = lac__punch(file, at, bytes);

		if (rc < 0)
			return rc;
		result->punches++;
		result->punched_bytes += bytes;
		s->punches++;
		s->punched_bytes += bytes;
		at += bytes;
		pace(s, bytes);
	}
	return 0;
}

/* Frees the runs of scan. A run that reaches the end of a sealed container is cut off. */
static int free_runs(struct scan *scan, const struct lac__table_entry *entry,
	struct lac_reclaim_result *result, struct lac_error *err)
{
	struct lac_store *s = scan->store;
	struct lac__held *held;
	uint64_t end_granule =
		lac__round_up(entry->tail_bytes, s->granule_bytes) / s->granule_bytes;
	int rc = lac__container_hold(s, scan->container, &held, err);

	if (rc < 0)
		return rc;
	/* Punching what is dirty makes XFS write it first, under a lock that readers need. */
	if (lac__held_dirty(held))
		rc = lac__held_sync(held, err);
	if (rc < 0) {
		lac__store_poison(s, rc, err);
		goto out;
	}
	for (size_t i = 0; i < scan->count && rc == 0; i++) {
		const struct dead_run *run = &scan->runs[i];

		if (s->stop) { /* closing does not wait: the books know what is left, also after it
				*/
			scan->count = i;
			break;
		}

		if (entry->state == LAC__CONTAINER_SEALED &&
			run->first + run->count == end_granule) {
			rc = lac__truncate(lac__held_file(held), run->first * s->granule_bytes);
			result->truncated_bytes += rc == 0 ? run->count * s->granule_bytes : 0;
		} else {
			rc = punch_run(s, lac__held_file(held), run, result);
		}
		if (rc < 0) { /* what was freed so far is recorded, the rest waits */
			scan->count = i;
			s->punch_failed = rc;
		}
	}
	lac__held_wrote(held);
	rc = lac__held_sync(held, err);
	if (rc < 0)
		lac__store_poison(s, rc, err);
out:
	lac__files_release(held);
	return rc;
}

static int reclaim_container(struct lac_store *s, uint32_t id, const struct lac__table_entry *entry,
	struct lac_reclaim_result *result, struct lac_error *err)
{
	struct scan *scan = calloc(1, sizeof *scan);
	uint64_t end = lac__round_up(entry->tail_bytes, s->granule_bytes) / s->granule_bytes;
	int rc = 0;

	if (!scan)
		return lac__error_nomem(err);
	scan->store = s;
	scan->container = id;
	scan->state = LAC__GRANULE_DEAD;
	while (rc == 0 && scan->next < end && s->punch_failed == 0 && !s->stop) {
		uint64_t below = lac__container_pinned_from(s, id);

		rc = collect(scan, end < below ? end : below, err);
		if (rc < 0)
			break;
		if (scan->next >= below)
			end = scan->next;
		align_runs(scan);
		if (scan->count == 0)
			continue;
		/* Rule 3.5's order: the DELETE durable, no reader left, punch, sync, HOLE. */
		rc = lac__commit_wait(s, scan->max_lsn, err);
		if (rc < 0)
			break;
		lac__readers_wait(s);
		rc = free_runs(scan, entry, result, err);
		if (rc == 0 && scan->count > 0)
			rc = record_runs(scan, LAC__OP_HOLE, err);
	}
	free(scan);
	return rc;
}

/* RESERVED granules that no transaction of this session owns are what a crash left of large ones.
 */
static int sweep_container(struct lac_store *s, uint32_t id, uint64_t below, struct lac_error *err)
{
	struct scan *scan = calloc(1, sizeof *scan);
	int rc = 0;

	if (!scan)
		return lac__error_nomem(err);
	scan->store = s;
	scan->container = id;
	scan->state = LAC__GRANULE_RESERVED;
	while (rc == 0 && scan->next < below) {
		rc = collect(scan, below, err);
		if (rc == 0 && scan->count > 0)
			rc = record_runs(scan, LAC__OP_RELEASE, err);
	}
	free(scan);
	return rc;
}

int lac__containers_sweep(struct lac_store *s, struct lac_error *err)
{
	for (;;) {
		struct lac__container *c;
		uint64_t below = 0;
		uint32_t id = 0;
		int rc;

		pthread_mutex_lock(&s->containers_lock);
		for (c = s->containers; c && c->swept; c = c->next)
			;
		if (c) {
			id = c->id;
			below = c->swept_below;
		}
		pthread_mutex_unlock(&s->containers_lock);
		if (!c)
			return 0;
		/* Unswept containers are not sealed, so c is still there. */
		rc = sweep_container(s, id, below, err);
		if (rc == 0)
			rc = lac__container_trim(s, c, err);
		if (rc < 0)
			return rc;
		pthread_mutex_lock(&s->containers_lock);
		c->swept = true;
		pthread_mutex_unlock(&s->containers_lock);
	}
}

static int drop_whole(struct lac_store *s, uint32_t id, uint64_t page_lsn,
	struct lac_reclaim_result *result, struct lac_error *err)
{
	struct lac_file_info info = {0};
	char path[LAC__NAME_BYTES];
	int rc = lac__commit_wait(s, page_lsn, err);

	if (rc < 0)
		return rc;
	lac__name_container(id, path);
	s->backend->ops->path_info(s->backend, path, &info);
	rc = lac__container_drop(s, id, err);
	if (rc == 0) {
		result->unlinked++;
		result->unlinked_bytes += info.allocated_bytes;
	}
	return rc;
}

static int reclaim_one(
	struct lac_store *s, uint32_t id, struct lac_reclaim_result *result, struct lac_error *err)
{
	struct lac__table_entry entry;
	uint64_t page_lsn;
	int rc = lac__table_entry_get(s, id, &entry, &page_lsn, err);

	if (rc < 0)
		return rc;
	if (entry.state == LAC__CONTAINER_SEALED && entry.live_blocks == 0) {
		rc = drop_whole(s, id, page_lsn, result, err);
	} else if (entry.dead_granules > 0 &&
		   (entry.state == LAC__CONTAINER_ACTIVE || entry.state == LAC__CONTAINER_SEALED)) {
		rc = reclaim_container(s, id, &entry, result, err);
		if (rc == 0 && lac__table_entry_get(s, id, &entry, NULL, NULL) == 0)
			result->waiting_bytes += entry.dead_granules * s->granule_bytes;
	}
	/* A long reclaim must not keep the checkpoint waiting that commits wait for. */
	if (rc == 0 && lac__checkpoint_due(s))
		rc = lac__checkpoint(s, false, err);
	return rc;
}

int lac__reclaim(struct lac_store *s, struct lac_reclaim_result *result, struct lac_error *err)
{
	uint32_t end;
	int rc = lac__containers_sweep(s, err);

	if (rc == 0)
		rc = lac__containers_tidy(s, err);
	s->dead_hint = 0;
	s->punch_failed = 0;
	pthread_mutex_lock(&s->seq_lock);
	end = s->next_container;
	pthread_mutex_unlock(&s->seq_lock);
	for (uint32_t id = 1; id < end && rc == 0 && !s->stop; id++)
		rc = reclaim_one(s, id, result, err);
	if (s->punch_failed != 0 && !s->punch_refused) {
		s->punch_refused = true; /* once, not once a punch */
		lac__store_log(s, LAC_LOG_WARNING, "punching holes fails (errno %d); space waits",
			-s->punch_failed);
	}
	if (rc == 0)
		rc = lac__retire_pages(s, err);
	return rc;
}

LAC_PUBLIC int lac_store_reclaim(
	struct lac_store *s, struct lac_reclaim_result *ret_result, struct lac_error *err)
{
	struct lac_reclaim_result result = {0};
	int rc = lac__store_usable(s, err);

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&s->upkeep_lock);
	rc = lac__reclaim(s, &result, err);
	if (rc == 0 && s->retired_count > 0) {
		rc = lac__checkpoint(s, false, err);
		if (rc == 0)
			rc = lac__retire_pages(s, err);
	}
	pthread_mutex_unlock(&s->upkeep_lock);
	if (rc < 0)
		lac__error_prepend(err, "reclaim");
	else if (ret_result)
		*ret_result = result;
	return rc;
}
