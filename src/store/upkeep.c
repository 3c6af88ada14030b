/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/upkeep.c - the thread that checkpoints and reclaims beside the callers.
 *
 * Woken when a commit finds a checkpoint due; else it looks once a second whether there is
 * enough dead space, and confirms the last journal group when nothing else did (P3).
 */
#include <errno.h>
#include <time.h>

#include "fs/place.h"
#include "store/internal.h"

enum { LOOK_SECONDS = 1, RECLAIM_GRANULES_MIN = 256 };

static bool wait_for_work(struct lac_store *s)
{
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LOOK_SECONDS;
	pthread_mutex_lock(&s->wake_lock);
	while (!s->stop && !s->woken)
		if (pthread_cond_timedwait(&s->wake, &s->wake_lock, &until) == ETIMEDOUT)
			break;
	s->woken = false;
	stop = s->stop;
	pthread_mutex_unlock(&s->wake_lock);
	return !stop;
}

/* The store was moved: try what this filesystem can do. */
static void look_at_place(struct lac_store *s)
{
	struct lac__place place;

	if (!s->place_changed)
		return;
	s->place_changed = false;
	if (lac__place_probe(s->backend, "", &place, NULL) < 0 ||
		!(place.flags & LAC__PLACE_PROBED))
		return;
	s->reclaim_unit_bytes = place.reclaim_unit_bytes;
	s->whole_extents = !(place.flags & LAC__PLACE_PARTIAL);
	s->super.filesystem_type = place.filesystem_type; /* stored by the next checkpoint */
	s->super.filesystem_id = place.filesystem_id;
	s->super.reclaim_unit_bytes = place.reclaim_unit_bytes;
	s->super.place_flags = place.flags;
}

static void do_work(struct lac_store *s)
{
	struct lac_reclaim_result result = {0};
	struct lac_error err;
	int rc = 0;

	if (lac__journal_poisoned(s->journal, NULL) < 0)
		return;
	pthread_mutex_lock(&s->upkeep_lock);
	look_at_place(s);
	if (lac__checkpoint_due(s))
		rc = lac__checkpoint(s, false, &err);
	if (rc == 0 && s->dead_hint >= RECLAIM_GRANULES_MIN) {
		s->reclaim_paced = true;
		rc = lac__reclaim(s, &result, &err);
		s->reclaim_paced = false;
	}
	pthread_mutex_unlock(&s->upkeep_lock);
	if (rc == 0)
		rc = lac__journal_mark(s->journal, &err);
	if (rc < 0)
		lac__store_log(s, LAC_LOG_WARNING, "upkeep: %s", err.message);
}

static void *upkeep_main(void *arg)
{
	struct lac_store *s = arg;

	while (wait_for_work(s))
		do_work(s);
	return NULL;
}

int lac__upkeep_start(struct lac_store *s)
{
	int rc = pthread_create(&s->upkeep_thread, NULL, upkeep_main, s);

	s->upkeep_running = rc == 0;
	return -rc;
}

void lac__upkeep_stop(struct lac_store *s)
{
	if (!s->upkeep_running)
		return;
	pthread_mutex_lock(&s->wake_lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->wake_lock);
	pthread_join(s->upkeep_thread, NULL);
	s->upkeep_running = false;
}

void lac__upkeep_wake(struct lac_store *s)
{
	pthread_mutex_lock(&s->wake_lock);
	s->woken = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->wake_lock);
}
