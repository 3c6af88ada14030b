/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/lock/fork_test.c - processes around a store that is at work (P11): children forked while
 * threads hold its locks and while puts are half way, children that outlive the store's handle, a
 * killed holder with a program of its own still running, processes that race for the lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/blocks.h"
#include "lacuna/check.h"
#include "lacuna/lacuna.h"

enum { STREAM_BYTES = 3 << 20, HALF_BYTES = STREAM_BYTES / 2, SHORT_BYTES = 1000, THREADS = 3 };

static char *dir;
static uint8_t bytes[STREAM_BYTES], got[STREAM_BYTES];

static int setup(void **state)
{
	(void)state;
	dir = test_make_dir("fork");
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
	struct lac_error err = {0};
	struct lac_store *s;

	if (lac_store_open(dir, NULL, &s, &err) < 0)
		fail_msg("%s", err.message);
	return s;
}

static void close_it(struct lac_store *s)
{
	struct lac_error err = {0};

	if (lac_store_close(s, &err) < 0)
		fail_msg("%s", err.message);
}

static int complain(void *arg, const struct lac_finding *finding)
{
	(void)arg;
	if (finding->severity != LAC_SEVERITY_NOTE)
		fail_msg("check: %d %s: %s", finding->id, finding->path, finding->text);
	return 0;
}

static void check_it(void)
{
	struct lac_check_options options = {
		.size = sizeof options, .data = true, .finding = complain};
	struct lac_check_result result;

	assert_int_equal(lac_check(dir, &options, &result, NULL), 0);
}

static void expect_busy(pid_t holder)
{
	struct lac_error err = {0};
	struct lac_store *s;
	char words[32];

	snprintf(words, sizeof words, "process %d ", (int)holder);
	assert_int_equal(lac_store_open(dir, NULL, &s, &err), -EBUSY);
	assert_int_equal(err.reason, LAC_REASON_LOCKED);
	assert_non_null(strstr(err.message, words));
}

static void expect_block(struct lac_store *s, uint64_t id, size_t length, uint64_t seed)
{
	struct lac_error err = {0};

	if (lac_block_read(s, id, got, sizeof got, 0, &err) != (int64_t)length)
		fail_msg("block %llu: %s", (unsigned long long)id, err.message);
	assert_true(test_matches(got, length, seed, 0));
}

/* ---- handles of the parent, used by a child ---- */

/* Of each kind that a transaction may have: a stream half way, a short put half way, a transaction
   that has reserved ranges, one that has not. */
struct work {
	struct lac_store *store;
	struct lac_txn *streaming, *large, *small;
	struct lac_put *stream, *collected;
	struct lac_iter *iter;
	uint64_t ids[4], present;
};

static void begin_work(struct work *w)
{
	struct lac_store *s = w->store;
	struct lac_error err = {0};
	int rc = lac_txn_begin(s, &w->streaming, &err);

	test_fill(bytes, sizeof bytes, 1);
	if (rc == 0)
		rc = lac_txn_put(w->streaming, bytes, SHORT_BYTES, 0, &w->present, &err);
	if (rc == 0)
		rc = lac_txn_commit(w->streaming, NULL, &err);
	if (rc == 0)
		rc = lac_txn_begin(s, &w->streaming, &err);
	if (rc == 0)
		rc = lac_put_begin(w->streaming, STREAM_BYTES, 0, &w->stream, &err);
	if (rc == 0)
		rc = lac_put_write(w->stream, bytes, HALF_BYTES, &err);
	if (rc == 0)
		rc = lac_put_begin(w->streaming, SHORT_BYTES, 0, &w->collected, &err);
	if (rc == 0)
		rc = lac_put_write(w->collected, bytes, SHORT_BYTES / 2, &err);
	if (rc == 0)
		rc = lac_txn_begin(s, &w->large, &err);
	if (rc == 0)
		rc = lac_txn_put(w->large, bytes, STREAM_BYTES, 0, &w->ids[2], &err);
	if (rc == 0)
		rc = lac_txn_begin(s, &w->small, &err);
	if (rc == 0)
		rc = lac_txn_put(w->small, bytes, SHORT_BYTES, 0, &w->ids[3], &err);
	if (rc == 0)
		rc = lac_iter_open(s, NULL, &w->iter, &err);
	if (rc < 0)
		fail_msg("%s", err.message);
}

static void end_work(struct work *w)
{
	struct lac_error err = {0};
	int rc = lac_put_write(w->stream, bytes + HALF_BYTES, STREAM_BYTES - HALF_BYTES, &err);

	if (rc == 0)
		rc = lac_put_write(
			w->collected, bytes + SHORT_BYTES / 2, SHORT_BYTES - SHORT_BYTES / 2, &err);
	if (rc == 0)
		rc = lac_put_finish(w->stream, &w->ids[0], &err);
	if (rc == 0)
		rc = lac_put_finish(w->collected, &w->ids[1], &err);
	if (rc == 0)
		rc = lac_txn_commit(w->streaming, NULL, &err);
	if (rc == 0)
		rc = lac_txn_commit(w->large, NULL, &err);
	if (rc == 0)
		rc = lac_txn_commit(w->small, NULL, &err);
	if (rc < 0)
		fail_msg("%s", err.message);
	lac_iter_close(w->iter);
}

static void expect_work(struct work *w, struct lac_store *s)
{
	expect_block(s, w->present, SHORT_BYTES, 1);
	expect_block(s, w->ids[0], STREAM_BYTES, 1);
	expect_block(s, w->ids[1], SHORT_BYTES, 1);
	expect_block(s, w->ids[2], STREAM_BYTES, 1);
	expect_block(s, w->ids[3], SHORT_BYTES, 1);
}

static bool refused(int64_t rc, struct lac_error *err)
{
	bool right = rc == -EINVAL && err->reason == LAC_REASON_WRONG_PROCESS;

	*err = (struct lac_error){0};
	return right;
}

static int child_reads_and_upkeep(struct work *w)
{
	struct lac_store_stats stats = {.size = sizeof stats};
	struct lac_block_info info;
	struct lac_error err = {0};
	struct lac_iter *iter;

	if (!refused(lac_block_read(w->store, w->present, got, 1, 0, &err), &err))
		return 1;
	if (!refused(lac_block_stat(w->store, w->present, &info, &err), &err))
		return 2;
	if (!refused(lac_store_stat(w->store, &stats, &err), &err))
		return 3;
	if (!refused(lac_iter_open(w->store, NULL, &iter, &err), &err))
		return 4;
	if (!refused(lac_iter_next(w->iter, &info, &err), &err))
		return 5;
	if (!refused(lac_store_reclaim(w->store, NULL, &err), &err))
		return 6;
	if (!refused(lac_store_checkpoint(w->store, &err), &err))
		return 7;
	return 0;
}

static int child_writes(struct work *w)
{
	struct lac_error err = {0};
	struct lac_txn *txn;
	struct lac_put *put;
	uint64_t id;

	memset(got, 0x5a, sizeof got);
	if (!refused(lac_txn_begin(w->store, &txn, &err), &err))
		return 20;
	if (!refused(lac_txn_put(w->small, got, 1, 0, &id, &err), &err))
		return 21;
	if (!refused(lac_txn_delete(w->small, w->present, &err), &err))
		return 22;
	if (!refused(lac_put_begin(w->small, STREAM_BYTES, 0, &put, &err), &err))
		return 23;
	if (!refused(lac_put_write(w->stream, got, STREAM_BYTES - HALF_BYTES, &err), &err))
		return 24;
	if (!refused(lac_put_finish(w->stream, &id, &err), &err))
		return 25;
	if (!refused(lac_put_finish(w->collected, &id, &err), &err))
		return 26;
	if (!refused(lac_txn_commit(w->small, NULL, &err), &err))
		return 27;
	if (!refused(lac_txn_commit(w->large, NULL, &err), &err))
		return 28;
	lac_txn_abort(w->streaming);
	if (!refused(lac_store_close(w->store, &err), &err))
		return 29;
	return 0;
}

/* In a child; fd, if not -1, says when to begin. A deadlock ends it by SIGALRM. */
static pid_t start_child(struct work *w, int fd)
{
	pid_t pid = fork();
	char byte;

	assert_true(pid >= 0);
	if (pid == 0) {
		int rc = 0;

		if (fd >= 0 && read(fd, &byte, 1) != 1)
			_exit(50);
		alarm(20);
		rc = child_reads_and_upkeep(w);
		_exit(rc ? rc : child_writes(w));
	}
	return pid;
}

static int status_of(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void expect_good_end(int status)
{
	if (status != 0)
		fail_msg("the child ended by status %x, its step %d", (unsigned)status,
			WEXITSTATUS(status));
}

/* The child tries before the parent goes on, and another one after the parent is done, when what
   it would write fell into blocks that are live. */
static void test_handles_of_the_parent(void **state)
{
	struct work w = {.store = open_it()};
	pid_t late;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	begin_work(&w);
	expect_good_end(status_of(start_child(&w, -1)));
	late = start_child(&w, fds[0]);
	end_work(&w);
	assert_int_equal(write(fds[1], "g", 1), 1);
	expect_good_end(status_of(late));
	expect_busy(getpid());
	expect_work(&w, w.store);
	close_it(w.store);
	check_it();
	w.store = open_it();
	expect_work(&w, w.store);
	close_it(w.store);
	close(fds[0]);
	close(fds[1]);
}

struct thread {
	struct lac_store *store;
	pthread_t thread;
	uint64_t random;
	_Atomic bool *stop;
	_Atomic int *failed;
};

static void *commit_and_delete(void *arg)
{
	struct thread *t = arg;
	uint64_t id = 0, old = 0;
	static const uint8_t zeros[100000];

	while (!*t->stop && *t->failed == 0) {
		size_t length = test_random(&t->random) % 8 ? 5000 : sizeof zeros;
		struct lac_txn *txn;
		int rc = lac_txn_begin(t->store, &txn, NULL);

		if (rc == 0)
			rc = lac_txn_put(txn, zeros, length, 0, &id, NULL);
		if (rc == 0 && old)
			rc = lac_txn_delete(txn, old, NULL);
		if (rc == 0)
			rc = lac_txn_commit(txn, NULL, NULL);
		if (rc == 0 && test_random(&t->random) % 16 == 0)
			rc = lac_store_reclaim(t->store, NULL, NULL);
		if (rc < 0)
			*t->failed = rc;
		old = id;
	}
	return NULL;
}

/* fork() catches the store's locks in any state. */
static void test_fork_amid_threads(void **state)
{
	struct work w = {.store = open_it()};
	unsigned children = (unsigned)(40 * test_scale()) + 4;
	struct thread threads[THREADS];
	_Atomic bool stop = false;
	_Atomic int failed = 0;
	int status = 0;

	(void)state;
	begin_work(&w);
	for (unsigned i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){
			.store = w.store, .random = i, .stop = &stop, .failed = &failed};
		assert_int_equal(
			pthread_create(&threads[i].thread, NULL, commit_and_delete, &threads[i]),
			0);
	}
	for (unsigned i = 0; i < children && status == 0; i++) {
		usleep(i * 37 % 1000);
		status = status_of(start_child(&w, -1));
	}
	stop = true;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i].thread, NULL);
	expect_good_end(status);
	assert_int_equal(failed, 0);
	end_work(&w);
	expect_work(&w, w.store);
	close_it(w.store);
	check_it();
}

/* ---- the lock ---- */

static pid_t start_idle_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(60);
		pause();
		_exit(0);
	}
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A forked child has a copy of the lock's descriptor. */
static void test_child_outlives_handle(void **state)
{
	struct lac_store *s = open_it();
	pid_t child = start_idle_child();

	(void)state;
	close_it(s);
	s = open_it();
	expect_busy(getpid());
	end_child(child);
	expect_busy(getpid());
	close_it(s);
}

/* A holder that has started a program (which says by the end of a pipe that it runs) and waits. */
static pid_t start_holder(pid_t *ret_program)
{
	int fds[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pid_t program;

		open_it();
		program = fork();
		if (program == 0) {
			execlp("sleep", "sleep", "60", (char *)NULL);
			_exit(127);
		}
		if (program < 0 || write(fds[1], &program, sizeof program) != sizeof program)
			_exit(1);
		close(fds[1]);
		alarm(60);
		pause();
		_exit(1);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], ret_program, sizeof *ret_program), sizeof *ret_program);
	assert_int_equal(read(fds[0], &byte, 1), 0);
	close(fds[0]);
	return pid;
}

static void test_killed_holder_with_program(void **state)
{
	pid_t program, holder = start_holder(&program);

	(void)state;
	expect_busy(holder);
	end_child(holder);
	close_it(open_it());
	assert_int_equal(kill(program, 0), 0);
	kill(program, SIGKILL);
}

static void test_killed_holder_of_renamed_directory(void **state)
{
	pid_t program, holder = start_holder(&program);
	char moved[4200], *old = dir;

	(void)state;
	snprintf(moved, sizeof moved, "%s-moved", dir);
	assert_int_equal(rename(dir, moved), 0);
	dir = moved;
	expect_busy(holder);
	end_child(holder);
	close_it(open_it());
	kill(program, SIGKILL);
	dir = old;
	assert_int_equal(rename(moved, old), 0);
}

/* Opens as often as it can, and looks whether it is alone; returns how often it was, or fails. */
static int race(const char *marker, unsigned rounds)
{
	int won = 0;

	alarm(60);
	for (unsigned i = 0; i < rounds || won == 0; i++) {
		struct lac_error err = {0};
		struct lac_store *s;
		int rc = lac_store_open(dir, NULL, &s, &err), fd;

		if (rc == -EBUSY && err.reason == LAC_REASON_LOCKED) {
			usleep(500);
			continue;
		}
		if (rc < 0)
			return 101;
		fd = open(marker, O_CREAT | O_EXCL | O_WRONLY, 0666);
		if (fd < 0)
			return 102;
		close(fd);
		if (unlink(marker) < 0 || lac_store_close(s, NULL) < 0)
			return 103;
		won++;
	}
	return won < 100 ? won : 100;
}

static void test_race(void **state)
{
	pid_t pids[5];
	char marker[4200];
	int status;

	(void)state;
	snprintf(marker, sizeof marker, "%s-marker", dir);
	for (unsigned i = 0; i < 5; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0)
			_exit(race(marker, 40));
	}
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status));
		assert_in_range(WEXITSTATUS(status), 1, 100);
	}
	close_it(open_it());
	check_it();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_handles_of_the_parent),
		TEST(test_fork_amid_threads),
		TEST(test_child_outlives_handle),
		TEST(test_killed_holder_with_program),
		TEST(test_killed_holder_of_renamed_directory),
		TEST(test_race),
	};

	return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
