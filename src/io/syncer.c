/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/syncer.c - one sync in flight per file, its result shared (rule 4.14).
 *
 * The kernel tells a write-back error once per open file: of two threads in fdatasync one gets EIO
 * and the other 0, and the next call gets 0 too although the bytes are gone. So one thread calls at
 * a time, all that wait for it get its result, and the first failure is kept for ever.
 *
 * Time is counted in writes. `wrote` grows after each write returned. A sync covers what `wrote`
 * was before its system call began, and a caller is served once `synced` reaches what `wrote` was
 * when it came. A caller that finds a sync in flight which began before its own write waits for
 * that one and then for the next, which one of those waiting starts for all.
 *
 * Invariants, under `mutex`:
 * S1  synced <= wrote, and neither ever falls.
 * S2  After a failure `synced` does not move: what was dirty stays so.
 * S3  At most one thread is between setting and clearing `running`.
 */
#include "base/rules.h"
#include "io/syncer.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct lac__syncer {
	atomic_uint_fast64_t
		wrote; /* added to without the mutex: it is on the path of each write */
	atomic_uint_fast64_t synced;
	atomic_int failure;

	pthread_mutex_t mutex;
	pthread_cond_t done; /* running fell */
	bool running;
	uint64_t calls;
};

int lac__syncer_new(struct lac__syncer **ret)
{
	struct lac__syncer *s = calloc(1, sizeof(*s));
	int rc = -ENOMEM;

	if (!s)
		goto out;
	rc = -pthread_mutex_init(&s->mutex, NULL);
	if (rc < 0)
		goto out;
	rc = -pthread_cond_init(&s->done, NULL);
	if (rc < 0) {
		pthread_mutex_destroy(&s->mutex);
		goto out;
	}
	*ret = s;
	s = NULL;
out:
	free(s);
	return rc;
}

void lac__syncer_free(struct lac__syncer *s)
{
	if (!s)
		return;
	assert(!s->running);
	pthread_cond_destroy(&s->done);
	pthread_mutex_destroy(&s->mutex);
	free(s);
}

void lac__syncer_wrote(struct lac__syncer *s)
{
	atomic_fetch_add(&s->wrote, 1);
}

bool lac__syncer_dirty(struct lac__syncer *s)
{
	/* In this order: `synced` can't pass the `wrote` that is read after it. */
	uint64_t synced = atomic_load(&s->synced);

	return synced != atomic_load(&s->wrote);
}

void lac__syncer_fail(struct lac__syncer *s, int code)
{
	int none = 0;

	assert(code < 0);
	atomic_compare_exchange_strong(&s->failure, &none, code);
}

int lac__syncer_failure(struct lac__syncer *s)
{
	return atomic_load(&s->failure);
}

uint64_t lac__syncer_calls(struct lac__syncer *s)
{
	pthread_mutex_lock(&s->mutex);
	uint64_t calls = s->calls;
	pthread_mutex_unlock(&s->mutex);
	return calls;
}

/* The mutex is held, nobody syncs: does so, and gives the mutex up meanwhile. */
static void sync_once(struct lac__syncer *s, struct lac_file *file)
{
	/* Before this load a write belongs to this sync, after it to the next one. */
	uint64_t covered = atomic_load(&s->wrote);

	assert(!s->running && atomic_load(&s->synced) <= covered);
	s->running = true;
	s->calls++;
	pthread_mutex_unlock(&s->mutex);

	int rc = lac__sync(file);

	pthread_mutex_lock(&s->mutex);
	s->running = false;
	if (rc < 0 && lac__rule(LAC__RULE_SYNC_FAILURE))
		lac__syncer_fail(s, rc);
	else if (lac__syncer_failure(s) == 0)
		atomic_store(&s->synced, covered);
	pthread_cond_broadcast(&s->done);
}

int lac__syncer_sync(struct lac__syncer *s, struct lac_file *file)
{
	uint64_t want = atomic_load(&s->wrote);

	pthread_mutex_lock(&s->mutex);
	while (lac__syncer_failure(s) == 0 && atomic_load(&s->synced) < want) {
		if (s->running)
			pthread_cond_wait(&s->done, &s->mutex);
		else
			sync_once(s, file);
	}
	int rc = lac__syncer_failure(s);
	pthread_mutex_unlock(&s->mutex);
	return rc;
}
