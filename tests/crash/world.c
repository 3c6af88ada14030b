/* SPDX-License-Identifier: Apache-2.0 */
/* tests/crash/world.c - a store on a lying backend, and operations that keep its model up to date.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/blocks.h"
#include "crash/harness.h"
#include "store/internal.h"

static uint64_t uuid_seed;

/* A store's uuid decides its checksums; with this one every run writes the same bytes. */
ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
	test_fill(buffer, length, uuid_seed);
	return (ssize_t)length;
}

/* One for each call: crash states are made, and worked on, in the middle of it. */
static uint8_t *make_bytes(uint64_t length, uint64_t content)
{
	uint8_t *bytes = malloc(length + 1);

	if (!bytes)
		abort();
	test_fill(bytes, length, content);
	return bytes;
}

uint64_t world_random(struct world *w, uint64_t below)
{
	return test_random(&w->random) % below;
}

struct lac_open_options world_options(struct world *w)
{
	const struct workload *l = w->run->workload;

	return (struct lac_open_options){.size = sizeof(struct lac_open_options),
		.no_background = true,
		.backend = w->be,
		.memory_bytes = 1 << 20,
		.journal_buffered = l->buffered,
		.journal_whole_pages = l->whole_pages};
}

int world_open(struct world *w, struct lac_error *err)
{
	struct lac_open_options options = world_options(w);

	return lac_store_open("sim", &options, &w->store, err);
}

void world_abandon(struct world *w)
{
	struct lac_store *s = w->store;

	if (!s)
		return;
	lac__sim_on_change(w->be, NULL, NULL);
	lac__journal_poison(s->journal, -EIO, &(struct lac_error){.message = "crashed"});
	lac_store_close(s, NULL);
	w->store = NULL;
}

void world_watch(struct world *w)
{
	lac__sim_on_change(w->be, states_at, w);
}

void world_make(struct world *w, struct run *run)
{
	const struct workload *l = run->workload;
	struct lac__sim_options sim = {.physical_sector_bytes = l->sector_bytes,
		.block_bytes = l->block_bytes,
		.copy_on_write = l->copy_on_write,
		.filesystem_id = 1};
	struct lac_create_options create = {.size = sizeof create,
		.inline_max_bytes = l->inline_bytes ? l->inline_bytes : 4096,
		.segment_bytes = l->segment_bytes ? l->segment_bytes : 64 << 10,
		.granule_bytes = l->granule_bytes,
		.container_bytes = l->container_bytes ? l->container_bytes : 128 << 10};
	struct lac_error err = {0};

	memset(w, 0, sizeof *w);
	w->run = run;
	w->random = run->seed;
	w->content = run->seed;
	w->nested_at = UINT64_MAX;
	uuid_seed = run->seed;
	pthread_mutex_init(&w->lock, NULL);
	model_txn(&w->model);
	if (lac__sim_new(&sim, &w->be) < 0)
		abort();
	w->creating = true;
	if (l->watch_create)
		world_watch(w);
	if (lac__store_create_on(w->be, &create, &err) < 0) {
		failed(w, "create", &err);
		w->stopped = true;
		return;
	}
	w->creating = false;
	if (l->capacity_bytes)
		lac__sim_set_capacity(w->be, lac__sim_used_bytes(w->be) + l->capacity_bytes);
	if (world_open(w, &err) < 0) {
		failed(w, "first open", &err);
		w->stopped = true;
	}
}

void world_free(struct world *w)
{
	world_abandon(w);
	lac__sim_free(w->be);
	if (w->grabbed)
		lac__sim_free(w->grabbed);
	model_free(&w->model);
	model_free(&w->grabbed_model);
	pthread_mutex_destroy(&w->lock);
}

/* The end of an operation that failed: a failure of the test, or what the armed fault wanted. */
int world_failed(struct world *w, const char *what, int rc, const struct lac_error *err)
{
	w->stop_code = rc;
	if (rc == -ENOSPC && w->run->workload->capacity_bytes && w->store)
		return rc;
	w->stopped = true;
	if (!w->faulty && !told(w, rc))
		failed(w, what, err);
	return rc;
}

static void set_fate(struct world *w, size_t txn, enum fate fate)
{
	pthread_mutex_lock(&w->lock);
	w->model.fates[txn] = (uint8_t)fate;
	pthread_mutex_unlock(&w->lock);
}

bool txn_begin(struct world *w, struct txn *t)
{
	struct lac_error err = {0};
	int rc;

	memset(t, 0, sizeof *t);
	if (w->stopped)
		return false;
	rc = lac_txn_begin(w->store, &t->txn, &err);
	if (rc < 0) {
		world_failed(w, "begin", rc, &err);
		return false;
	}
	pthread_mutex_lock(&w->lock);
	t->number = model_txn(&w->model);
	pthread_mutex_unlock(&w->lock);
	return true;
}

static void learn_put(
	struct world *w, const struct txn *t, uint64_t id, uint64_t length, uint64_t content)
{
	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->model.count; i++)
		if (w->model.blocks[i].id == id)
			failed(w, "an id was given out twice", NULL);
	if (id <= w->id_floor)
		failed(w, "an id at or below one that was known before", NULL);
	model_put(&w->model, t->number, id, length, content);
	pthread_mutex_unlock(&w->lock);
}

static uint64_t next_content(struct world *w)
{
	uint64_t content;

	pthread_mutex_lock(&w->lock);
	content = w->content++ * UINT64_C(0x9E3779B97F4A7C15) + w->depth;
	pthread_mutex_unlock(&w->lock);
	return content;
}

bool txn_put(struct world *w, struct txn *t, uint64_t length)
{
	uint64_t id = 0, content = next_content(w);
	uint8_t *bytes = make_bytes(length, content);
	struct lac_error err = {0};
	int rc = lac_txn_put(t->txn, bytes, length, length % 3, &id, &err);

	free(bytes);
	if (rc < 0) {
		world_failed(w, "put", rc, &err);
		return false;
	}
	learn_put(w, t, id, length, content);
	return true;
}

static int write_pieces(struct lac_put *put, uint64_t length, size_t piece, uint64_t upto,
	uint64_t content, struct lac_error *err)
{
	uint8_t *bytes = make_bytes(length, content);
	uint64_t at = 0;
	int rc = 0;

	while (rc == 0 && at < length && at < upto) {
		size_t n = length - at < piece ? length - at : piece;

		rc = lac_put_write(put, bytes + at, n, err);
		at += n;
	}
	free(bytes);
	return rc;
}

bool txn_stream(struct world *w, struct txn *t, uint64_t length, size_t piece, uint64_t upto)
{
	uint64_t id = 0, content = next_content(w);
	struct lac_error err = {0};
	struct lac_put *put;
	int rc = lac_put_begin(t->txn, length, length % 3, &put, &err);

	if (rc < 0) {
		world_failed(w, "put_begin", rc, &err);
		return false;
	}
	rc = write_pieces(put, length, piece, upto, content, &err);
	if (rc < 0 || upto < length) {
		lac_put_abort(put);
		if (rc < 0)
			world_failed(w, "put_write", rc, &err);
		return rc == 0;
	}
	rc = lac_put_finish(put, &id, &err);
	if (rc < 0) {
		world_failed(w, "put_finish", rc, &err);
		return false;
	}
	learn_put(w, t, id, length, content);
	return true;
}

bool txn_delete(struct world *w, struct txn *t, size_t block)
{
	struct lac_error err = {0};
	uint64_t id;
	int rc;

	pthread_mutex_lock(&w->lock);
	id = w->model.blocks[block].id;
	pthread_mutex_unlock(&w->lock);
	rc = lac_txn_delete(t->txn, id, &err);
	if (rc < 0) {
		/* A full disk is no reason (P7). */
		if (rc == -ENOSPC && !w->faulty)
			failed(w, "delete on a full disk", &err);
		world_failed(w, "delete", rc, &err);
		return false;
	}
	if (t->deletes < sizeof t->deleted / sizeof *t->deleted)
		t->deleted[t->deletes++] = block;
	return true;
}

bool txn_commit(struct world *w, struct txn *t)
{
	struct lac_error err = {0};
	bool only_deletes = t->deletes > 0;
	int rc;

	pthread_mutex_lock(&w->lock);
	w->model.fates[t->number] = FATE_COMMITTING;
	for (size_t i = 0; i < t->deletes; i++)
		w->model.blocks[t->deleted[i]].del = t->number;
	for (size_t i = w->model.count; i > 0 && only_deletes; i--)
		only_deletes = w->model.blocks[i - 1].put != t->number;
	pthread_mutex_unlock(&w->lock);
	rc = lac_txn_commit(t->txn, NULL, &err);
	t->txn = NULL;
	if (rc == 0) {
		set_fate(w, t->number, FATE_IN);
		return true;
	}
	if (rc == -ENOSPC && only_deletes && !w->faulty)
		failed(w, "commit of deletes on a full disk", &err);
	/* These are said to leave nothing. */
	if (rc == -ENOSPC || rc == -E2BIG || rc == -ENOMEM) {
		pthread_mutex_lock(&w->lock);
		for (size_t i = 0; i < t->deletes; i++)
			w->model.blocks[t->deleted[i]].del = 0;
		pthread_mutex_unlock(&w->lock);
		set_fate(w, t->number, FATE_OUT);
	}
	world_failed(w, "commit", rc, &err);
	return false;
}

void txn_abort(struct world *w, struct txn *t)
{
	if (!t->txn)
		return;
	set_fate(w, t->number, FATE_OUT);
	lac_txn_abort(t->txn);
	t->txn = NULL;
}

bool world_put_many(struct world *w, const uint64_t *lengths, size_t count)
{
	struct txn t;

	if (!txn_begin(w, &t))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!txn_put(w, &t, lengths[i])) {
			txn_abort(w, &t);
			return false;
		}
	return txn_commit(w, &t);
}

bool world_put(struct world *w, uint64_t length)
{
	return world_put_many(w, &length, 1);
}

bool world_delete(struct world *w, size_t block)
{
	struct txn t;

	if (block == SIZE_MAX || !txn_begin(w, &t))
		return false;
	if (!txn_delete(w, &t, block)) {
		txn_abort(w, &t);
		return false;
	}
	return txn_commit(w, &t);
}

size_t world_pick(struct world *w)
{
	size_t start, found = SIZE_MAX;

	pthread_mutex_lock(&w->lock);
	start = w->model.count ? world_random(w, w->model.count) : 0;
	for (size_t i = 0; i < w->model.count && found == SIZE_MAX; i++) {
		size_t at = (start + i) % w->model.count;

		if (model_expects(&w->model, &w->model.blocks[at]) == PRESENT)
			found = at;
	}
	pthread_mutex_unlock(&w->lock);
	return found;
}

bool world_checkpoint(struct world *w)
{
	struct lac_error err = {0};
	int rc = w->stopped ? -ECANCELED : lac_store_checkpoint(w->store, &err);

	if (rc == -ENOSPC && !w->faulty)
		failed(w, "checkpoint on a full disk", &err);
	if (rc < 0 && !w->stopped)
		world_failed(w, "checkpoint", rc, &err);
	return rc == 0;
}

bool world_reclaim(struct world *w)
{
	struct lac_error err = {0};
	int rc = w->stopped ? -ECANCELED : lac_store_reclaim(w->store, NULL, &err);

	if (rc == -ENOSPC && !w->faulty)
		failed(w, "reclaim on a full disk", &err);
	if (rc < 0 && !w->stopped)
		world_failed(w, "reclaim", rc, &err);
	return rc == 0;
}

bool world_reopen(struct world *w)
{
	struct lac_error err = {0};
	int rc;

	if (w->stopped)
		return false;
	rc = lac_store_close(w->store, &err);
	w->store = NULL;
	if (rc < 0) {
		world_failed(w, "close", rc, &err);
		return false;
	}
	rc = world_open(w, &err);
	if (rc < 0)
		world_failed(w, "reopen", rc, &err);
	return rc == 0;
}

/* Goes on with what a crash left. */
static void replace(struct world *w, struct lac_backend *after)
{
	uint64_t operations = lac__sim_count(w->be, LAC__SIM_OPS);

	w->number_base += operations; /* at least the number of changes, so numbers stay unique */
	world_abandon(w);
	lac__sim_free(w->be);
	w->be = after;
	model_crash(&w->model);
	w->id_floor = w->model.max_exposed;
}

static bool go_on(struct world *w, struct lac_backend *after)
{
	struct lac_error err = {0};
	int rc;

	replace(w, after);
	world_watch(w);
	rc = world_open(w, &err);
	if (rc < 0) {
		world_failed(w, "open after a crash", rc, &err);
		return false;
	}
	verify_blocks(w, "after a crash of the workload", false);
	return true;
}

bool world_crash(struct world *w, enum lac__sim_crash_mode mode, uint64_t seed)
{
	struct lac_backend *after;

	if (w->stopped)
		return false;
	if (lac__sim_crash(w->be, mode, seed, &after) < 0)
		abort();
	return go_on(w, after);
}

void world_grab(struct world *w, uint64_t n)
{
	w->grab_in = n + 1;
}

void world_grab_step(struct world *w)
{
	uint64_t renames = lac__sim_count(w->be, LAC__SIM_RENAME);

	if (w->grab_renames > 0 && renames != w->renames && --w->grab_renames == 0)
		w->grab_in = 1;
	w->renames = renames;
	if (w->grab_in == 0 || --w->grab_in > 0)
		return;
	if (w->grabbed)
		lac__sim_free(w->grabbed);
	model_free(&w->grabbed_model);
	if (lac__sim_crash(w->be, w->grab_mode, world_random(w, 1000), &w->grabbed) < 0)
		abort();
	model_copy(&w->grabbed_model, &w->model);
}

static struct lac_backend *take_grabbed(struct world *w)
{
	struct lac_backend *after = w->grabbed;

	if (!after)
		return NULL;
	w->grabbed = NULL;
	model_free(&w->model);
	w->model = w->grabbed_model;
	memset(&w->grabbed_model, 0, sizeof w->grabbed_model);
	w->stopped = false;
	return after;
}

bool world_grabbed(struct world *w)
{
	struct lac_backend *after = take_grabbed(w);

	return after && go_on(w, after);
}

bool world_grabbed_unopened(struct world *w)
{
	struct lac_backend *after = take_grabbed(w);

	if (after)
		replace(w, after);
	return after != NULL;
}
