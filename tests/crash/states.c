/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/crash/states.c - which crash states are made at a change, and what each has to stand.
 *
 * Each state is checked before anything touches it, opened, compared with the model, worked on,
 * closed, checked and opened again. In some of them another crash strikes while all that goes on,
 * and in some of those a third.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/blocks.h"
#include "crash/harness.h"
#include "store/internal.h"

enum { FEW_ATOMS = 8, NESTED_SPAN = 96, DEPTH_MAX = 3, DIGEST_OF = 16 };

static const char *const mode_names[] = {
	"drop", "keep", "seeded", "prefix", "miss", "only", "kill"};

const char *mode_name(enum lac__sim_crash_mode mode)
{
	return mode_names[mode];
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t state = a * UINT64_C(0xD1342543DE82EF95) + b;

	return test_random(&state);
}

static void print_crash(const struct crash *c)
{
	if (c->parent)
		print_crash(c->parent);
	fprintf(stderr, "%s%llu:%s:%llu", c->parent ? " then " : "", (unsigned long long)c->number,
		mode_name(c->mode), (unsigned long long)c->seed);
}

void failed(struct world *w, const char *what, const struct lac_error *err)
{
	struct run *run = w->run;
	const struct crash *first = w->crash;

	if (run->failures++ >= run->max_failures)
		return;
	fprintf(stderr, "FAILED %s: ", run->workload->name);
	if (w->crash) {
		fprintf(stderr, "crash ");
		print_crash(w->crash);
		fprintf(stderr, ": ");
	}
	fprintf(stderr, "%s%s%s%s%s\n", run->context, run->context[0] ? ": " : "", what,
		err ? ": " : "", err ? err->message : "");
	while (first && first->parent)
		first = first->parent;
	if (first && !run->context[0])
		fprintf(stderr, "  replay: crash_test %s --seed %llu --replay %llu:%s:%llu\n",
			run->workload->name, (unsigned long long)run->seed,
			(unsigned long long)first->number, mode_name(first->mode),
			(unsigned long long)first->seed);
}

/* ---- one state ---- */

static void nested_hook(void *arg, uint64_t number)
{
	struct world *w = arg;

	if (number != w->nested_at || w->run->failures >= w->run->max_failures)
		return;
	w->run->nested++;
	state_check(w, &w->nested);
}

/* Which second (or third) crash comes follows from the first, so that a replay finds it. */
static void plan_nested(struct world *w, const struct crash *c)
{
	static const enum lac__sim_crash_mode modes[] = {LAC__SIM_DROP_ALL, LAC__SIM_KEEP_ALL,
		LAC__SIM_KILL, LAC__SIM_SEEDED, LAC__SIM_SEEDED, LAC__SIM_SEEDED, LAC__SIM_SEEDED,
		LAC__SIM_PREFIX};
	uint64_t random = mix(c->number * 8 + c->mode, c->seed + w->run->seed + w->depth);

	/* A process that trusts what a failed sync left in the cache is found by a second crash
	 * only. */
	if (w->depth >= DEPTH_MAX ||
		(random % 4 != 0 && (c->mode != LAC__SIM_KILL || !w->run->context[0])))
		return;
	w->nested_at = random / 8 % 2 ? random / 16 % 12 : random / 16 % NESTED_SPAN;
	w->nested = (struct crash){.parent = c,
		.number = w->nested_at,
		.mode = modes[random / 4096 % 8],
		.seed = random / 65536 % 1000};
	if (w->nested.mode == LAC__SIM_PREFIX)
		w->nested.seed %= 16;
	lac__sim_on_change(w->be, nested_hook, w);
}

void work_on(struct world *w)
{
	size_t victim;

	world_put(w, 100 + world_random(w, 3000));
	world_put(w, 5000 + world_random(w, 12000));
	if (w->stopped)
		return;
	victim = world_pick(w);
	if (victim != SIZE_MAX)
		world_delete(w, victim);
	world_checkpoint(w);
	world_reclaim(w);
	if (!w->stopped && !w->faulty)
		verify_space(w);
}

static bool open_state(struct world *w, const char *when)
{
	struct lac_error err = {0};
	int rc = world_open(w, &err);

	if (rc == 0) {
		w->creating = false;
		return true;
	}
	if (w->creating && rc == -ENOENT && err.reason == LAC_REASON_NOT_A_STORE)
		return false;
	if (!told(w, rc))
		failed(w, when, &err);
	else
		w->run->told++;
	return false;
}

static void close_state(struct world *w)
{
	struct lac_error err = {0};

	if (lac_store_close(w->store, &err) < 0)
		failed(w, "close", &err);
	w->store = NULL;
}

/* Damage was planted before: all that is asked for is that nothing is silently wrong. */
static void check_tolerant(struct world *w)
{
	bool lost = verify_check(w, "check") > 0 || w->absent_is_told;

	if (!open_state(w, "open"))
		return;
	verify_blocks(w, "after damage", lost);
	world_abandon(w);
}

static void check_strict(struct world *w, const struct crash *c)
{
	bool compare = (c->number + c->seed) % DIGEST_OF == 0;
	uint64_t digest = compare ? lac__sim_digest(w->be) : 0;

	if (!w->creating)
		verify_check(w, "check before recovery");
	if (compare && lac__sim_digest(w->be) != digest)
		failed(w, "check changed something", NULL);
	plan_nested(w, c);
	if (!open_state(w, "open"))
		return;
	verify_blocks(w, "after recovery", false);
	work_on(w);
	if (w->stopped)
		return;
	verify_blocks(w, "after work", false);
	close_state(w);
	verify_check(w, "check after work");
	if (open_state(w, "open again"))
		verify_blocks(w, "after reopening", false);
}

void state_check(struct world *from, struct crash *crash)
{
	struct world w = {.run = from->run,
		.crash = crash,
		.creating = from->creating,
		.absent_is_told = from->absent_is_told,
		.depth = from->depth + 1,
		.nested_at = UINT64_MAX};

	w.run->states++;
	if (w.run->verbose) {
		fprintf(stderr, "state ");
		print_crash(crash);
		fprintf(stderr, "\n");
	}
	pthread_mutex_init(&w.lock, NULL);
	model_copy(&w.model, &from->model);
	model_crash(&w.model);
	w.id_floor = w.model.max_exposed;
	w.random = mix(crash->number, crash->seed + crash->mode);
	w.content = mix(w.random, 1);
	if (lac__sim_crash(from->be, crash->mode, crash->seed, &w.be) < 0)
		abort();
	if (w.run->tolerant)
		check_tolerant(&w);
	else
		check_strict(&w, crash);
	world_free(&w);
}

/* ---- all states of a moment ---- */

static void candidate(
	struct world *w, uint64_t number, enum lac__sim_crash_mode mode, uint64_t seed)
{
	struct run *run = w->run;
	struct crash crash = {.number = number, .mode = mode, .seed = seed};

	if (run->counting) {
		run->candidates++;
		return;
	}
	if (run->failures >= run->max_failures)
		return;
	if (run->only) {
		if (run->only->number != number || run->only->mode != mode ||
			run->only->seed != seed)
			return;
	} else if (run->share < 1 &&
		   (double)(mix(number * 8 + mode, seed ^ run->seed) >> 11) * 0x1p-53 >=
			   run->share) {
		return;
	}
	state_check(w, &crash);
}

static void every_choice(struct world *w, uint64_t number, uint64_t atoms)
{
	if (atoms > 1)
		for (uint64_t i = 1; i < atoms; i++)
			candidate(w, number, LAC__SIM_PREFIX, i);
	for (uint64_t i = 0; i < atoms && atoms > 2; i++) {
		candidate(w, number, LAC__SIM_MISS_ONE, i);
		candidate(w, number, LAC__SIM_ONLY_ONE, i);
	}
	if (atoms == 2)
		candidate(w, number, LAC__SIM_ONLY_ONE, 1);
}

static void some_choices(struct world *w, uint64_t number, uint64_t atoms)
{
	for (uint64_t i = 0; i < 3; i++) {
		candidate(w, number, LAC__SIM_PREFIX, mix(number, i) % atoms);
		candidate(w, number, LAC__SIM_MISS_ONE, mix(number, i + 3) % atoms);
		candidate(w, number, LAC__SIM_ONLY_ONE, mix(number, i + 6) % atoms);
	}
	candidate(w, number, LAC__SIM_PREFIX, atoms - 1);
	candidate(w, number, LAC__SIM_MISS_ONE, 0);
}

void states_at(void *arg, uint64_t number)
{
	struct world *w = arg;
	struct run *run = w->run;
	uint64_t atoms;

	pthread_mutex_lock(&w->lock); /* another committer's commits wait, the model stands still */
	world_grab_step(w);
	atoms = lac__sim_unsynced(w->be);
	number += w->number_base;
	run->changes += run->counting;
	candidate(w, number, LAC__SIM_DROP_ALL, 0);
	if (atoms > 0) {
		run->changes_pending += run->counting;
		candidate(w, number, LAC__SIM_KEEP_ALL, 0);
		candidate(w, number, LAC__SIM_KILL, 0);
		if (atoms <= FEW_ATOMS)
			every_choice(w, number, atoms);
		else
			some_choices(w, number, atoms);
		for (uint64_t i = 0; i < run->seeded && !run->counting; i++)
			candidate(w, number, LAC__SIM_SEEDED, i);
	}
	pthread_mutex_unlock(&w->lock);
	/* Without this the threads would rarely meet in the middle of anything. */
	if (run->workload->threads && mix(number, run->counting) % 3 == 0)
		usleep(200);
}
