/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/crash/workloads.c - what a store does while the power goes. Each leads to one of the places
 * where order decides; "mixed" and "long" go where nobody thought of.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crash/harness.h"

#define KIB UINT64_C(1024)

static void small_commits(struct world *w)
{
	for (unsigned i = 0; i < 8; i++)
		world_put(w, 200 + i * 431);
	world_put_many(w, (const uint64_t[]){300, 1500}, 2);
	world_put(w, 4096);
}

static void large_commits(struct world *w)
{
	world_put(w, 5000);
	world_put(w, 20000);
	world_put_many(w, (const uint64_t[]){300, 3000, 9000, 70000}, 4);
	world_put(w, 66 * KIB);
	world_put_many(w, (const uint64_t[]){4000, 50, 8192, 0, 4096}, 5);
}

static void streams(struct world *w)
{
	struct txn t;

	if (txn_begin(w, &t)) {
		if (txn_stream(w, &t, 1100 * KIB, 300 * KIB, UINT64_MAX) && txn_put(w, &t, 777))
			txn_commit(w, &t);
		else
			txn_abort(w, &t);
	}
	world_put(w, 100);
	if (txn_begin(w, &t)) {
		if (txn_stream(w, &t, 3000, 1000, UINT64_MAX) &&
			txn_stream(w, &t, 1030 * KIB, 1030 * KIB, UINT64_MAX))
			txn_commit(w, &t);
		else
			txn_abort(w, &t);
	}
}

static void mixed(struct world *w)
{
	for (unsigned i = 0; i < 24; i++) {
		uint64_t pick = world_random(w, 10);

		if (pick < 4)
			world_put(w, world_random(w, 4000));
		else if (pick < 6)
			world_put(w, 4100 + world_random(w, 30000));
		else if (pick < 8)
			world_delete(w, world_pick(w));
		else if (pick < 9)
			world_checkpoint(w);
		else
			world_reclaim(w);
	}
}

/* Deletes of small and large blocks, with puts in the same transaction, reopened in between. */
static void deletes(struct world *w)
{
	struct txn t;

	for (unsigned i = 0; i < 6; i++)
		world_put(w, i % 2 ? 700 : 6000);
	world_delete(w, 0);
	world_delete(w, 1);
	if (txn_begin(w, &t)) {
		if (txn_delete(w, &t, 2) && txn_put(w, &t, 900) && txn_delete(w, &t, 3))
			txn_commit(w, &t);
		else
			txn_abort(w, &t);
	}
	world_checkpoint(w);
	if (txn_begin(w, &t)) {
		if (txn_delete(w, &t, 4) && txn_put(w, &t, 9000) && txn_delete(w, &t, 5))
			txn_commit(w, &t);
		else
			txn_abort(w, &t);
	}
	world_delete(w, 6);
}

static void checkpoints(struct world *w)
{
	for (unsigned i = 0; i < 5; i++) {
		world_put(w, 300 + 100 * i);
		if (i == 3)
			world_delete(w, 0);
		world_checkpoint(w);
	}
	world_put(w, 5000);
	world_checkpoint(w);
	world_checkpoint(w);
}

/* Over the end of a journal segment, and over checkpoints that recycle some. */
static void segments(struct world *w)
{
	for (unsigned i = 0; i < 50; i++)
		world_put(w, 3600);
	for (unsigned i = 0; i < 40; i++)
		world_delete(w, i);
	world_reclaim(w);
	for (unsigned i = 0; i < 25; i++)
		world_put(w, 3600);
}

/* Containers are made, filled and sealed, both kinds. */
static void containers(struct world *w)
{
	for (unsigned i = 0; i < 9; i++) {
		world_put(w, 17000);
		world_put(w, 3900);
		world_put(w, 3900);
	}
	world_checkpoint(w);
	for (unsigned i = 0; i < 9; i++)
		world_put(w, 3900);
	world_checkpoint(w);
}

/* Containers become empty and are unlinked. */
static void unlinks(struct world *w)
{
	for (unsigned i = 0; i < 12; i++)
		world_put(w, 16000);
	world_checkpoint(w);
	for (unsigned i = 0; i < 11; i++)
		world_delete(w, i);
	world_reclaim(w);
	world_put(w, 16000);
	world_reclaim(w);
	world_checkpoint(w);
}

/* Blocks whose payload only the journal could bring back die, and their containers go, before any
   checkpoint: redo must not write them again. */
static void redo(struct world *w)
{
	for (unsigned i = 0; i < 20; i++)
		world_put(w, 3600);
	for (unsigned i = 0; i < 19; i++)
		world_delete(w, i);
	world_reclaim(w);
	world_put(w, 2000);
	world_reclaim(w);
}

/* Holes inside, ends cut off, and blocks whose neighbours go. */
static void punches(struct world *w)
{
	for (unsigned i = 0; i < 14; i++)
		world_put(w, i % 3 ? 9000 : 3000);
	for (unsigned i = 0; i < 14; i += 2)
		world_delete(w, i);
	world_reclaim(w);
	world_checkpoint(w);
	for (unsigned i = 9; i < 14; i += 2)
		world_delete(w, i);
	world_reclaim(w);
	world_put(w, 5000);
	world_reclaim(w);
}

/* Until there is no space, then deletes, and again. */
static void full(struct world *w)
{
	size_t before;

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 60 && !w->stopped; i++)
			if (!world_put(w, i % 4 ? 3000 : 14000) && w->stop_code != 0)
				break;
		w->stop_code = 0;
		before = w->model.count;
		for (size_t i = 0; i < before; i += 3)
			if (model_expects(&w->model, &w->model.blocks[i]) == PRESENT)
				world_delete(w, i);
		world_reclaim(w);
		world_checkpoint(w);
	}
}

struct committer {
	struct world *world;
	unsigned first;
};

static void *commit_some(void *arg)
{
	struct committer *c = arg;

	for (unsigned i = 0; i < 6; i++) {
		world_put(c->world, c->first + i * 500);
		if (i % 3 == 2)
			world_put(c->world, 5000 + c->first);
	}
	return NULL;
}

static void two_threads(struct world *w)
{
	struct committer a = {.world = w, .first = 100}, b = {.world = w, .first = 600};
	pthread_t thread;

	if (pthread_create(&thread, NULL, commit_some, &b) != 0)
		abort();
	commit_some(&a);
	world_checkpoint(w);
	pthread_join(thread, NULL);
}

struct reclaimer {
	struct world *world;
	atomic_bool stop;
};

static void *reclaim_some(void *arg)
{
	struct reclaimer *r = arg;

	for (unsigned i = 0; i < 400 && !r->stop; i++) {
		world_reclaim(r->world);
		if (i % 16 == 15)
			world_checkpoint(r->world);
		usleep(50);
	}
	return NULL;
}

/* Reclaim beside blocks that are being placed next to dead ones. */
static void reclaim_beside(struct world *w)
{
	struct reclaimer r = {.world = w};
	pthread_t thread;

	if (pthread_create(&thread, NULL, reclaim_some, &r) != 0)
		abort();
	for (unsigned i = 0; i < 16; i++) {
		world_put(w, 600 + i);
		world_delete(w, world_pick(w));
		world_put(w, 300);
		if (i % 4 == 3)
			world_put(w, 6000);
	}
	r.stop = true;
	pthread_join(thread, NULL);
	world_checkpoint(w);
}

/* A torn tail, appended behind it, and torn again: two generations. */
static void torn_twice(struct world *w)
{
	world_put(w, 3000);
	world_put(w, 3500);
	for (unsigned round = 0; round < 3; round++) {
		struct txn t;

		/* Description, payload, frame; then the sync, before which the power goes. */
		if (!txn_begin(w, &t))
			return;
		txn_put(w, &t, 3900);
		w->grab_mode = LAC__SIM_SEEDED;
		world_grab(w, 3);
		txn_commit(w, &t);
		world_grabbed(w);
		world_put(w, 1000 + round);
		if (round == 1)
			world_reopen(w);
	}
	world_delete(w, 0);
}

/* All ids of index pages die: the pages are retired and punched. */
static void retires(struct world *w)
{
	static const uint64_t lengths[63] = {0};
	struct txn t;

	for (unsigned i = 0; i < 5; i++)
		world_put_many(w, lengths, 63);
	world_checkpoint(w);
	for (unsigned first = 0; first < 252; first += 63) {
		if (!txn_begin(w, &t))
			return;
		for (unsigned i = 0; i < 63; i++)
			txn_delete(w, &t, first + i);
		txn_commit(w, &t);
	}
	world_reclaim(w);
	world_put(w, 100);
	world_reclaim(w);
	world_checkpoint(w);
}

static void aborts(struct world *w)
{
	struct txn t;

	world_put(w, 500);
	if (txn_begin(w, &t)) { /* nothing of it reached a container */
		txn_put(w, &t, 1000);
		txn_put(w, &t, 2000);
		txn_abort(w, &t);
	}
	if (txn_begin(w, &t)) { /* a stream given up in the middle, then the transaction */
		txn_stream(w, &t, 1200 * KIB, 400 * KIB, 1100 * KIB);
		txn_put(w, &t, 9000);
		txn_abort(w, &t);
	}
	world_checkpoint(w); /* nobody waited for what the abort recorded */
	world_put(w, 600);
	if (txn_begin(w, &t)) { /* a stream given up in a transaction that commits */
		txn_stream(w, &t, 1100 * KIB, 400 * KIB, 800 * KIB);
		if (txn_put(w, &t, 3000))
			txn_commit(w, &t);
		else
			txn_abort(w, &t);
	}
	world_reclaim(w);
}

static void zero_length(struct world *w)
{
	world_put(w, 0);
	world_put_many(w, (const uint64_t[]){0, 1, 0, 63, 64, 65, 0}, 7);
	world_checkpoint(w);
	world_put(w, 0);
	world_delete(w, 0);
	world_delete(w, 3);
	world_put_many(w, (const uint64_t[]){0, 5000, 0}, 3);
	world_reclaim(w);
	world_checkpoint(w);
}

/* Blocks so long that they have a chunk table, in the journal. */
static void inline_tables(struct world *w)
{
	world_put(w, 70000);
	world_put_many(w, (const uint64_t[]){66000, 100, 131072}, 3);
	world_delete(w, 0);
	world_checkpoint(w);
	world_put(w, 140000);
	world_reclaim(w);
	world_delete(w, 3);
	world_put(w, 65537);
}

/* Many blocks in a granule; a checkpoint makes what is there depend on the container alone (4.8).
 */
static void packed(struct world *w)
{
	for (unsigned i = 0; i < 5; i++)
		world_put(w, 100 + i);
	world_checkpoint(w);
	for (unsigned i = 0; i < 4; i++)
		world_put(w, 200 + i);
	world_checkpoint(w);
	world_delete(w, 1);
	world_put_many(w, (const uint64_t[]){1000, 1000, 1000, 900}, 4);
	world_put(w, 250);
	world_reclaim(w);
}

/* The high-water mark is raised several times, also by ids that never commit. */
static void ids(struct world *w)
{
	static const uint64_t lengths[50] = {0};
	struct txn t;

	for (unsigned i = 0; i < 3; i++) {
		world_put_many(w, lengths, 50);
		if (txn_begin(w, &t)) {
			for (unsigned n = 0; n < 40; n++)
				txn_put(w, &t, 1);
			txn_abort(w, &t);
		}
	}
	world_reopen(w);
	world_put_many(w, lengths, 50);
	world_checkpoint(w);
	world_put(w, 10);
}

static void reopens(struct world *w)
{
	for (unsigned i = 0; i < 4; i++) {
		world_put(w, 800 * i);
		world_put(w, 4500 + i);
		if (i == 2)
			world_delete(w, 1);
		world_reopen(w);
	}
	world_reopen(w);
	world_put(w, 10);
}

/* Killed and opened again, several times: the cache holds what the disk does not. */
static void kills(struct world *w)
{
	for (unsigned i = 0; i < 5; i++) {
		world_put(w, 900 + i);
		world_put(w, 6000 + i);
		if (i == 3)
			world_checkpoint(w);
		world_crash(w, LAC__SIM_KILL, 0);
		world_delete(w, i);
	}
}

/* Killed between a renaming and its sync: the next process writes to a segment whose name only the
   cache knows, and then the power goes. */
static void killed_renames(struct world *w)
{
	for (unsigned n = 0; n < 8; n++) {
		w->grab_mode = LAC__SIM_KILL;
		w->grab_renames = 1 + n;
		for (unsigned i = 0; i < 60 && !w->grabbed; i++)
			world_put(w, 3600);
		world_grabbed(w);
		for (unsigned i = 0; i < 30; i++)
			world_put(w, 3600);
		w->grab_mode = LAC__SIM_DROP_ALL;
		world_grab(w, 1);
		world_put(w, 100);
		world_grabbed(w);
		for (size_t i = 0; i + 10 < w->model.count; i++)
			if (model_expects(&w->model, &w->model.blocks[i]) == PRESENT)
				world_delete(w, i);
		world_reclaim(w);
	}
}

static void creation(struct world *w)
{
	world_put(w, 100);
}

static void random_txn(struct world *w)
{
	struct txn t;
	bool good;

	if (!txn_begin(w, &t))
		return;
	good = true;
	for (uint64_t n = 1 + world_random(w, 5); n > 0 && good; n--)
		switch (world_random(w, 8)) {
		case 0: good = txn_put(w, &t, 4096 * world_random(w, 8)); break;
		case 1: good = txn_put(w, &t, world_random(w, 80000)); break;
		case 2:
			good = txn_stream(w, &t, 1049000 + world_random(w, 200000), 500000,
				world_random(w, 2) ? UINT64_MAX : 600000);
			break;
		default: good = txn_put(w, &t, world_random(w, 1500));
		}
	for (uint64_t n = world_random(w, 4); n > 0 && good; n--) {
		size_t victim = world_pick(w);
		bool twice = false;

		for (size_t i = 0; i < t.deletes; i++)
			twice = twice || t.deleted[i] == victim;
		if (victim != SIZE_MAX && !twice)
			good = txn_delete(w, &t, victim);
	}
	if (good && world_random(w, 5) > 0)
		txn_commit(w, &t);
	else
		txn_abort(w, &t);
}

/* Anything, in any order; other seeds give other workloads. */
static void anything(struct world *w)
{
	for (unsigned i = 0; i < 40; i++)
		switch (world_random(w, 20)) {
		case 0: world_reopen(w); break;
		case 1: world_crash(w, LAC__SIM_KILL, 0); break;
		case 2: world_crash(w, LAC__SIM_SEEDED, world_random(w, 1000)); break;
		case 3:
		case 4: world_checkpoint(w); break;
		case 5:
		case 6: world_reclaim(w); break;
		case 7:
		case 8:
		case 9: random_txn(w); break;
		case 10:
		case 11:
		case 12:
		case 13: world_delete(w, world_pick(w)); break;
		case 14: world_put(w, 4097 + world_random(w, 30000)); break;
		default: world_put(w, world_random(w, 4200));
		}
}

const struct workload workloads[] = {
	{.name = "small", .run = small_commits},
	{.name = "small-4096", .run = small_commits, .sector_bytes = 4096},
	{.name = "large", .run = large_commits},
	{.name = "streams", .run = streams},
	{.name = "mixed", .run = mixed},
	{.name = "mixed-buffered",
		.run = mixed,
		.buffered = true,
		.whole_pages = true,
		.container_bytes = 64 << 10},
	{.name = "mixed-16k",
		.run = mixed,
		.granule_bytes = 16384,
		.sector_bytes = 4096,
		.container_bytes = 256 << 10},
	{.name = "retires-16k", .run = retires, .block_bytes = 16384, .container_bytes = 256 << 10},
	{.name = "mixed-cow", .run = mixed, .copy_on_write = true},
	{.name = "deletes", .run = deletes},
	{.name = "checkpoints", .run = checkpoints},
	{.name = "segments", .run = segments},
	{.name = "containers", .run = containers, .container_bytes = 64 << 10},
	{.name = "unlinks", .run = unlinks, .container_bytes = 64 << 10},
	{.name = "redo", .run = redo, .container_bytes = 64 << 10},
	{.name = "punches", .run = punches},
	{.name = "punches-unit", .run = punches, .granule_bytes = 4096, .block_bytes = 16384},
	{.name = "full", .run = full, .capacity_bytes = 700 << 10, .container_bytes = 64 << 10},
	{.name = "threads", .run = two_threads, .threads = true, .no_faults = true},
	{.name = "threads-reclaim", .run = reclaim_beside, .threads = true, .no_faults = true},
	{.name = "torn", .run = torn_twice},
	{.name = "retires", .run = retires},
	{.name = "aborts", .run = aborts},
	{.name = "zero", .run = zero_length},
	{.name = "inline",
		.run = inline_tables,
		.inline_bytes = 256 << 10,
		.segment_bytes = 512 << 10,
		.container_bytes = 512 << 10,
		.slow = 8},
	{.name = "packed", .run = packed, .sector_bytes = 4096},
	{.name = "ids", .run = ids},
	{.name = "reopens", .run = reopens},
	{.name = "kills", .run = kills},
	{.name = "killed-renames", .run = killed_renames, .no_faults = true},
	{.name = "anything", .run = anything},
	{.name = "anything-small",
		.run = anything,
		.container_bytes = 64 << 10,
		.sector_bytes = 4096,
		.buffered = true},
	{.name = "anything-full",
		.run = anything,
		.container_bytes = 64 << 10,
		.capacity_bytes = 1500 << 10},
	{.name = "create", .run = creation, .watch_create = true},
};
const size_t workloads_count = sizeof workloads / sizeof *workloads;
