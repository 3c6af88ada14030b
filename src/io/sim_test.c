/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim_test.c - the lying backend keeps its own promises. Everything else is tested with it, so
 * what it claims to lose, tear and report is pinned down here.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/clock.h"
#include "io/sim.h"

#define KIB ((uint64_t)1024)

/* ---- short ways to say things ---- */

static struct lac_backend *make(struct lac__sim_options options)
{
	struct lac_backend *be = NULL;

	assert_int_equal(lac__sim_new(&options, &be), 0);
	return be;
}

static struct lac_backend *fresh(void)
{
	return make((struct lac__sim_options){0});
}

static struct lac_file *open_flags(struct lac_backend *be, const char *path, unsigned flags)
{
	struct lac_file *f = NULL;

	assert_int_equal(be->ops->open(be, path, flags, &f), 0);
	assert_ptr_equal(f->backend, be);
	return f;
}

static struct lac_file *open_new(struct lac_backend *be, const char *path)
{
	return open_flags(be, path, LAC_OPEN_WRITE | LAC_OPEN_CREATE);
}

static struct lac_file *open_old(struct lac_backend *be, const char *path)
{
	return open_flags(be, path, LAC_OPEN_WRITE);
}

static void shut(struct lac_file *f)
{
	assert_int_equal(f->backend->ops->close(f), 0);
}

static ssize_t fill(struct lac_file *f, uint64_t offset, char c, size_t length)
{
	char *bytes = malloc(length ? length : 1);
	ssize_t n;

	assert_non_null(bytes);
	memset(bytes, c, length);
	n = f->backend->ops->pwrite(f, bytes, length, offset);
	free(bytes);
	return n;
}

static void put(struct lac_file *f, uint64_t offset, char c, size_t length)
{
	assert_int_equal(fill(f, offset, c, length), length);
}

static int sync_file(struct lac_file *f)
{
	return f->backend->ops->sync(f);
}

static int sync_root(struct lac_backend *be)
{
	return be->ops->sync_dir(be, "");
}

/* The file as a fresh reader sees it: -errno or the number of bytes, which land in got. */
static char got[1024 * 1024];

static ssize_t load_flags(struct lac_backend *be, const char *path, unsigned flags)
{
	static char aligned[sizeof(got)] __attribute__((aligned(4096)));
	struct lac_file *f = NULL;
	int rc = be->ops->open(be, path, flags, &f);
	ssize_t n;

	if (rc < 0)
		return rc;
	n = be->ops->pread(f, aligned, sizeof(aligned), 0);
	memcpy(got, aligned, sizeof(got));
	shut(f);
	return n;
}

static ssize_t load(struct lac_backend *be, const char *path)
{
	return load_flags(be, path, 0);
}

static bool all(size_t from, size_t to, char c)
{
	for (size_t i = from; i < to; i++)
		if (got[i] != c)
			return false;
	return true;
}

static void expect_file(struct lac_backend *be, const char *path, size_t length, char c)
{
	assert_int_equal(load(be, path), length);
	assert_true(all(0, length, c));
}

static struct lac_backend *crash(
	struct lac_backend *be, enum lac__sim_crash_mode mode, uint64_t seed)
{
	struct lac_backend *after = NULL;

	assert_int_equal(lac__sim_crash(be, mode, seed, &after), 0);
	return after;
}

/* A file of length bytes c, durable with its name, and open. */
static struct lac_file *durable(struct lac_backend *be, const char *path, char c, size_t length)
{
	struct lac_file *f = open_new(be, path);

	if (length)
		put(f, 0, c, length);
	assert_int_equal(sync_file(f), 0);
	assert_int_equal(sync_root(be), 0);
	assert_int_equal(lac__sim_unsynced(be), 0);
	return f;
}

/* ---- reading and writing ---- */

static void test_read_write(void **state)
{
	struct lac_backend *be = fresh();
	struct lac_file *f = open_new(be, "a");
	struct lac_file_info info;
	char byte;

	put(f, 4090, 'x', 10);
	assert_int_equal(load(be, "a"), 4100);
	assert_true(all(0, 4090, 0));
	assert_true(all(4090, 4100, 'x'));
	assert_int_equal(be->ops->file_info(f, &info), 0);
	assert_int_equal(info.size_bytes, 4100);
	assert_int_equal(info.allocated_bytes, 8192);
	assert_true(S_ISREG(info.mode));
	assert_int_equal(be->ops->pread(f, &byte, 1, 4100), 0);
	assert_int_equal(be->ops->pread(f, &byte, 1, 1 << 30), 0);
	assert_int_equal(fill(f, 0, 'y', 0), 0);
	assert_int_equal(fill(f, (uint64_t)1 << 60, 'y', 1), -EFBIG);
	shut(f);
	f = open_flags(be, "a", 0);
	assert_int_equal(fill(f, 0, 'y', 1), -EBADF);
	assert_int_equal(be->ops->allocate(f, 0, 1), -EBADF);
	assert_int_equal(be->ops->punch(f, 0, 1), -EBADF);
	assert_int_equal(be->ops->truncate(f, 0), -EINVAL);
	shut(f);
	lac__sim_free(be);
}

static void test_truncate_hides_nothing(void **state)
{
	struct lac_backend *be = fresh();
	struct lac_file *f = durable(be, "a", 'x', 10000);

	assert_int_equal(be->ops->truncate(f, 5000), 0);
	assert_int_equal(be->ops->truncate(f, 10000), 0);
	assert_int_equal(load(be, "a"), 10000);
	assert_true(all(0, 5000, 'x'));
	assert_true(all(5000, 10000, 0));
	shut(f);
	lac__sim_free(be);
}

/* ---- crash modes ---- */

static void test_drop_all_keep_all(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = durable(be, "a", 'x', 8192);

	put(f, 0, 'y', 4096);
	put(f, 8192, 'z', 100);
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	expect_file(after, "a", 8192, 'x');
	lac__sim_free(after);
	after = crash(be, LAC__SIM_KEEP_ALL, 0);
	assert_int_equal(load(after, "a"), 8292);
	assert_true(all(0, 4096, 'y') && all(4096, 8192, 'x') && all(8192, 8292, 'z'));
	assert_int_equal(lac__sim_digest(after), lac__sim_digest(be));
	assert_int_equal(lac__sim_unsynced(after), 0);
	lac__sim_free(after);
	assert_int_equal(sync_file(f), 0);
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	assert_int_equal(lac__sim_digest(after), lac__sim_digest(be));
	lac__sim_free(after);
	shut(f);
	lac__sim_free(be);
}

/* Atoms count over all files in order of issue. */
static void test_prefix_miss_only(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = durable(be, "a", 'x', 4096), *g = durable(be, "b", 'x', 4096);
	const char *want[][2] = {{"xx", "xx"}, {"ax", "xx"}, {"ax", "bx"}, {"ac", "bx"}};

	put(f, 0, 'a', 1);
	put(g, 0, 'b', 1);
	put(f, 1, 'c', 1);
	assert_int_equal(lac__sim_unsynced(be), 3);
	for (uint64_t n = 0; n < 4; n++) {
		after = crash(be, LAC__SIM_PREFIX, n);
		load(after, "a");
		assert_memory_equal(got, want[n][0], 2);
		load(after, "b");
		assert_memory_equal(got, want[n][1], 2);
		lac__sim_free(after);
	}
	after = crash(be, LAC__SIM_MISS_ONE, 0);
	load(after, "a");
	assert_memory_equal(got, "xc", 2);
	load(after, "b");
	assert_memory_equal(got, "bx", 2);
	lac__sim_free(after);
	after = crash(be, LAC__SIM_ONLY_ONE, 2);
	load(after, "a");
	assert_memory_equal(got, "xc", 2);
	load(after, "b");
	assert_memory_equal(got, "xx", 2);
	lac__sim_free(after);
	shut(f);
	shut(g);
	lac__sim_free(be);
}

/* An extending write is a size and its bytes. */
static void test_size_without_data(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = durable(be, "a", 'x', 100);

	put(f, 90, 'y', 20);
	assert_int_equal(lac__sim_unsynced(be), 2);
	after = crash(be, LAC__SIM_ONLY_ONE, 0);
	assert_int_equal(load(after, "a"), 110);
	assert_true(all(0, 100, 'x') && all(100, 110, 0));
	lac__sim_free(after);
	after = crash(be, LAC__SIM_ONLY_ONE, 1);
	assert_int_equal(load(after, "a"), 100);
	assert_true(all(0, 90, 'x') && all(90, 100, 'y'));
	lac__sim_free(after);
	shut(f);
	lac__sim_free(be);
}

/* The process dies: bytes stay seen, are still unsynced, and the lock is free. */
static void test_kill(void **state)
{
	struct lac_backend *be = fresh(), *after, *later;
	struct lac_file *f = durable(be, "a", 'x', 4096);
	void *lock = NULL, *other = NULL;
	int64_t pid = -1;

	assert_int_equal(be->ops->lock(be, &lock, &pid), 0);
	assert_int_equal(be->ops->lock(be, &other, &pid), -EBUSY);
	assert_true(pid > 0);
	put(f, 0, 'y', 4096);
	after = crash(be, LAC__SIM_KILL, 0);
	expect_file(after, "a", 4096, 'y');
	assert_int_equal(lac__sim_unsynced(after), 1);
	assert_int_equal(lac__sim_open_files(after, NULL), 0);
	assert_int_equal(after->ops->lock(after, &other, &pid), 0);
	after->ops->unlock(after, other);
	later = crash(after, LAC__SIM_DROP_ALL, 0);
	expect_file(later, "a", 4096, 'x');
	lac__sim_free(later);
	shut(f);
	f = open_old(after, "a");
	assert_int_equal(sync_file(f), 0);
	later = crash(after, LAC__SIM_DROP_ALL, 0);
	expect_file(later, "a", 4096, 'y');
	lac__sim_free(later);
	shut(f);
	lac__sim_free(after);
	be->ops->unlock(be, lock);
	assert_int_equal(be->ops->lock(be, &lock, &pid), 0);
	lac__sim_free(be);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_read_write),
	cmocka_unit_test(test_truncate_hides_nothing),
	cmocka_unit_test(test_drop_all_keep_all),
	cmocka_unit_test(test_prefix_miss_only),
	cmocka_unit_test(test_size_without_data),
	cmocka_unit_test(test_kill),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
