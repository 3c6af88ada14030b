/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/plain_lock_test.c - one writing process per store (P11), with real processes.
 */
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char root[4096];
static struct lac_backend *be;

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(root, sizeof(root), "%s/lacuna-lock-XXXXXX", tmp ? tmp : ".");
	if (!mkdtemp(root))
		return -1;
	return lac__backend_plain_new(root, &be, NULL);
}

static int teardown(void **state)
{
	be->ops->unlink(be, "lock");
	be->ops->unlink(be, "a");
	lac__backend_plain_free(be);
	return rmdir(root);
}

static void *must_lock(void)
{
	void *lock = NULL;
	int64_t holder;

	assert_int_equal(be->ops->lock(be, &lock, &holder), 0);
	assert_non_null(lock);
	return lock;
}

/* The pid that the refusal names. */
static int64_t must_be_busy(void)
{
	void *lock = NULL;
	int64_t holder = -1;

	assert_int_equal(be->ops->lock(be, &lock, &holder), -EBUSY);
	assert_null(lock);
	return holder;
}

/*
 * A child that holds something and does as it is told: it says one byte when it is ready, and ends
 * when the other end of its pipe is closed.
 */
struct child {
	pid_t pid;
	int said, end; /* read end of what it says; write end of what it waits for */
};

static void start(struct child *c, void (*act)(void *arg), void *arg)
{
	int up[2], down[2];
	char byte = 0;

	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	assert_int_equal(pipe2(down, O_CLOEXEC), 0);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0) {
		close(up[0]);
		close(down[1]);
		act(arg);
		if (write(up[1], "r", 1) != 1 || read(down[0], &byte, 1) != 0)
			_exit(1);
		_exit(0);
	}
	close(up[1]);
	close(down[0]);
	c->said = up[0];
	c->end = down[1];
	assert_int_equal(read(c->said, &byte, 1), 1);
}

static void finish(struct child *c)
{
	int status = -1;

	close(c->end);
	close(c->said);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_int_equal(status, 0);
}

static void act_nothing(void *arg)
{
}

static void act_lock(void *arg)
{
	void *lock;

	if (be->ops->lock(be, &lock, NULL) != 0)
		_exit(2);
}

static void act_unlock(void *arg)
{
	be->ops->unlock(be, arg);
}

static void the_same_process_is_refused_too(void **state)
{
	struct lac_backend *other;
	void *lock = must_lock(), *again = NULL;
	int64_t holder = 0;

	assert_int_equal(must_be_busy(), getpid());
	assert_int_equal(lac__backend_plain_new(root, &other, NULL), 0);
	assert_int_equal(other->ops->lock(other, &again, &holder), -EBUSY);
	assert_int_equal(holder, getpid());
	lac__backend_plain_free(other);
	assert_int_equal(must_be_busy(), getpid());
	be->ops->unlock(be, lock);
	be->ops->unlock(be, must_lock());
	be->ops->unlock(be, NULL);
}

static void another_process_is_refused_and_told_by_whom(void **state)
{
	struct child c;

	start(&c, act_lock, NULL);
	assert_int_equal(must_be_busy(), c.pid);
	finish(&c);
	/* It died without unlock. */
	be->ops->unlock(be, must_lock());
}

static void neither_close_nor_unlink_loses_the_lock(void **state)
{
	struct lac_file *file;
	void *lock = must_lock();

	assert_int_equal(lac__open(be, "a", LAC_OPEN_WRITE | LAC_OPEN_CREATE, &file), 0);
	assert_int_equal(lac__close(file), 0);
	int fd = open(root, O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(must_be_busy(), getpid());
	assert_int_equal(be->ops->unlink(be, "lock"), 0);
	assert_int_equal(must_be_busy(), 0);
	be->ops->unlock(be, lock);
}

static void a_child_takes_nothing_from_its_parent(void **state)
{
	struct child idle, unlocking;
	void *lock = must_lock();

	/* One that just exits, one that exits after it undid what it inherited. */
	start(&idle, act_nothing, NULL);
	finish(&idle);
	assert_int_equal(must_be_busy(), getpid());
	start(&unlocking, act_unlock, lock);
	assert_int_equal(must_be_busy(), getpid());
	finish(&unlocking);
	assert_int_equal(must_be_busy(), getpid());
	be->ops->unlock(be, lock);
}

static void unlock_counts_although_a_child_has_a_copy(void **state)
{
	struct child c;
	void *lock = must_lock();

	start(&c, act_nothing, NULL);
	be->ops->unlock(be, lock);
	be->ops->unlock(be, must_lock());
	finish(&c);
}

static void act_lock_and_fork(void *arg)
{
	struct child *c = arg;

	act_lock(NULL);
	if (fork() == 0) {
		/* The grandchild lives until the test closes its end of the second pipe. */
		char byte;
		close(c->end);
		_exit(read(c->said, &byte, 1) == 0 ? 0 : 1);
	}
}

static void the_lock_outlives_a_holder_whose_child_could_still_write(void **state)
{
	int hold[2];
	struct child c;

	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	struct child grandchild = {.said = hold[0], .end = hold[1]};
	start(&c, act_lock_and_fork, &grandchild);
	finish(&c);
	/* The pid in the file is a dead one, so nobody is accused. */
	assert_int_equal(must_be_busy(), 0);
	close(hold[0]);
	close(hold[1]);
	/* Nobody reaps the grandchild here, so wait for what its end does. */
	void *lock = NULL;
	int rc = -EBUSY;
	for (int i = 0; i < 5000 && rc == -EBUSY; i++) {
		rc = be->ops->lock(be, &lock, NULL);
		if (rc == -EBUSY)
			usleep(1000);
	}
	assert_int_equal(rc, 0);
	be->ops->unlock(be, lock);
}

static void holder_after(const char *text, int64_t want)
{
	char path[8192];

	snprintf(path, sizeof(path), "%s/lock", root);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(must_be_busy(), want);
}

static void the_pid_file_may_say_anything(void **state)
{
	void *lock = must_lock();

	holder_after("", 0);
	holder_after("\n", 0);
	holder_after("hello\n", 0);
	holder_after("-1\n", 0);
	holder_after("0\n", 0);
	holder_after("1", 0);	/* cut off */
	holder_after("1\n", 1); /* not ours to signal, but alive */
	holder_after("4294967297\n", 0);
	holder_after("99999999999999999999999\n", 0);
	holder_after("11111111111111111111111111111111111111111111111111\n", 0);
	be->ops->unlock(be, lock);
}

static void the_pid_file_may_be_impossible(void **state)
{
	char path[8192];

	/* Informational: something else in its place is no reason to refuse, nor to follow or
	 * block. */
	snprintf(path, sizeof(path), "%s/lock", root);
	assert_int_equal(symlink("a", path), 0);
	void *lock = must_lock();
	assert_int_equal(must_be_busy(), 0);
	struct lac_file_info info;
	assert_int_equal(be->ops->path_info(be, "a", &info), -ENOENT);
	be->ops->unlock(be, lock);
	be->ops->unlink(be, "lock");
	assert_int_equal(mkfifo(path, 0600), 0);
	lock = must_lock();
	assert_int_equal(must_be_busy(), 0);
	be->ops->unlock(be, lock);
}

static void unlock_leaves_nothing_behind(void **state)
{
	struct lac_file_info info;

	be->ops->unlock(be, must_lock());
	assert_int_equal(be->ops->path_info(be, "lock", &info), -ENOENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_same_process_is_refused_too),
		TEST(another_process_is_refused_and_told_by_whom),
		TEST(neither_close_nor_unlink_loses_the_lock),
		TEST(a_child_takes_nothing_from_its_parent),
		TEST(unlock_counts_although_a_child_has_a_copy),
		TEST(the_lock_outlives_a_holder_whose_child_could_still_write),
		TEST(the_pid_file_may_say_anything),
		TEST(the_pid_file_may_be_impossible),
		TEST(unlock_leaves_nothing_behind),
	};

	return cmocka_run_group_tests_name("plain_lock", tests, NULL, NULL);
}
