/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/crash_test.c - a power cut before every change that a run makes, in many ways each: what
 * was acknowledged is there, what is there is an exact prefix, and the verdict is never CORRUPT.
 * Then the journal is opened again on what the crash left, goes on, and crashes again.
 */
#include "journal/testing.h"

#define LSN_MAX 400

/* What the run promised up to now, and what its checkpoint would have stored. */
struct run {
	struct lac_backend *be;
	struct lac__journal_options options;
	uint64_t acked, from_lsn, from_seq;
	unsigned generations[LSN_MAX];
	unsigned generation;
	/* the crashes */
	uint64_t number;
	unsigned seeds, depth;
	void (*after)(const struct run *run, struct lac_backend *crashed);
};

static uint64_t crashes;

static void crash(struct run *run, enum lac__sim_crash_mode mode, uint64_t seed)
{
	struct lac_backend *crashed;

	assert_int_equal(lac__sim_crash(run->be, mode, seed, &crashed), 0);
	crashes++;
	run->after(run, crashed);
	lac__sim_free(crashed);
}

static void before_change(void *arg, uint64_t number)
{
	struct run *run = arg;
	uint64_t atoms = lac__sim_unsynced(run->be);

	run->number = number;
	crash(run, LAC__SIM_DROP_ALL, 0);
	crash(run, LAC__SIM_KEEP_ALL, 0);
	crash(run, LAC__SIM_KILL, 0);
	for (unsigned i = 0; i < run->seeds && atoms > 0; i++)
		crash(run, LAC__SIM_SEEDED, number * 1000 + i);
	for (uint64_t i = 1; i < atoms && i < 4; i++) {
		crash(run, LAC__SIM_PREFIX, i * atoms / 4);
		crash(run, LAC__SIM_MISS_ONE, i);
		crash(run, LAC__SIM_ONLY_ONE, i);
	}
}

/* Commits groups of one to three records, with checkpoints when pressed. */
static void work(struct run *run, struct lac__journal *j, unsigned groups)
{
	struct lac_error err = {0};

	for (unsigned i = 0; i < groups; i++) {
		uint64_t lsn = 0;

		for (unsigned k = 0; k <= (i + run->generation) % 3; k++) {
			size_t length = i == 9 ? 20000 : 16 + (i * 977 + k * 313) % 4000;

			run->generations[lac__journal_next_lsn(j)] = run->generation;
			assert_ok(try_append(j, run->generation, length, 0, &lsn, &err), &err);
		}
		assert_ok(lac__journal_wait(j, lsn, &err), &err);
		run->acked = lsn;
		if (i % 4 == 3)
			assert_ok(lac__journal_mark(j, &err), &err);
		if (lac__journal_pressed(j)) {
			run->from_lsn = lsn;
			run->from_seq = lac__journal_seq_of(j, lsn);
			assert_ok(lac__journal_release(j, lsn, &err), &err);
		}
	}
}

/* Redo from the last checkpoint: an exact prefix with all that was promised. */
static struct lac__jscan_end recover(const struct run *run, struct lac_backend *crashed)
{
	struct lac__jscan_options so = scan_options(run->from_lsn, run->from_seq);
	struct lac__jscan_end end;

	so.least_lsn = run->acked;
	end = scan_check(crashed, &so, run->generations);
	if (end.verdict == LAC__JOURNAL_CORRUPT)
		print_message("change %" PRIu64 ": %s\n", run->number, end.evidence.message);
	assert_int_not_equal(end.verdict, LAC__JOURNAL_CORRUPT);
	assert_true(end.last_lsn >= run->acked);
	return end;
}

static struct run next_generation(
	const struct run *run, struct lac_backend *crashed, const struct lac__jscan_end *end)
{
	struct run next = *run;

	next.be = crashed;
	next.acked = end->last_lsn;
	next.generation++;
	for (uint64_t lsn = end->last_lsn + 1; lsn < LSN_MAX; lsn++)
		next.generations[lsn] = next.generation;
	return next;
}

/* The second run on what the crash left, without a further crash. */
static void go_on(const struct run *run, struct lac_backend *crashed)
{
	struct lac__jscan_end end = recover(run, crashed);
	struct run next = next_generation(run, crashed, &end);
	struct lac__journal *j = journal_open(crashed, &run->options, &end, run->from_seq);

	work(&next, j, 3);
	assert_int_equal(lac__journal_close(j), 0);
	end = recover(&next, crashed);
	assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
	assert_int_equal(end.last_lsn, next.acked);
}

static void only_recover(const struct run *run, struct lac_backend *crashed)
{
	recover(run, crashed);
}

/* The second and the third run crash too: what an earlier attempt left behind in the very segment
   and place that the next one writes to must not come back. */
static void crash_again(const struct run *run, struct lac_backend *crashed)
{
	struct lac__jscan_end end = recover(run, crashed);
	struct run next = next_generation(run, crashed, &end);
	struct lac__journal *j = journal_open(crashed, &run->options, &end, run->from_seq);

	next.seeds = 6;
	next.after = next.depth-- > 1 ? crash_again : only_recover;
	lac__sim_on_change(crashed, before_change, &next);
	work(&next, j, 1);
	lac__sim_on_change(crashed, NULL, NULL);
	assert_int_equal(lac__journal_close(j), 0);
	recover(&next, crashed);
}

static void run_with(unsigned groups, unsigned seeds, uint32_t tear_bytes, unsigned depth,
	void (*after)(const struct run *run, struct lac_backend *crashed))
{
	struct run run = {.options = test_options(),
		.from_lsn = 1,
		.from_seq = 1,
		.seeds = seeds,
		.depth = depth,
		.after = after};
	struct lac__journal *j;

	run.options.tear_bytes = tear_bytes;
	run.be = journal_make(&run.options);
	j = journal_open_new(run.be, &run.options);
	lac__sim_on_change(run.be, before_change, &run);
	work(&run, j, groups);
	lac__sim_on_change(run.be, NULL, NULL);
	assert_int_equal(lac__journal_close(j), 0);
	recover(&run, run.be);
	lac__sim_free(run.be);
}

static void crash_at_every_change(void **state)
{
	crashes = 0;
	run_with(24, 6, 512, 0, only_recover);
	run_with(12, 4, 4096, 0, only_recover);
	assert_true(crashes > 500);
}

static void go_on_after_every_crash(void **state)
{
	run_with(14, 2, 512, 0, go_on);
}

static void crash_in_the_next_runs_too(void **state)
{
	run_with(2, 3, 512, 2, crash_again);
}

/*
 * Two runs in turn tear their first group in the same segment and place: the first loses the header
 * and leaves a whole frame, the second writes its header and loses the frame. What the first left
 * must not pass for the second's: it had been declared absent in between.
 */
static void a_headless_group_never_comes_back(void **state)
{
	static const uint8_t zeros[LAC__PAGE_BYTES];
	struct lac__journal_options options = test_options();
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	struct lac__jscan_options so = scan_options(1, 1);
	unsigned generations[LSN_MAX] = {0};
	uint8_t frame[512];
	struct lac__jscan_end end;
	struct lac_error err = {0};
	uint64_t lsn;
	char path[64];

	commit(j, 100);
	assert_int_equal(lac__journal_close(j), 0);
	segment_path(2, path);
	for (unsigned generation = 1; generation < 6; generation++) {
		end = scan_check(be, &so, generations);
		assert_int_not_equal(end.verdict, LAC__JOURNAL_CORRUPT);
		assert_int_equal(end.last_lsn, 1);
		j = journal_open(be, &options, &end, 1);
		assert_ok(try_append(j, generation, 300, 0, &lsn, &err), &err);
		assert_ok(lac__journal_wait(j, lsn, &err), &err);
		assert_int_equal(lac__journal_close(j), 0);
		if (generation % 2)
			assert_int_equal(lac__sim_peek(be, path, LAC__PAGE_BYTES, frame, 512), 0);
		if (generation % 2)
			assert_int_equal(lac__sim_poke(be, path, 0, zeros, LAC__PAGE_BYTES), 0);
		else
			assert_int_equal(lac__sim_poke(be, path, LAC__PAGE_BYTES, frame, 512), 0);
		if (generation % 2 == 0) {
			/* The header counts: this number is used, though nothing is in it. */
			end = scan_check(be, &so, generations);
			assert_int_equal(end.last_lsn, 1);
			assert_int_equal(end.next_seq, generation / 2 + 2);
			segment_path(end.next_seq, path);
		}
	}
	lac__sim_free(be);
}

/* Creation is whole or can be done again. */
struct creation {
	struct lac_backend *be;
	struct lac__journal_options options;
};

static void create_again(void *arg, uint64_t number)
{
	struct creation *c = arg;
	struct lac_error err = {0};

	for (uint64_t seed = 0; seed < 4; seed++) {
		struct lac_backend *crashed;
		struct lac__journal *j;

		assert_int_equal(
			lac__sim_crash(c->be, LAC__SIM_SEEDED, number * 10 + seed, &crashed), 0);
		assert_ok(lac__journal_create(crashed, DIR, &c->options, &err), &err);
		j = journal_open_new(crashed, &c->options);
		assert_int_equal(commit(j, 100), 1);
		assert_int_equal(lac__journal_close(j), 0);
		lac__sim_free(crashed);
	}
}

static void crash_while_creating(void **state)
{
	struct creation c = {.be = sim_make(NULL), .options = test_options()};
	struct lac_error err = {0};

	lac__sim_on_change(c.be, create_again, &c);
	assert_ok(lac__journal_create(c.be, DIR, &c.options, &err), &err);
	lac__sim_free(c.be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crash_at_every_change),
		cmocka_unit_test(go_on_after_every_crash),
		cmocka_unit_test(crash_in_the_next_runs_too),
		cmocka_unit_test(a_headless_group_never_comes_back),
		cmocka_unit_test(crash_while_creating),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
