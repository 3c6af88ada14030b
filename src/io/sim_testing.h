/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim_testing.h - short ways to say things, for the tests of the lying backend.
 */
#ifndef LAC_IO_SIM_TESTING_H
#define LAC_IO_SIM_TESTING_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "io/sim.h"

#define KIB ((uint64_t)1024)

static inline struct lac_backend *make(struct lac__sim_options options)
{
	struct lac_backend *be = NULL;

	assert_int_equal(lac__sim_new(&options, &be), 0);
	return be;
}

static inline struct lac_backend *fresh(void)
{
	return make((struct lac__sim_options){0});
}

static inline struct lac_file *open_flags(struct lac_backend *be, const char *path, unsigned flags)
{
	struct lac_file *f = NULL;

	assert_int_equal(be->ops->open(be, path, flags, &f), 0);
	assert_ptr_equal(f->backend, be);
	return f;
}

static inline struct lac_file *open_new(struct lac_backend *be, const char *path)
{
	return open_flags(be, path, LAC_OPEN_WRITE | LAC_OPEN_CREATE);
}

static inline struct lac_file *open_old(struct lac_backend *be, const char *path)
{
	return open_flags(be, path, LAC_OPEN_WRITE);
}

static inline void shut(struct lac_file *f)
{
	assert_int_equal(f->backend->ops->close(f), 0);
}

static inline ssize_t fill(struct lac_file *f, uint64_t offset, char c, size_t length)
{
	char *bytes = malloc(length ? length : 1);
	ssize_t n;

	assert_non_null(bytes);
	memset(bytes, c, length);
	n = f->backend->ops->pwrite(f, bytes, length, offset);
	free(bytes);
	return n;
}

static inline void put(struct lac_file *f, uint64_t offset, char c, size_t length)
{
	assert_int_equal(fill(f, offset, c, length), length);
}

static inline int sync_file(struct lac_file *f)
{
	return f->backend->ops->sync(f);
}

static inline int sync_root(struct lac_backend *be)
{
	return be->ops->sync_dir(be, "");
}

/* The file as a fresh reader sees it: -errno or the number of bytes, which land in got. */
static char got[1024 * 1024];

static inline ssize_t load_flags(struct lac_backend *be, const char *path, unsigned flags)
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

static inline ssize_t load(struct lac_backend *be, const char *path)
{
	return load_flags(be, path, 0);
}

static inline bool all(size_t from, size_t to, char c)
{
	for (size_t i = from; i < to; i++)
		if (got[i] != c)
			return false;
	return true;
}

static inline void expect_file(struct lac_backend *be, const char *path, size_t length, char c)
{
	assert_int_equal(load(be, path), length);
	assert_true(all(0, length, c));
}

static inline struct lac_backend *crash(
	struct lac_backend *be, enum lac__sim_crash_mode mode, uint64_t seed)
{
	struct lac_backend *after = NULL;

	assert_int_equal(lac__sim_crash(be, mode, seed, &after), 0);
	return after;
}

/* A file of length bytes c, durable with its name, and open. */
static inline struct lac_file *durable(
	struct lac_backend *be, const char *path, char c, size_t length)
{
	struct lac_file *f = open_new(be, path);

	if (length)
		put(f, 0, c, length);
	assert_int_equal(sync_file(f), 0);
	assert_int_equal(sync_root(be), 0);
	assert_int_equal(lac__sim_unsynced(be), 0);
	return f;
}

static inline bool exists(struct lac_backend *be, const char *path)
{
	struct lac_file_info info;
	int rc = be->ops->path_info(be, path, &info);

	assert_true(rc == 0 || rc == -ENOENT);
	return rc == 0;
}

static inline bool exists_after(
	struct lac_backend *be, enum lac__sim_crash_mode mode, uint64_t seed, const char *path)
{
	struct lac_backend *after = crash(be, mode, seed);
	bool there = exists(after, path);

	lac__sim_free(after);
	return there;
}

static inline int gather(void *arg, const char *name)
{
	char *names = arg;

	if (strcmp(name, "stop") == 0)
		return 7;
	strcat(strcat(names, name), " ");
	return 0;
}

#endif
