/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/syncer_test.c - one sync in flight, shared, and its first failure for ever. The backend's sync
 * stops at a gate, so that each order of events is made and not hoped for.
 */
#include "io/syncer.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>

static struct {
	struct lac_backend be;
	struct lac_file file;
	bool gated;
	sem_t entered, leave; /* only if gated */
	atomic_int inside, most_inside, calls;
	int code;
} disk;

static struct lac__syncer *syncer;

static int disk_sync(struct lac_file *file)
{
	int inside = atomic_fetch_add(&disk.inside, 1) + 1;

	if (inside > disk.most_inside)
		disk.most_inside = inside;
	disk.calls++;
	if (disk.gated) {
		sem_post(&disk.entered);
		sem_wait(&disk.leave);
	}
	disk.inside--;
	return disk.code;
}

static const struct lac_backend_ops disk_ops = {.sync = disk_sync};

static int setup(void **state)
{
	disk.be.ops = &disk_ops;
	disk.file.backend = &disk.be;
	disk.gated = false;
	disk.inside = disk.most_inside = disk.calls = 0;
	disk.code = 0;
	sem_init(&disk.entered, 0, 0);
	sem_init(&disk.leave, 0, 0);
	return lac__syncer_new(&syncer);
}

static int teardown(void **state)
{
	lac__syncer_free(syncer);
	sem_destroy(&disk.entered);
	sem_destroy(&disk.leave);
	return 0;
}

struct caller {
	pthread_t thread;
	atomic_bool begun, ended;
	int result;
};

static void *run_caller(void *arg)
{
	struct caller *c = arg;

	c->begun = true;
	c->result = lac__syncer_sync(syncer, &disk.file);
	c->ended = true;
	return NULL;
}

static void start(struct caller *c)
{
	*c = (struct caller){.result = 99};
	assert_int_equal(pthread_create(&c->thread, NULL, run_caller, c), 0);
	while (!c->begun)
		sched_yield();
}

static int finish(struct caller *c)
{
	pthread_join(c->thread, NULL);
	return c->result;
}

static void what_is_clean_costs_no_call(void **state)
{
	assert_false(lac__syncer_dirty(syncer));
	assert_int_equal(lac__syncer_sync(syncer, &disk.file), 0);
	assert_int_equal(disk.calls, 0);

	lac__syncer_wrote(syncer);
	assert_true(lac__syncer_dirty(syncer));
	assert_int_equal(lac__syncer_sync(syncer, &disk.file), 0);
	assert_false(lac__syncer_dirty(syncer));
	assert_int_equal(lac__syncer_sync(syncer, &disk.file), 0);
	assert_int_equal(disk.calls, 1);
	assert_int_equal(lac__syncer_calls(syncer), 1);
}

static void the_first_failure_stays(void **state)
{
	lac__syncer_wrote(syncer);
	disk.code = -EIO;
	assert_int_equal(lac__syncer_sync(syncer, &disk.file), -EIO);
	/* The kernel would now say that all is well. */
	disk.code = 0;
	assert_int_equal(lac__syncer_sync(syncer, &disk.file), -EIO);
	lac__syncer_wrote(syncer);
	assert_int_equal(lac__syncer_sync(syncer, &disk.file), -EIO);
	assert_int_equal(disk.calls, 1);
	assert_true(lac__syncer_dirty(syncer));

	lac__syncer_fail(syncer, -ENOSPC);
	assert_int_equal(lac__syncer_failure(syncer), -EIO);
}

static void a_failure_found_elsewhere_counts(void **state)
{
	lac__syncer_wrote(syncer);
	lac__syncer_fail(syncer, -EDQUOT);
	assert_int_equal(lac__syncer_sync(syncer, &disk.file), -EDQUOT);
	assert_int_equal(disk.calls, 0);
}

static void a_write_during_a_sync_waits_for_the_next(void **state)
{
	struct caller first, second;

	disk.gated = true;
	lac__syncer_wrote(syncer);
	start(&first);
	sem_wait(&disk.entered);
	/* The sync has begun: it may or may not see this write. */
	lac__syncer_wrote(syncer);
	start(&second);
	sem_post(&disk.leave);
	assert_int_equal(finish(&first), 0);
	sem_wait(&disk.entered);
	assert_false(second.ended);
	assert_true(lac__syncer_dirty(syncer));
	sem_post(&disk.leave);
	assert_int_equal(finish(&second), 0);
	assert_false(lac__syncer_dirty(syncer));
	assert_int_equal(disk.calls, 2);
	assert_int_equal(disk.most_inside, 1);
}

static void waiters_share_one_result(void **state)
{
	struct caller callers[8];

	/* While one sync runs, eight more come whose writes it may have missed: one more is enough
	 * for them. */
	struct caller first;
	disk.gated = true;
	lac__syncer_wrote(syncer);
	start(&first);
	sem_wait(&disk.entered);
	for (int i = 0; i < 8; i++)
		lac__syncer_wrote(syncer);
	for (int i = 0; i < 8; i++)
		start(&callers[i]);
	sem_post(&disk.leave);
	sem_wait(&disk.entered);
	disk.code = -EIO;
	sem_post(&disk.leave);
	assert_int_equal(finish(&first), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(finish(&callers[i]), -EIO);
	assert_int_equal(disk.calls, 2);
	assert_int_equal(disk.most_inside, 1);
}

static void a_failure_in_flight_reaches_those_who_came_later(void **state)
{
	struct caller first, second;

	disk.gated = true;
	lac__syncer_wrote(syncer);
	start(&first);
	sem_wait(&disk.entered);
	lac__syncer_wrote(syncer);
	start(&second);
	disk.code = -EIO;
	sem_post(&disk.leave);
	assert_int_equal(finish(&first), -EIO);
	assert_int_equal(finish(&second), -EIO);
	assert_int_equal(disk.calls, 1);
}

static void *write_and_sync(void *arg)
{
	for (int i = 0; i < 300; i++) {
		lac__syncer_wrote(syncer);
		if (lac__syncer_sync(syncer, &disk.file) != 0)
			return arg;
	}
	return NULL;
}

static void many_threads_never_sync_at_once(void **state)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_and_sync, &disk), 0);
	for (int i = 0; i < 4; i++) {
		void *result;
		pthread_join(threads[i], &result);
		assert_null(result);
	}
	assert_false(lac__syncer_dirty(syncer));
	assert_int_equal(disk.most_inside, 1);
	assert_in_range(disk.calls, 300, 1200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_clean_costs_no_call, setup, teardown),
		cmocka_unit_test_setup_teardown(the_first_failure_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(a_failure_found_elsewhere_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_write_during_a_sync_waits_for_the_next, setup, teardown),
		cmocka_unit_test_setup_teardown(waiters_share_one_result, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_failure_in_flight_reaches_those_who_came_later, setup, teardown),
		cmocka_unit_test_setup_teardown(many_threads_never_sync_at_once, setup, teardown),
	};

	return cmocka_run_group_tests_name("syncer", tests, NULL, NULL);
}
