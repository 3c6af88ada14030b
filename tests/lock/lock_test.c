/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/lock/lock_test.c - one writing process per store (P11): a second open, fork, exec, an
 * unlinked lock file, a renamed directory, a holder that was killed.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/blocks.h"
#include "lacuna/lacuna.h"

static char *dir;

static int setup(void **state)
{
	(void)state;
	dir = test_make_dir("lock");
	return dir && lac_store_create(dir, NULL, NULL) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	test_remove_dir(dir);
	return 0;
}

static struct lac_store *open_it(void)
{
	struct lac_open_options options = {.size = sizeof options, .no_background = true};
	struct lac_error err = {0};
	struct lac_store *s;

	if (lac_store_open(dir, &options, &s, &err) < 0)
		fail_msg("%s", err.message);
	return s;
}

/* The error of an open that must fail, with the pid of the holder in its words. */
static void expect_busy(pid_t holder)
{
	struct lac_error err = {0};
	struct lac_store *s;
	char pid[32];

	snprintf(pid, sizeof pid, "process %d ", (int)holder);
	assert_int_equal(lac_store_open(dir, NULL, &s, &err), -EBUSY);
	assert_int_equal(err.reason, LAC_REASON_LOCKED);
	assert_non_null(strstr(err.message, pid));
}

/* The exit status of a child that runs f. */
static int in_child(int (*f)(void *), void *arg)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(f(arg));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int child_opens(void *arg)
{
	struct lac_error err = {0};
	struct lac_store *s;
	int rc = lac_store_open(dir, NULL, &s, &err);

	(void)arg;
	return rc == -EBUSY && err.reason == LAC_REASON_LOCKED ? 0 : 1;
}

static void test_second_open(void **state)
{
	struct lac_store *s = open_it();

	(void)state;
	expect_busy(getpid());
	assert_int_equal(in_child(child_opens, NULL), 0);
	/* That the second open closed its files must not have cost the first one its lock. */
	assert_int_equal(in_child(child_opens, NULL), 0);
	assert_int_equal(lac_store_close(s, NULL), 0);
	assert_int_equal(lac_store_close(open_it(), NULL), 0);
}

struct handles {
	struct lac_store *store;
	struct lac_txn *txn;
	struct lac_iter *iter;
};

static int child_uses(void *arg)
{
	struct handles *h = arg;
	struct lac_store_stats stats = {.size = sizeof stats};
	struct lac_block_info info;
	struct lac_error err = {0};
	struct lac_txn *txn;
	char byte;

	alarm(10); /* a deadlock is a failure, not a wait */
	if (lac_block_read(h->store, 1, &byte, 1, 0, &err) != -EINVAL)
		return 1;
	if (err.reason != LAC_REASON_WRONG_PROCESS)
		return 2;
	if (lac_block_stat(h->store, 1, &info, NULL) != -EINVAL)
		return 3;
	if (lac_store_stat(h->store, &stats, NULL) != -EINVAL)
		return 4;
	if (lac_iter_next(h->iter, &info, NULL) != -EINVAL)
		return 5;
	if (lac_txn_begin(h->store, &txn, NULL) != -EINVAL)
		return 6;
	if (lac_store_reclaim(h->store, NULL, NULL) != -EINVAL)
		return 7;
	if (lac_store_checkpoint(h->store, NULL) != -EINVAL)
		return 8;
	if (lac_txn_put(h->txn, "x", 1, 0, NULL, NULL) != -EINVAL)
		return 9;
	if (lac_txn_commit(h->txn, NULL, NULL) != -EINVAL)
		return 10;
	if (lac_store_close(h->store, NULL) != -EINVAL)
		return 11;
	return 0;
}

static void test_fork(void **state)
{
	struct handles h = {.store = open_it()};
	uint64_t id;
	char byte = 0;

	(void)state;
	assert_int_equal(lac_txn_begin(h.store, &h.txn, NULL), 0);
	assert_int_equal(lac_txn_put(h.txn, "a", 1, 0, &id, NULL), 0);
	assert_int_equal(lac_iter_open(h.store, NULL, &h.iter, NULL), 0);
	assert_int_equal(in_child(child_uses, &h), 0);
	/* The child is gone; the parent still has lock, transaction and data. */
	expect_busy(getpid());
	assert_int_equal(lac_txn_commit(h.txn, NULL, NULL), 0);
	assert_int_equal(lac_block_read(h.store, id, &byte, 1, 0, NULL), 1);
	assert_int_equal(byte, 'a');
	lac_iter_close(h.iter);
	assert_int_equal(lac_store_close(h.store, NULL), 0);
}

static void test_unlinked_lock_file(void **state)
{
	struct lac_store *s = open_it();
	struct lac_error err = {0};
	struct lac_store *other;
	char path[4200];

	(void)state;
	snprintf(path, sizeof path, "%s/lock", dir);
	unlink(path);
	assert_int_equal(lac_store_open(dir, NULL, &other, &err), -EBUSY);
	assert_int_equal(lac_store_close(s, NULL), 0);
	assert_int_equal(lac_store_close(open_it(), NULL), 0);
}

static void test_renamed_directory(void **state)
{
	struct lac_store *s = open_it();
	char path[4200], *old = dir;

	(void)state;
	snprintf(path, sizeof path, "%s-moved", dir);
	assert_int_equal(rename(dir, path), 0);
	dir = path;
	expect_busy(getpid());
	assert_int_equal(lac_store_checkpoint(s, NULL), 0);
	assert_int_equal(lac_store_close(s, NULL), 0);
	assert_int_equal(lac_store_close(open_it(), NULL), 0);
	assert_int_equal(rename(path, old), 0);
	dir = old;
}

/* A program that the holder started inherits no descriptor, and so no lock. */
static void test_exec(void **state)
{
	struct lac_store *s = open_it();
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		execlp("sleep", "sleep", "30", (char *)NULL);
		_exit(127);
	}
	usleep(100000); /* exec has closed them by then; before, the lock is rightly held */
	assert_int_equal(lac_store_close(s, NULL), 0);
	assert_int_equal(lac_store_close(open_it(), NULL), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_killed_holder(void **state)
{
	int fds[2];
	pid_t pid;
	char byte;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		open_it();
		if (write(fds[1], "o", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fds[0], &byte, 1), 1);
	expect_busy(pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(lac_store_close(open_it(), NULL), 0);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_second_open, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unlinked_lock_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_renamed_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed_holder, setup, teardown),
	};

	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
