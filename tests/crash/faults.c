/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/crash/faults.c - one fault a run, at every n-th call of its kind, and then a crash.
 *
 * strict: the fault is reported by the call that it strikes (a failed sync, an errno). Whatever
 *         becomes of the handle, a restart finds all that was acknowledged (P1, P2, P5).
 * tolerant: the fault says nothing (a lost or misdirected write, a stale read). Nobody can promise
 *         the data then; but no wrong byte is ever returned (P4), and what is lost is told.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/blocks.h"
#include "crash/harness.h"
#include "store/internal.h"

struct kind {
	const char *name;
	enum lac__sim_op op;
	enum lac__sim_fault fault;
	int64_t value;
	const char *prefix;
	bool forever, tolerant, poisons;
	unsigned kills;	     /* second crashes after a kill; 0 = 1 */
	bool leaks;	     /* what was not cut off is never looked at again */
	bool absent_is_told; /* what is lost by it can't always be told */
};

static const struct kind kinds[] = {
	{.name = "sync reverts",
		.op = LAC__SIM_SYNC,
		.fault = LAC__SIM_SYNC_REVERT,
		.poisons = true},
	{.name = "sync fails, landed",
		.op = LAC__SIM_SYNC,
		.fault = LAC__SIM_SYNC_LANDED,
		.poisons = true},
	{.name = "sync fails, half landed",
		.op = LAC__SIM_SYNC,
		.fault = LAC__SIM_SYNC_HALF,
		.poisons = true},
	{.name = "syncs revert",
		.op = LAC__SIM_SYNC,
		.fault = LAC__SIM_SYNC_REVERT,
		.poisons = true,
		.forever = true},
	{.name = "sync of super reverts",
		.op = LAC__SIM_SYNC,
		.fault = LAC__SIM_SYNC_REVERT,
		.prefix = "super",
		.poisons = true,
		.kills = 30},
	{.name = "sync of journal reverts",
		.op = LAC__SIM_SYNC,
		.fault = LAC__SIM_SYNC_REVERT,
		.prefix = "journal/",
		.poisons = true,
		.kills = 4},
	/* Where a directory's sync really fails the filesystem shuts down; the names stay unsynced.
	 */
	{.name = "sync of a directory",
		.op = LAC__SIM_SYNC_DIR,
		.fault = LAC__SIM_ERRNO,
		.value = EIO},
	{.name = "write EIO", .op = LAC__SIM_WRITE, .fault = LAC__SIM_ERRNO, .value = EIO},
	{.name = "writes ENOSPC",
		.op = LAC__SIM_WRITE,
		.fault = LAC__SIM_ERRNO,
		.value = ENOSPC,
		.forever = true},
	{.name = "short write", .op = LAC__SIM_WRITE, .fault = LAC__SIM_SHORT, .value = 511},
	{.name = "allocate ENOSPC",
		.op = LAC__SIM_ALLOCATE,
		.fault = LAC__SIM_ERRNO,
		.value = ENOSPC},
	{.name = "allocates ENOSPC",
		.op = LAC__SIM_ALLOCATE,
		.fault = LAC__SIM_ERRNO,
		.value = ENOSPC,
		.forever = true},
	{.name = "punches EIO",
		.op = LAC__SIM_PUNCH,
		.fault = LAC__SIM_ERRNO,
		.value = EIO,
		.forever = true},
	{.name = "truncate EIO",
		.op = LAC__SIM_TRUNCATE,
		.fault = LAC__SIM_ERRNO,
		.value = EIO,
		.leaks = true},
	{.name = "rename EIO", .op = LAC__SIM_RENAME, .fault = LAC__SIM_ERRNO, .value = EIO},
	{.name = "unlink EIO", .op = LAC__SIM_UNLINK, .fault = LAC__SIM_ERRNO, .value = EIO},
	{.name = "open EMFILE", .op = LAC__SIM_OPEN, .fault = LAC__SIM_ERRNO, .value = EMFILE},
	{.name = "opens EMFILE",
		.op = LAC__SIM_OPEN,
		.fault = LAC__SIM_ERRNO,
		.value = EMFILE,
		.forever = true},
	{.name = "read EIO", .op = LAC__SIM_READ, .fault = LAC__SIM_ERRNO, .value = EIO},
	{.name = "short read", .op = LAC__SIM_READ, .fault = LAC__SIM_SHORT, .value = 100},
	{.name = "close EIO", .op = LAC__SIM_CLOSE, .fault = LAC__SIM_ERRNO, .value = EIO},
	{.name = "lost write of a page",
		.op = LAC__SIM_WRITE,
		.fault = LAC__SIM_LOST,
		.prefix = "index/",
		.tolerant = true},
	{.name = "lost write of a map",
		.op = LAC__SIM_WRITE,
		.fault = LAC__SIM_LOST,
		.prefix = "space/",
		.tolerant = true},
	{.name = "lost write of data",
		.op = LAC__SIM_WRITE,
		.fault = LAC__SIM_LOST,
		.prefix = "data/",
		.tolerant = true},
	{.name = "lost write of super",
		.op = LAC__SIM_WRITE,
		.fault = LAC__SIM_LOST,
		.prefix = "super",
		.tolerant = true},
	{.name = "lost write of journal",
		.op = LAC__SIM_WRITE,
		.fault = LAC__SIM_LOST,
		.prefix = "journal/",
		.tolerant = true,
		.absent_is_told = true},
	{.name = "misdirected page",
		.op = LAC__SIM_WRITE,
		.fault = LAC__SIM_MISDIRECT,
		.value = 4096,
		.prefix = "index/",
		.tolerant = true},
	{.name = "misdirected data",
		.op = LAC__SIM_WRITE,
		.fault = LAC__SIM_MISDIRECT,
		.value = 4096,
		.prefix = "data/",
		.tolerant = true},
	{.name = "data misdirected far",
		.op = LAC__SIM_WRITE,
		.fault = LAC__SIM_MISDIRECT,
		.value = -8192,
		.prefix = "data/",
		.tolerant = true},
	{.name = "misdirected journal",
		.op = LAC__SIM_WRITE,
		.fault = LAC__SIM_MISDIRECT,
		.value = 4096,
		.prefix = "journal/",
		.tolerant = true,
		.absent_is_told = true},
	{.name = "stale read",
		.op = LAC__SIM_READ,
		.fault = LAC__SIM_STALE,
		.tolerant = true,
		.absent_is_told = true},
};

static void crash_and_check(struct world *w, enum lac__sim_crash_mode mode, uint64_t seed)
{
	/* The number differs from fault to fault, and with it the second crash. */
	struct crash crash = {
		.number = (UINT64_C(1) << 41) + w->run->states, .mode = mode, .seed = seed};

	state_check(w, &crash);
}

/* The handle after a fault: reads go on; after a failed sync nothing is written any more (P5). */
static void verify_handle(struct world *w, const struct kind *kind)
{
	struct model before = w->model;
	struct lac_error err = {0};
	struct lac_txn *txn;
	uint64_t id;
	int rc;

	if (!w->store)
		return;
	/* What it shows of an unfinished commit says nothing about what a crash would leave. */
	model_copy(&w->model, &before);
	verify_blocks(w, "the handle after the fault", kind->tolerant);
	model_free(&w->model);
	w->model = before;
	if (!kind->poisons || !w->stopped)
		return;
	rc = lac_txn_begin(w->store, &txn, &err);
	if (rc == 0) {
		rc = lac_txn_put(txn, "x", 1, 0, &id, &err);
		if (rc == 0)
			rc = lac_txn_commit(txn, NULL, &err);
		else
			lac_txn_abort(txn);
	}
	if (rc == 0)
		failed(w, "a handle writes on after a failed sync", NULL);
	else if (err.message[0] == '\0')
		failed(w, "no cause is told", NULL);
}

static void after_fault(struct world *w, const struct kind *kind, uint64_t seed)
{
	lac__sim_heal(w->be);
	lac__sim_on_change(w->be, NULL, NULL);
	w->faulty = false;
	verify_handle(w, kind);
	for (unsigned i = 0; i == 0 || i < kind->kills; i++)
		crash_and_check(w, LAC__SIM_KILL, i);
	crash_and_check(w, LAC__SIM_DROP_ALL, 0);
	crash_and_check(w, LAC__SIM_KEEP_ALL, 0);
	crash_and_check(w, LAC__SIM_SEEDED, seed);
}

static void arm(struct world *w, const struct kind *kind, uint64_t n)
{
	w->faulty = true;
	w->absent_is_told = kind->absent_is_told;
	lac__sim_arm(w->be, kind->op, kind->prefix, n, kind->forever, kind->fault, kind->value);
}

/* Runs the workload with the fault at the n-th call. */
static void run_one(struct run *run, const struct kind *kind, uint64_t n)
{
	struct world w;

	snprintf(run->context, sizeof run->context, "%s, call %llu", kind->name,
		(unsigned long long)n);
	run->tolerant = kind->tolerant;
	run->leaks = kind->leaks;
	world_make(&w, run);
	if (!w.stopped) {
		arm(&w, kind, n);
		run->workload->run(&w);
		if (lac__sim_struck(w.be) > 0)
			after_fault(&w, kind, n);
	}
	world_free(&w);
}

/* A crash at change `at`, then the fault at the n-th call of recovery and what follows, then a
 * crash. */
static void run_recovery(struct run *run, const struct kind *kind, uint64_t at, uint64_t n)
{
	struct world w;

	snprintf(run->context, sizeof run->context, "crash at %llu, then %s, call %llu",
		(unsigned long long)at, kind->name, (unsigned long long)n);
	run->tolerant = false;
	run->leaks = kind->leaks;
	world_make(&w, run);
	if (!w.stopped) {
		world_watch(&w);
		w.grab_mode = LAC__SIM_SEEDED;
		world_grab(&w, at);
		run->workload->run(&w);
	}
	if (world_grabbed_unopened(&w)) {
		struct lac_error err = {0};

		arm(&w, kind, n);
		if (world_open(&w, &err) == 0)
			work_on(&w);
		if (lac__sim_struck(w.be) > 0)
			after_fault(&w, kind, n);
	}
	world_free(&w);
}

static bool strikes(struct run *run, const struct kind *kind, uint64_t n)
{
	struct world w;
	bool struck = false;

	world_make(&w, run);
	if (!w.stopped) {
		arm(&w, kind, n);
		run->workload->run(&w);
		struck = lac__sim_struck(w.be) > 0;
	}
	world_free(&w);
	return struck;
}

/* About the number of calls of the kind that the workload makes; at most twice as many. */
static uint64_t count_calls(struct run *run, const struct kind *kind)
{
	struct kind once = *kind;
	uint64_t n = 1;

	/* A harmless fault, so that the workload goes on. */
	once.fault = kind->op == LAC__SIM_READ || kind->op == LAC__SIM_WRITE ? LAC__SIM_SHORT
									     : kind->fault;
	if (once.fault == LAC__SIM_SHORT)
		once.value = 512;
	run->context[0] = '\0';
	while (n < 4096 && strikes(run, &once, n))
		n *= 2;
	return n;
}

void faults_run(struct run *run, uint64_t limit)
{
	size_t count = sizeof kinds / sizeof *kinds;
	uint64_t each = limit / count / 6 + 1; /* four states a run, and some of second crashes */
	uint64_t changes = run->changes, random = run->seed;

	run->seeded = 0;
	run->counting = true; /* the hook only counts */
	for (size_t k = 0; k < count && run->failures < run->max_failures; k++) {
		uint64_t calls = count_calls(run, &kinds[k]);
		uint64_t step = calls / each + 1;

		for (uint64_t n = run->seed % step; n < calls; n += step)
			if (run->failures < run->max_failures)
				run_one(run, &kinds[k], n);
		for (uint64_t i = 0; i < each && !kinds[k].tolerant; i++)
			if (run->failures < run->max_failures)
				run_recovery(run, &kinds[k], test_random(&random) % changes,
					test_random(&random) % 40);
	}
	run->changes = changes;
	run->context[0] = '\0';
	run->tolerant = run->leaks = false;
	run->counting = false;
}
