/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/append_test.c - group commit: who is acknowledged when, in which groups, and that nobody
 * is after the first failure.
 */
#include "journal/testing.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define THREADS 8
#define COMMITS 150

static struct lac__journal_options options;

static int setup(void **state)
{
	options = test_options();
	options.segment_bytes = 65536;
	return 0;
}

/* ---- many threads ---- */

struct crowd {
	struct lac__journal *j;
	pthread_mutex_t order; /* the caller orders its appends, so that a record knows its LSN */
	_Atomic uint64_t durable, calls;
	_Atomic bool wrong;
	_Atomic uint64_t acked[THREADS];
	int result[THREADS];
};

struct member {
	struct crowd *crowd;
	unsigned number;
};

static void on_durable(void *arg, uint64_t last_lsn)
{
	struct crowd *crowd = arg;

	if (last_lsn <= crowd->durable)
		crowd->wrong = true;
	crowd->durable = last_lsn;
	crowd->calls++;
}

static void *commit_many(void *arg)
{
	struct member *m = arg;
	struct crowd *crowd = m->crowd;
	int rc = 0;

	for (int i = 0; i < COMMITS && rc == 0; i++) {
		uint64_t lsn = 0;

		pthread_mutex_lock(&crowd->order);
		rc = try_append(crowd->j, 0, 40 + i, 0, &lsn, NULL);
		pthread_mutex_unlock(&crowd->order);
		if (rc == 0)
			rc = lac__journal_wait(crowd->j, lsn, NULL);
		if (rc == 0) {
			if (crowd->durable < lsn)
				crowd->wrong = true;
			crowd->acked[m->number] = lsn;
		}
	}
	crowd->result[m->number] = rc;
	return NULL;
}

static void run_crowd(struct crowd *crowd)
{
	struct member members[THREADS];
	pthread_t threads[THREADS];

	pthread_mutex_init(&crowd->order, NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		members[i] = (struct member){crowd, i};
		assert_int_equal(pthread_create(&threads[i], NULL, commit_many, &members[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_destroy(&crowd->order);
	assert_false(crowd->wrong);
}

static void start_crowd(struct crowd *crowd, struct lac_backend *be)
{
	struct lac__jscan_options so = scan_options(1, 1);
	struct lac__jscan_end end = scan_end(be, &so);
	struct lac_error err = {0};

	assert_ok(
		lac__journal_start(be, DIR, &options, &end, 1, on_durable, crowd, &crowd->j, &err),
		&err);
}

static void eight_threads(void **state)
{
	for (int background = 0; background < 2; background++) {
		struct lac_backend *be = journal_make(&options);
		struct lac__jscan_options so = scan_options(1, 1);
		struct crowd crowd = {0};
		struct lac__journal_stats stats;
		struct lac__jscan_end end;

		options.background = background;
		options.direct = background;
		start_crowd(&crowd, be);
		run_crowd(&crowd);
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(crowd.result[i], 0);
		assert_int_equal(crowd.durable, THREADS * COMMITS);
		assert_int_equal(lac__journal_durable_lsn(crowd.j), THREADS * COMMITS);
		lac__journal_stats(crowd.j, &stats);
		assert_int_equal(stats.records, THREADS * COMMITS);
		assert_int_equal(stats.groups, crowd.calls);
		assert_int_equal(stats.syncs, stats.groups);
		assert_int_equal(lac__journal_close(crowd.j), 0);
		end = scan_check(be, &so, NULL);
		assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
		assert_int_equal(end.last_lsn, THREADS * COMMITS);
		lac__sim_free(be);
	}
}

/* The same on real files, past the page cache where the filesystem can. */
static void eight_threads_on_files(void **state)
{
	char root[] = "/tmp/lacuna-journal-XXXXXX";
	struct lac__jscan_options so = scan_options(1, 1);
	struct crowd crowd = {0};
	struct lac_backend *be;
	struct lac__jscan_end end;
	struct lac_error err = {0};
	char path[64];

	options.direct = true;
	options.background = true;
	assert_non_null(mkdtemp(root));
	assert_ok(lac__backend_plain_new(root, &be, &err), &err);
	assert_int_equal(be->ops->make_dir(be, DIR), 0);
	assert_ok(lac__journal_create(be, DIR, &options, &err), &err);
	start_crowd(&crowd, be);
	run_crowd(&crowd);
	assert_int_equal(lac__journal_close(crowd.j), 0);
	end = scan_check(be, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
	assert_int_equal(end.last_lsn, THREADS * COMMITS);
	for (uint64_t seq = 1; seq < 100; seq++) {
		segment_path(seq, path);
		(void)be->ops->unlink(be, path);
	}
	assert_int_equal(be->ops->remove_dir(be, DIR), 0);
	lac__backend_plain_free(be);
	assert_int_equal(rmdir(root), 0);
}

/* ---- commits, checkpoints, a thread that prepares, long records: all at once ---- */

struct checkpointer {
	struct crowd *crowd;
	_Atomic bool stop;
	uint64_t from_lsn, from_seq;
	int result;
};

static void *checkpoint(void *arg)
{
	struct checkpointer *c = arg;
	struct lac__journal *j = c->crowd->j;

	while (!c->stop && c->result == 0) {
		c->from_lsn = lac__journal_durable_lsn(j) + 1;
		c->from_seq = lac__journal_seq_of(j, c->from_lsn);
		c->result = lac__journal_release(j, c->from_lsn, NULL);
		if (c->result == 0)
			c->result = lac__journal_mark(j, NULL);
		(void)lac__journal_pressed(j);
		(void)lac__journal_live_bytes(j);
		sched_yield();
	}
	return NULL;
}

static void *commit_long(void *arg)
{
	struct crowd *crowd = arg;

	for (int i = 0; i < 20; i++) {
		uint64_t lsn = 0;

		pthread_mutex_lock(&crowd->order);
		assert_int_equal(try_append(crowd->j, 0, 5000 + i * 5000, 0, &lsn, NULL), 0);
		pthread_mutex_unlock(&crowd->order);
		assert_int_equal(lac__journal_wait(crowd->j, lsn, NULL), 0);
	}
	return NULL;
}

static void checkpoints_beside_commits(void **state)
{
	struct lac_backend *be;
	struct crowd crowd = {0};
	struct checkpointer c = {.crowd = &crowd, .from_lsn = 1, .from_seq = 1};
	struct lac__jscan_options so;
	struct lac__jscan_end end;
	pthread_t threads[3];
	struct member members[2] = {{&crowd, 0}, {&crowd, 1}};

	options.segment_bytes = 16384;
	options.background = true;
	options.ready_target = 3;
	be = journal_make(&options);
	start_crowd(&crowd, be);
	pthread_mutex_init(&crowd.order, NULL);
	assert_int_equal(pthread_create(&threads[0], NULL, checkpoint, &c), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, commit_many, &members[0]), 0);
	assert_int_equal(pthread_create(&threads[2], NULL, commit_many, &members[1]), 0);
	commit_long(&crowd);
	pthread_join(threads[1], NULL);
	pthread_join(threads[2], NULL);
	c.stop = true;
	pthread_join(threads[0], NULL);
	pthread_mutex_destroy(&crowd.order);
	assert_false(crowd.wrong);
	assert_int_equal(crowd.result[0] | crowd.result[1] | c.result, 0);
	assert_int_equal(lac__journal_close(crowd.j), 0);
	so = scan_options(c.from_lsn, c.from_seq);
	so.least_lsn = 2 * COMMITS + 20;
	end = scan_check(be, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
	assert_int_equal(end.last_lsn, 2 * COMMITS + 20);
	lac__sim_free(be);
}

/* All threads end with the error, everything acknowledged is there, and the callback was called for
   nothing that is not. */
static void eight_threads_and_a_failure(void **state)
{
	static const enum lac__sim_fault faults[] = {
		LAC__SIM_SYNC_REVERT, LAC__SIM_SYNC_LANDED, LAC__SIM_SYNC_HALF};

	for (unsigned n = 3; n < 40; n += 6) {
		struct lac_backend *be = journal_make(&options), *after;
		struct lac__jscan_options so = scan_options(1, 1);
		struct crowd crowd = {0};
		struct lac__jscan_end end;

		start_crowd(&crowd, be);
		lac__sim_arm(be, LAC__SIM_SYNC, NULL, n, false, faults[n % 3], 0);
		run_crowd(&crowd);
		for (unsigned i = 0; i < THREADS; i++) {
			assert_int_equal(crowd.result[i], -EIO);
			assert_true(crowd.acked[i] <= crowd.durable);
		}
		assert_int_equal(lac__journal_close(crowd.j), -EIO);
		assert_int_equal(lac__sim_crash(be, LAC__SIM_DROP_ALL, 0, &after), 0);
		end = scan_check(after, &so, NULL);
		assert_int_not_equal(end.verdict, LAC__JOURNAL_CORRUPT);
		assert_true(end.last_lsn >= crowd.durable);
		lac__sim_free(after);
		lac__sim_free(be);
	}
}

/* ---- groups ---- */

static void one_sync_for_all_that_was_appended(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	struct lac__journal_stats stats;
	struct lac_error err = {0};
	uint64_t syncs = lac__sim_count(be, LAC__SIM_SYNC), writes;

	writes = lac__sim_count(be, LAC__SIM_WRITE);
	for (int i = 0; i < 20; i++)
		append(j, 300);
	assert_int_equal(lac__journal_durable_lsn(j), 0);
	assert_ok(lac__journal_wait(j, 7, &err), &err);
	assert_int_equal(lac__journal_durable_lsn(j), 20);
	assert_ok(lac__journal_wait(j, 20, &err), &err);
	/* The segment's header and the group: one write, one sync. */
	assert_int_equal(lac__sim_count(be, LAC__SIM_SYNC), syncs + 1);
	assert_int_equal(lac__sim_count(be, LAC__SIM_WRITE), writes + 1);
	lac__journal_stats(j, &stats);
	assert_int_equal(stats.group_records_max, 20);
	assert_int_equal(lac__journal_wait(j, 21, &err), -EINVAL);
	assert_int_equal(lac__journal_close(j), 0);
	lac__sim_free(be);
}

static void groups_end_at_their_limit(void **state)
{
	struct lac_backend *be;
	struct lac__journal *j;
	struct lac__jscan_options so = scan_options(1, 1);
	struct lac__journal_stats stats;
	struct lac_error err = {0};

	options.group_bytes_max = 1000;
	be = journal_make(&options);
	j = journal_open_new(be, &options);
	for (int i = 0; i < 12; i++)
		append(j, 300); /* three to a group */
	append(j, 5000);	/* alone, though longer than the limit */
	append(j, 10);
	assert_ok(lac__journal_wait(j, 14, &err), &err);
	lac__journal_stats(j, &stats);
	assert_int_equal(stats.groups, 6);
	assert_int_equal(stats.group_records_max, 3);
	assert_int_equal(lac__journal_close(j), 0);
	assert_int_equal(scan_check(be, &so, NULL).last_lsn, 14);
	lac__sim_free(be);
}

/* What was never waited for may be lost, but the records before it are there. */
static void unwaited_records_harm_nobody(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	struct lac__jscan_options so = scan_options(1, 1);

	commit(j, 100);
	append(j, 100);
	assert_int_equal(lac__journal_close(j), 0);
	assert_int_equal(scan_check(be, &so, NULL).last_lsn, 1);
	lac__sim_free(be);
}

static void too_long_leaves_no_trace(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	struct lac__jscan_options so = scan_options(1, 1);
	struct lac_error err = {0};
	uint64_t lsn = 77;

	commit(j, 100);
	assert_int_equal(try_append(j, 0, RECORD_MAX + 1, 0, &lsn, &err), -E2BIG);
	assert_int_equal(err.reason, LAC_REASON_TOO_BIG);
	assert_int_equal(lsn, 77);
	assert_int_equal(commit(j, 100), 2);
	assert_int_equal(lac__journal_close(j), 0);
	assert_int_equal(scan_check(be, &so, NULL).last_lsn, 2);
	lac__sim_free(be);
}

/* ---- poison ---- */

static void no_more_commits(struct lac__journal *j, int code)
{
	struct lac_error err = {0};
	uint64_t lsn = 0;

	assert_int_equal(lac__journal_poisoned(j, &err), code);
	assert_int_equal(try_append(j, 0, 50, LAC__APPEND_RESERVE, &lsn, &err), code);
	assert_int_equal(lac__journal_wait(j, 1, &err), code);
	assert_int_equal(lac__journal_mark(j, &err), code);
	assert_int_equal(lac__journal_release(j, 2, &err), code);
}

/* The first failed write or sync is final, though the next one would succeed. */
static void a_failure_is_final(void **state)
{
	static const enum lac__sim_op kinds[] = {LAC__SIM_WRITE, LAC__SIM_SYNC};

	for (size_t k = 0; k < 2; k++)
		for (uint64_t n = 0; n < 4; n++) {
			struct lac_backend *be = journal_make(&options);
			struct crowd crowd = {0};
			struct lac_error err = {0};
			uint64_t lsn = 0, acked = 0;
			int rc = 0;

			start_crowd(&crowd, be);
			lac__sim_arm(be, kinds[k], NULL, n, false, LAC__SIM_ERRNO, EIO);
			while (rc == 0) {
				acked = lsn;
				lsn = append(crowd.j, 100);
				append(crowd.j, 100);
				rc = lac__journal_wait(crowd.j, lsn, &err);
			}
			assert_int_equal(rc, -EIO);
			assert_int_equal(crowd.calls, n);
			assert_int_equal(acked, n ? 2 * n - 1 : 0);
			assert_int_equal(err.code, -EIO);
			assert_non_null(strstr(err.message, DIR "/0000000000000001.seg"));
			assert_non_null(strstr(err.message, k ? "sync" : "write"));
			assert_int_equal(lac__journal_durable_lsn(crowd.j), 2 * n);
			no_more_commits(crowd.j, -EIO);
			assert_int_equal(crowd.calls, n);
			assert_int_equal(lac__journal_close(crowd.j), -EIO);
			lac__sim_free(be);
		}
}

static void the_store_may_poison(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	struct lac_error why = {.code = -EIO, .reason = LAC_REASON_SYSTEM, .message = "first"};
	struct lac_error err = {0};
	uint64_t lsn = append(j, 100);

	lac__journal_poison(j, -EIO, &why);
	lac__journal_poison(j, -ENOSPC, NULL);
	assert_int_equal(lac__journal_wait(j, lsn, &err), -EIO);
	assert_string_equal(err.message, "first");
	no_more_commits(j, -EIO);
	assert_int_equal(lac__journal_close(j), -EIO);
	lac__sim_free(be);
}

/* After a failed sync the cache shows what the disk does not have, and the next sync succeeds. A
   scan says what a power cut would leave, so that nobody builds on the rest. */
static void a_failed_sync_and_the_cache(void **state)
{
	struct lac_backend *be = journal_make(&options), *after;
	struct lac__jscan_options so = scan_options(1, 1);
	struct lac__journal *j = journal_open_new(be, &options);
	struct lac_error err = {0};
	uint64_t lsn;

	commit(j, 100);
	lac__sim_arm(be, LAC__SIM_SYNC, NULL, 0, false, LAC__SIM_SYNC_REVERT, 0);
	lsn = append(j, 100);
	assert_int_equal(lac__journal_wait(j, lsn, &err), -EIO);
	assert_int_equal(lac__journal_close(j), -EIO);
	lac__sim_heal(be);
	assert_int_equal(scan_check(be, &so, NULL).last_lsn, 1);
	assert_int_equal(lac__sim_crash(be, LAC__SIM_DROP_ALL, 0, &after), 0);
	assert_int_equal(scan_check(after, &so, NULL).last_lsn, 1);
	lac__sim_free(after);
	lac__sim_free(be);
}

/* Nothing of an older buffer gets to the disk: what was never a record is zero. */
static void padding_is_zero(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	uint8_t bytes[4096];
	uint64_t end;

	commit(j, 10);
	commit(j, 30000);
	commit(j, 10);
	end = LAC__PAGE_BYTES + lac__journal_live_bytes(j);
	assert_int_equal(lac__journal_close(j), 0);
	assert_int_equal(lac__sim_peek(be, DIR "/0000000000000001.seg", end - 512, bytes, 4096), 0);
	for (size_t i = 64 + 8 + 16; i < 4096; i++)
		assert_int_equal(bytes[i], 0);
	lac__sim_free(be);
}

/*
 * The leader hands over to a waiter of the next group, who fails: everybody behind him is told. The
 * callback of the first group holds the leader until all have queued.
 */
struct gate {
	struct lac__journal *j;
	unsigned waiting; /* waiters to wait for */
	_Atomic bool entered, passed;
};

static unsigned count_waiters(struct lac__journal *j)
{
	unsigned count = 0;

	pthread_mutex_lock(&j->lock);
	for (struct lac__group *g = j->head; g; g = g->next)
		if (g != j->writing)
			count += g->waiters;
	pthread_mutex_unlock(&j->lock);
	return count;
}

static void hold_leader(void *arg, uint64_t last_lsn)
{
	struct gate *gate = arg;

	gate->entered = true;
	while (!gate->passed && count_waiters(gate->j) < gate->waiting)
		sched_yield();
	gate->passed = true;
}

struct waiter {
	struct lac__journal *j;
	uint64_t lsn;
	int result;
};

static void *wait_for(void *arg)
{
	struct waiter *w = arg;

	w->result = lac__journal_wait(w->j, w->lsn, NULL);
	return NULL;
}

static void hand_over(bool fail, bool external)
{
	struct lac_backend *be;
	struct lac__jscan_options so = scan_options(1, 1);
	struct lac__jscan_end end;
	struct gate gate = {.waiting = 6};
	struct waiter waiters[7];
	pthread_t threads[7];
	struct lac_error err = {0};

	options.group_bytes_max = 500; /* one or two records to a group */
	be = journal_make(&options);
	end = scan_end(be, &so);
	assert_ok(lac__journal_start(be, DIR, &options, &end, 1, hold_leader, &gate, &gate.j, &err),
		&err);
	append(gate.j, 400);
	for (unsigned i = 0; i < 7; i++) {
		waiters[i] = (struct waiter){gate.j, i < 4 ? i + 1 : i, 1};
		if (i > 0 && i < 6)
			append(gate.j, i % 2 ? 400 : 200);
	}
	if (fail) /* the second group's */
		lac__sim_arm(be, LAC__SIM_SYNC, NULL, 1, false, LAC__SIM_ERRNO, EIO);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, wait_for, &waiters[i]), 0);
		while (i == 0 && !gate.entered)
			sched_yield();
	}
	if (external) {
		while (!gate.passed)
			sched_yield();
		lac__journal_poison(gate.j, -EIO, NULL);
	}
	for (unsigned i = 0; i < 7; i++) {
		pthread_join(threads[i], NULL);
		if (!external && waiters[i].lsn > 1)
			assert_int_equal(waiters[i].result, fail ? -EIO : 0);
		if (external)
			assert_true(waiters[i].result == 0 || waiters[i].result == -EIO);
	}
	assert_int_equal(lac__journal_close(gate.j), fail || external ? -EIO : 0);
	lac__sim_free(be);
}

static void hand_over_to_the_next_group(void **state)
{
	hand_over(false, false);
}

static void hand_over_and_fail(void **state)
{
	hand_over(true, false);
}

static void poison_while_they_wait(void **state)
{
	hand_over(false, true);
}

/* Short writes and interruptions are no failures. */
static void short_writes_are_completed(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	struct lac__jscan_options so = scan_options(1, 1);

	lac__sim_arm(be, LAC__SIM_WRITE, NULL, 0, true, LAC__SIM_SHORT, 512);
	commit(j, 3000);
	lac__sim_heal(be);
	lac__sim_arm(be, LAC__SIM_WRITE, NULL, 0, false, LAC__SIM_ERRNO, EINTR);
	commit(j, 3000);
	lac__sim_heal(be);
	assert_int_equal(lac__journal_close(j), 0);
	assert_int_equal(scan_check(be, &so, NULL).last_lsn, 2);
	lac__sim_free(be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_sync_for_all_that_was_appended, setup),
		cmocka_unit_test_setup(groups_end_at_their_limit, setup),
		cmocka_unit_test_setup(unwaited_records_harm_nobody, setup),
		cmocka_unit_test_setup(too_long_leaves_no_trace, setup),
		cmocka_unit_test_setup(a_failure_is_final, setup),
		cmocka_unit_test_setup(the_store_may_poison, setup),
		cmocka_unit_test_setup(short_writes_are_completed, setup),
		cmocka_unit_test_setup(hand_over_to_the_next_group, setup),
		cmocka_unit_test_setup(hand_over_and_fail, setup),
		cmocka_unit_test_setup(poison_while_they_wait, setup),
		cmocka_unit_test_setup(eight_threads, setup),
		cmocka_unit_test_setup(eight_threads_on_files, setup),
		cmocka_unit_test_setup(checkpoints_beside_commits, setup),
		cmocka_unit_test_setup(a_failed_sync_and_the_cache, setup),
		cmocka_unit_test_setup(padding_is_zero, setup),
		cmocka_unit_test_setup(eight_threads_and_a_failure, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
