/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/crash/crash_test.c - the program: which workload, how many states, or one state again.
 *
 *   crash_test NAME|all [--states N] [--quick] [--seed S] [--replay IO:MODE:SEED] [--faults N]
 *              [--no-rule N] [--verbose]
 *   crash_test --list
 *
 * A workload runs twice: first to count the crash states that it offers, then to make a share of
 * them that follows from the seed. The last line tells how many were made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rules.h"
#include "crash/harness.h"

enum { STATES = 5000, FAULTS = 1500, FAILURES_SHOWN = 4 };

struct arguments {
	const char *name;
	uint64_t seed, states, faults;
	const struct crash *only;
	bool verbose;
};

static void run_once(struct run *run)
{
	struct world w;

	world_make(&w, run);
	if (!w.stopped) {
		world_watch(&w);
		run->workload->run(&w);
	}
	if (!w.stopped)
		states_at(&w, UINT64_C(1) << 40); /* after all of it */
	lac__sim_on_change(w.be, NULL, NULL);
	if (w.store && !w.stopped)
		verify_blocks(&w, "at the end", false);
	world_free(&w);
}

/* How many SEEDED states a change, and which share of all, come to about the limit. */
static void plan(struct run *run, uint64_t limit)
{
	uint64_t pending = run->changes_pending ? run->changes_pending : 1;

	run->seeded = limit > run->candidates ? (limit - run->candidates) / pending : 0;
	if (run->seeded < 3)
		run->seeded = 3;
	run->share = (double)limit / (double)(run->candidates + run->seeded * pending);
}

static bool run_workload(const struct workload *workload, const struct arguments *a)
{
	struct run run = {.workload = workload,
		.seed = a->seed,
		.counting = true,
		.verbose = a->verbose,
		.max_failures = FAILURES_SHOWN,
		.only = a->only};
	uint64_t fault_states, slow = workload->slow ? workload->slow : 1;

	run_once(&run);
	run.counting = false;
	plan(&run, a->states / slow);
	if (a->only)
		run.seeded = a->only->mode == LAC__SIM_SEEDED ? a->only->seed + 1 : 0;
	run_once(&run);
	fault_states = run.states;
	if (!a->only && !workload->no_faults && run.failures == 0)
		faults_run(&run, a->faults / slow);
	fault_states = run.states - fault_states;
	printf("%s: %llu states (%llu after faults, %llu of second crashes) at %llu changes, "
	       "%llu failures\n",
		workload->name, (unsigned long long)run.states, (unsigned long long)fault_states,
		(unsigned long long)run.nested, (unsigned long long)run.changes,
		(unsigned long long)run.failures);
	fflush(stdout);
	return run.failures == 0;
}

static bool parse_crash(const char *text, struct crash *ret)
{
	char mode[16];
	unsigned long long number, seed;

	if (sscanf(text, "%llu:%15[a-z]:%llu", &number, mode, &seed) != 3)
		return false;
	*ret = (struct crash){.number = number, .seed = seed};
	for (int m = LAC__SIM_DROP_ALL; m <= LAC__SIM_KILL; m++)
		if (strcmp(mode, mode_name((enum lac__sim_crash_mode)m)) == 0) {
			ret->mode = (enum lac__sim_crash_mode)m;
			return true;
		}
	return false;
}

static int usage(void)
{
	fprintf(stderr, "usage: crash_test NAME|all [--states N] [--quick] [--seed S] "
			"[--replay IO:MODE:SEED] [--faults N] [--no-rule N] [--verbose]\n"
			"       crash_test --list\n");
	return 2;
}

static bool parse(int argc, char **argv, struct arguments *a, struct crash *crash)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--quick") == 0) {
			a->states /= 10;
			a->faults /= 10;
			continue;
		}
		if (strcmp(argv[i], "--verbose") == 0) {
			a->verbose = true;
			continue;
		}
		if (argv[i][0] != '-' && !a->name) {
			a->name = argv[i];
			continue;
		}
		if (!value)
			return false;
		i++;
		if (strcmp(argv[i - 1], "--states") == 0)
			a->states = strtoull(value, NULL, 10);
		else if (strcmp(argv[i - 1], "--faults") == 0)
			a->faults = strtoull(value, NULL, 10);
		else if (strcmp(argv[i - 1], "--seed") == 0)
			a->seed = strtoull(value, NULL, 10);
		else if (strcmp(argv[i - 1], "--no-rule") == 0)
			lac__rules_off |= 1u << atoi(value);
		else if (strcmp(argv[i - 1], "--replay") == 0 && parse_crash(value, crash))
			a->only = crash;
		else
			return false;
	}
	return a->name != NULL;
}

int main(int argc, char **argv)
{
	struct arguments a = {.seed = 1, .states = STATES, .faults = FAULTS};
	bool all, good = true, known = false;
	struct crash crash;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < workloads_count; i++)
			puts(workloads[i].name);
		return 0;
	}
	if (!parse(argc, argv, &a, &crash))
		return usage();
	all = strcmp(a.name, "all") == 0;
	for (size_t i = 0; i < workloads_count; i++)
		if (all || strcmp(workloads[i].name, a.name) == 0) {
			known = true;
			good = run_workload(&workloads[i], &a) && good;
		}
	if (!known)
		return usage();
	return good ? 0 : 1;
}
