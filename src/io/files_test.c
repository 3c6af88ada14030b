/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/files_test.c - the set of open files: what it closes and when, what it never closes, what it
 * remembers of failures, and that two threads never get in each other's way. The backend's calls
 * can be stopped at a gate, so that orders of events are made and not hoped for.
 */
#include "io/files.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum op { OPEN, CLOSE, SYNC, OPS };

struct disk_file {
	struct lac_file file;
	unsigned flags;
	char path[32];
};

static struct {
	struct lac_backend be;
	pthread_mutex_t mutex;
	int open_now, most_open, most_syncs;
	int count[OPS];
	char log[4096]; /* "+a" opened, "-a" closed, "!a" synced */
	/* What fails, and with what; what waits at the gate. "" is no file. */
	char fail_path[OPS][32], gate_path[OPS][32];
	int fail_code[OPS];
	unsigned room; /* descriptors that there are; 0 = any number */
	sem_t entered, leave;
	atomic_int syncing;
} disk;

static struct lac__files *files;

/* Counts the call and waits at the gate if there is one; the result of the call. */
static int call(enum op op, const char *path)
{
	pthread_mutex_lock(&disk.mutex);
	size_t end = strlen(disk.log);
	snprintf(disk.log + end, sizeof(disk.log) - end, "%c%s ", "+-!"[op], path);
	disk.count[op]++;
	int rc = strcmp(disk.fail_path[op], path) == 0 ? disk.fail_code[op] : 0;
	if (strcmp(disk.fail_path[op], "*") == 0)
		rc = disk.fail_code[op] - disk.count[op]; /* each with a code of its own */
	bool gated = strcmp(disk.gate_path[op], path) == 0;
	if (gated)
		disk.gate_path[op][0] = '\0';
	pthread_mutex_unlock(&disk.mutex);
	if (gated) {
		sem_post(&disk.entered);
		sem_wait(&disk.leave);
	}
	return rc;
}

static int disk_open(
	struct lac_backend *be, const char *path, unsigned flags, struct lac_file **ret)
{
	struct disk_file *f;
	int rc = call(OPEN, path);

	pthread_mutex_lock(&disk.mutex);
	if (rc == 0 && disk.room != 0 && disk.open_now >= (int)disk.room)
		rc = -EMFILE;
	if (rc == 0 && ++disk.open_now > disk.most_open)
		disk.most_open = disk.open_now;
	pthread_mutex_unlock(&disk.mutex);
	if (rc < 0)
		return rc;
	f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->file.backend = be;
	f->flags = flags;
	snprintf(f->path, sizeof(f->path), "%s", path);
	*ret = &f->file;
	return 0;
}

static int disk_close(struct lac_file *file)
{
	int rc = call(CLOSE, ((struct disk_file *)file)->path);

	pthread_mutex_lock(&disk.mutex);
	disk.open_now--;
	pthread_mutex_unlock(&disk.mutex);
	free(file);
	return rc;
}

static int disk_sync(struct lac_file *file)
{
	struct disk_file *f = (struct disk_file *)file;

	assert_true(f->flags & LAC_OPEN_WRITE);
	return call(SYNC, f->path);
}

static const struct lac_backend_ops disk_ops = {
	.open = disk_open,
	.close = disk_close,
	.sync = disk_sync,
};

static int setup_limit(unsigned limit)
{
	memset(&disk, 0, sizeof(disk));
	disk.be.ops = &disk_ops;
	for (int op = 0; op < OPS; op++)
		strcpy(disk.fail_path[op], "-");
	pthread_mutex_init(&disk.mutex, NULL);
	sem_init(&disk.entered, 0, 0);
	sem_init(&disk.leave, 0, 0);
	return lac__files_new(&disk.be, limit, &files);
}

static int setup(void **state)
{
	return setup_limit(2);
}

/* Tests that end with a failure in the set free it themselves. */
static int teardown(void **state)
{
	int rc = lac__files_free(files);

	files = NULL;
	return rc != 0 || disk.open_now != 0;
}

static void make_fail(enum op op, const char *path, int code)
{
	snprintf(disk.fail_path[op], sizeof(disk.fail_path[op]), "%s", path);
	disk.fail_code[op] = code;
}

static void gate(enum op op, const char *path)
{
	snprintf(disk.gate_path[op], sizeof(disk.gate_path[op]), "%s", path);
}

static struct lac__held *hold(const char *path)
{
	struct lac__held *held = NULL;

	assert_int_equal(lac__files_hold(files, path, LAC_OPEN_WRITE, &held, NULL), 0);
	return held;
}

/* Opens, and lets go. */
static void touch(const char *path)
{
	lac__files_release(hold(path));
}

static void write_to(const char *path)
{
	struct lac__held *held = hold(path);

	lac__held_wrote(held);
	lac__files_release(held);
}

static void expect_log(const char *want)
{
	assert_string_equal(disk.log, want);
	disk.log[0] = '\0';
}

static void a_file_is_opened_once(void **state)
{
	struct lac__held *one = hold("a"), *two = hold("a");

	assert_ptr_equal(lac__held_file(one), lac__held_file(two));
	assert_ptr_equal(lac__files_backend(files), &disk.be);
	lac__files_release(one);
	lac__files_release(two);
	touch("a");
	expect_log("+a ");
}

static void the_longest_unused_goes_first(void **state)
{
	touch("a");
	touch("b");
	touch("a");
	touch("c");
	expect_log("+a +b -b +c ");
	touch("d");
	expect_log("-a +d ");
	assert_int_equal(disk.most_open, 2);
	struct lac__files_stats stats;
	lac__files_stats(files, &stats);
	assert_int_equal(stats.opens, 4);
	assert_int_equal(stats.closes, 2);
	assert_int_equal(stats.open_now, 2);
	assert_int_equal(stats.syncs, 0);
}

static void what_is_held_is_not_closed(void **state)
{
	struct lac__held *a = hold("a"), *b = hold("b"), *c = hold("c");

	/* Beyond the limit rather than refused; back below it as soon as can be. */
	expect_log("+a +b +c ");
	lac__files_release(b);
	expect_log("-b ");
	lac__files_release(a);
	lac__files_release(c);
	expect_log("");
}

static void what_is_dirty_is_synced_before_it_is_closed(void **state)
{
	write_to("a");
	touch("b");
	/* b is younger but clean. */
	touch("c");
	expect_log("+a +b -b +c ");
	write_to("c");
	touch("d");
	expect_log("!a -a +d ");
	struct lac__files_stats stats;
	lac__files_stats(files, &stats);
	assert_int_equal(stats.syncs, 1);
}

static void a_release_never_syncs(void **state)
{
	struct lac__held *held[3] = {hold("a"), hold("b"), hold("c")};

	for (int i = 0; i < 3; i++) {
		lac__held_wrote(held[i]);
		lac__files_release(held[i]);
	}
	expect_log("+a +b +c ");
	touch("d");
	expect_log("!a -a !b -b +d ");
}

static void sync_covers_writes_once(void **state)
{
	struct lac__held *a = hold("a");

	assert_int_equal(lac__held_sync(a, NULL), 0);
	lac__held_wrote(a);
	assert_true(lac__held_dirty(a));
	assert_int_equal(lac__held_sync(a, NULL), 0);
	assert_false(lac__held_dirty(a));
	assert_int_equal(lac__held_sync(a, NULL), 0);
	lac__files_release(a);
	expect_log("+a !a ");
}

static void all_below_a_prefix_are_synced(void **state)
{
	lac__files_free(files);
	assert_int_equal(setup_limit(100), 0);
	write_to("data/1");
	write_to("data/2");
	write_to("index/1");
	touch("data/3");
	assert_int_equal(lac__files_sync(files, "data/", NULL), 0);
	assert_int_equal(disk.count[SYNC], 2);
	assert_null(strstr(disk.log, "!index/1"));
	assert_int_equal(lac__files_sync(files, "", NULL), 0);
	assert_int_equal(disk.count[SYNC], 3);
	assert_int_equal(lac__files_sync(files, "", NULL), 0);
	assert_int_equal(disk.count[SYNC], 3);
}

static void a_failed_open_leaves_no_trace(void **state)
{
	struct lac__held *held = NULL;
	struct lac_error err;

	make_fail(OPEN, "a", -EACCES);
	assert_int_equal(lac__files_hold(files, "a", 0, &held, &err), -EACCES);
	assert_null(held);
	assert_non_null(strstr(err.message, "open a: "));
	struct lac__files_stats stats;
	lac__files_stats(files, &stats);
	assert_int_equal(stats.open_now, 0);
	assert_int_equal(stats.opens, 0);
	make_fail(OPEN, "a", 0);
	touch("a");
}

static void a_failed_sync_stays_with_the_file(void **state)
{
	struct lac__held *held;
	struct lac_error err;

	write_to("a");
	make_fail(SYNC, "a", -EIO);
	assert_int_equal(lac__files_sync(files, "", &err), -EIO);
	assert_non_null(strstr(err.message, "sync a: "));
	make_fail(SYNC, "a", 0);
	/* Whatever comes, its descriptor stays: the limit is exceeded by it. */
	touch("b");
	touch("c");
	touch("d");
	assert_null(strstr(disk.log, "-a"));
	held = hold("a");
	assert_int_equal(lac__held_sync(held, &err), -EIO);
	assert_non_null(strstr(err.message, "sync a: "));
	lac__files_release(held);
	assert_int_equal(lac__files_sync(files, "", NULL), -EIO);
	assert_int_equal(disk.count[SYNC], 1);
	assert_int_equal(lac__files_sync(files, "b", NULL), 0);

	assert_int_equal(lac__files_free(files), -EIO);
	assert_int_equal(setup_limit(2), 0);
}

static void one_failure_does_not_keep_others_from_their_sync(void **state)
{
	struct lac_error err;

	write_to("a");
	write_to("b");
	make_fail(SYNC, "a", -ENOSPC);
	assert_int_equal(lac__files_sync(files, "", &err), -ENOSPC);
	assert_int_equal(err.code, -ENOSPC);
	assert_non_null(strstr(disk.log, "!b"));
	lac__files_free(files);
	assert_int_equal(setup_limit(2), 0);

	/* Of several failures the first is told, in code and message alike. */
	write_to("a");
	write_to("b");
	make_fail(SYNC, "*", -100);
	assert_int_equal(lac__files_sync(files, "", &err), -101);
	assert_int_equal(err.code, -101);
	lac__files_free(files);
	assert_int_equal(setup_limit(2), 0);
}

static void a_sync_that_fails_for_room_is_remembered(void **state)
{
	struct lac__held *held;

	write_to("a");
	write_to("b");
	make_fail(SYNC, "a", -EIO);
	/* a can't be closed any more, b is next. */
	touch("c");
	expect_log("+a +b !a !b -b +c ");
	held = hold("a");
	assert_int_equal(lac__held_sync(held, NULL), -EIO);
	lac__files_release(held);
	lac__files_free(files);
	assert_int_equal(setup_limit(2), 0);
}

static void a_failed_close_is_a_failed_sync(void **state)
{
	struct lac__held *held;

	touch("a");
	touch("b");
	make_fail(CLOSE, "a", -EIO);
	touch("c");
	make_fail(CLOSE, "a", 0);
	expect_log("+a +b -a +c ");
	assert_int_equal(lac__files_sync(files, "", NULL), -EIO);
	/* It can be read again, but is not whole. */
	held = hold("a");
	assert_non_null(lac__held_file(held));
	assert_int_equal(lac__held_sync(held, NULL), -EIO);
	lac__files_release(held);
	assert_int_equal(lac__files_free(files), -EIO);
	assert_int_equal(disk.open_now, 0);
	assert_int_equal(setup_limit(2), 0);
}

static void free_reports_a_failed_close(void **state)
{
	touch("a");
	make_fail(CLOSE, "a", -EDQUOT);
	assert_int_equal(lac__files_free(files), -EDQUOT);
	assert_int_equal(lac__files_free(NULL), 0);
	assert_int_equal(setup_limit(2), 0);
}

static void a_read_only_file_is_reopened_for_writing(void **state)
{
	struct lac__held *reader, *writer;

	assert_int_equal(lac__files_hold(files, "a", LAC_OPEN_DIRECT, &reader, NULL), 0);
	struct lac_file *old = lac__held_file(reader);
	assert_int_equal(lac__files_hold(files, "a", LAC_OPEN_WRITE, &writer, NULL), 0);
	struct lac_file *new = lac__held_file(writer);
	assert_ptr_not_equal(old, new);
	assert_int_equal(((struct disk_file *)old)->flags, LAC_OPEN_DIRECT);
	assert_int_equal(((struct disk_file *)new)->flags, LAC_OPEN_DIRECT | LAC_OPEN_WRITE);
	lac__held_wrote(writer);
	assert_int_equal(lac__held_sync(writer, NULL), 0);
	/* The reader may still use what it got. */
	lac__files_release(writer);
	expect_log("+a +a !a ");
	lac__files_release(reader);
	expect_log("-a ");
	assert_int_equal(lac__files_hold(files, "a", 0, &reader, NULL), 0);
	assert_ptr_equal(lac__held_file(reader), new);
	lac__files_release(reader);
}

static void an_upgrade_that_fails_leaves_the_reader(void **state)
{
	struct lac__held *reader, *writer = NULL;

	assert_int_equal(lac__files_hold(files, "a", 0, &reader, NULL), 0);
	make_fail(OPEN, "a", -EROFS);
	assert_int_equal(lac__files_hold(files, "a", LAC_OPEN_WRITE, &writer, NULL), -EROFS);
	assert_null(writer);
	lac__files_release(reader);
	assert_int_equal(lac__files_hold(files, "a", 0, &reader, NULL), 0);
	lac__files_release(reader);
	expect_log("+a +a ");
}

static void forgetting_closes_now_or_at_the_last_release(void **state)
{
	struct lac__held *old, *new;

	lac__files_forget(files, "none");
	touch("a");
	lac__files_forget(files, "a");
	expect_log("+a -a ");

	old = hold("a");
	lac__held_wrote(old);
	lac__files_forget(files, "a");
	lac__files_forget(files, "a");
	expect_log("+a ");
	/* A new file of that name is another one. */
	new = hold("a");
	assert_ptr_not_equal(old, new);
	assert_false(lac__held_dirty(new));
	lac__files_release(old);
	expect_log("+a -a ");
	lac__files_release(new);
	expect_log("");
}

static void forgetting_ends_a_failure(void **state)
{
	write_to("a");
	make_fail(SYNC, "a", -EIO);
	assert_int_equal(lac__files_sync(files, "", NULL), -EIO);
	lac__files_forget(files, "a");
	assert_int_equal(lac__files_sync(files, "", NULL), 0);

	touch("b");
	touch("c");
	make_fail(CLOSE, "b", -EIO);
	touch("d");
	lac__files_forget(files, "b");
	assert_int_equal(lac__files_sync(files, "", NULL), 0);
	struct lac__files_stats stats;
	lac__files_stats(files, &stats);
	assert_int_equal(stats.open_now, disk.open_now);
}

static void idle_files_give_way_when_the_process_has_no_descriptor_left(void **state)
{
	struct lac__held *b, *c, *d = NULL;

	disk.room = 2;
	lac__files_free(files);
	assert_int_equal(setup_limit(10), 0);
	disk.room = 2;
	touch("a");
	b = hold("b");
	c = hold("c");
	assert_int_equal(lac__files_hold(files, "d", 0, &d, NULL), -EMFILE);
	lac__files_release(b);
	lac__files_release(c);
	touch("d");
	assert_int_equal(disk.most_open, 2);
}

/* ---- threads ---- */

struct caller {
	pthread_t thread;
	const char *path;
	struct lac__held *held;
	int result;
	atomic_bool begun, ended;
};

static void *run_hold(void *arg)
{
	struct caller *c = arg;

	c->begun = true;
	c->result = lac__files_hold(files, c->path, LAC_OPEN_WRITE, &c->held, NULL);
	c->ended = true;
	return NULL;
}

static void *run_sync(void *arg)
{
	struct caller *c = arg;

	c->begun = true;
	c->result = lac__files_sync(files, c->path, NULL);
	c->ended = true;
	return NULL;
}

static void start(struct caller *c, void *(*run)(void *), const char *path)
{
	*c = (struct caller){.path = path, .result = 99};
	assert_int_equal(pthread_create(&c->thread, NULL, run, c), 0);
	while (!c->begun)
		sched_yield();
}

static void two_that_open_the_same_share_one_open(void **state)
{
	struct caller one, two;

	gate(OPEN, "a");
	start(&one, run_hold, "a");
	sem_wait(&disk.entered);
	start(&two, run_hold, "a");
	/* Others are not held up. */
	touch("b");
	assert_false(two.ended);
	sem_post(&disk.leave);
	pthread_join(one.thread, NULL);
	pthread_join(two.thread, NULL);
	assert_int_equal(one.result, 0);
	assert_ptr_equal(one.held, two.held);
	expect_log("+a +b ");
	lac__files_release(one.held);
	lac__files_release(two.held);
}

static void one_waits_for_an_open_that_fails_and_tries_itself(void **state)
{
	struct caller one, two;

	gate(OPEN, "a");
	make_fail(OPEN, "a", -EIO);
	start(&one, run_hold, "a");
	sem_wait(&disk.entered);
	start(&two, run_hold, "a");
	make_fail(OPEN, "a", 0);
	sem_post(&disk.leave);
	pthread_join(one.thread, NULL);
	pthread_join(two.thread, NULL);
	assert_int_equal(one.result, -EIO);
	assert_int_equal(two.result, 0);
	lac__files_release(two.held);
}

static void a_file_that_is_being_closed_is_opened_again(void **state)
{
	struct caller evicting, again;

	touch("a");
	touch("b");
	gate(CLOSE, "a");
	start(&evicting, run_hold, "c");
	sem_wait(&disk.entered);
	start(&again, run_hold, "a");
	struct lac__held *b = hold("b");
	assert_false(again.ended);
	sem_post(&disk.leave);
	pthread_join(evicting.thread, NULL);
	pthread_join(again.thread, NULL);
	assert_int_equal(again.result, 0);
	lac__files_release(b);
	lac__files_release(again.held);
	lac__files_release(evicting.held);
}

static void a_sync_for_room_holds_up_nobody(void **state)
{
	struct caller opening;

	write_to("a");
	write_to("b");
	gate(SYNC, "a");
	start(&opening, run_hold, "c");
	sem_wait(&disk.entered);
	/* The file that is being synced can be had as well, and is then not closed. */
	struct lac__held *a = hold("a"), *b = hold("b");
	sem_post(&disk.leave);
	pthread_join(opening.thread, NULL);
	assert_int_equal(opening.result, 0);
	expect_log("+a +b !a +c ");
	lac__files_release(a);
	lac__files_release(b);
	lac__files_release(opening.held);
}

static void a_file_may_be_forgotten_while_it_is_synced(void **state)
{
	struct caller syncing;

	write_to("a");
	write_to("b");
	gate(SYNC, "a");
	start(&syncing, run_sync, "");
	sem_wait(&disk.entered);
	lac__files_forget(files, "a");
	lac__files_forget(files, "b");
	assert_null(strstr(disk.log, "-a"));
	sem_post(&disk.leave);
	pthread_join(syncing.thread, NULL);
	assert_int_equal(syncing.result, 0);
	assert_int_equal(disk.open_now, 0);
}

static void *run_many(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	char path[8];

	for (int i = 0; i < 2000; i++) {
		unsigned random = (unsigned)rand_r(&seed);
		struct lac__held *held;
		snprintf(path, sizeof(path), "%u", random % 7);
		unsigned flags = random / 7 % 3 ? LAC_OPEN_WRITE : 0;
		if (lac__files_hold(files, path, flags, &held, NULL) != 0)
			return arg;
		if (flags && random / 32 % 2)
			lac__held_wrote(held);
		if (random / 64 % 4 == 0 && lac__held_sync(held, NULL) != 0)
			return arg;
		if (random / 256 % 16 == 0)
			lac__files_forget(files, path);
		if (random / 4096 % 32 == 0 && lac__files_sync(files, "", NULL) != 0)
			return arg;
		lac__files_release(held);
	}
	return NULL;
}

static void many_threads_leave_a_set_in_order(void **state)
{
	pthread_t threads[4];
	struct lac__files_stats stats;

	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_many, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++) {
		void *result;
		pthread_join(threads[i], &result);
		assert_null(result);
	}
	assert_int_equal(lac__files_sync(files, "", NULL), 0);
	/* Four holders and what each of them supersedes or opens, beside the limit. */
	assert_in_range(disk.most_open, 2, 2 + 4 * 2);
	lac__files_stats(files, &stats);
	assert_int_equal(stats.open_now, disk.open_now);
	assert_in_range(stats.open_now, 0, 2);
	assert_int_equal(stats.opens, disk.count[OPEN]);
	assert_int_equal(stats.closes, disk.count[CLOSE]);
	assert_int_equal(stats.syncs, disk.count[SYNC]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_opened_once),
		TEST(the_longest_unused_goes_first),
		TEST(what_is_held_is_not_closed),
		TEST(what_is_dirty_is_synced_before_it_is_closed),
		TEST(a_release_never_syncs),
		TEST(sync_covers_writes_once),
		TEST(all_below_a_prefix_are_synced),
		TEST(a_failed_open_leaves_no_trace),
		TEST(a_failed_sync_stays_with_the_file),
		TEST(one_failure_does_not_keep_others_from_their_sync),
		TEST(a_sync_that_fails_for_room_is_remembered),
		TEST(a_failed_close_is_a_failed_sync),
		TEST(free_reports_a_failed_close),
		TEST(a_read_only_file_is_reopened_for_writing),
		TEST(an_upgrade_that_fails_leaves_the_reader),
		TEST(forgetting_closes_now_or_at_the_last_release),
		TEST(forgetting_ends_a_failure),
		TEST(idle_files_give_way_when_the_process_has_no_descriptor_left),
		TEST(two_that_open_the_same_share_one_open),
		TEST(one_waits_for_an_open_that_fails_and_tries_itself),
		TEST(a_file_that_is_being_closed_is_opened_again),
		TEST(a_sync_for_room_holds_up_nobody),
		TEST(a_file_may_be_forgotten_while_it_is_synced),
		TEST(many_threads_leave_a_set_in_order),
	};

	return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
