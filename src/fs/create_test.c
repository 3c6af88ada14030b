/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs/create_test.c - files under their name are whole, and each step that fails leaves nothing.
 * The backend keeps names in memory and writes down what was asked of it, because what matters is
 * the order.
 */
#include "fs/create.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { NAMES = 8 };

struct node {
	struct lac_file file;
	char name[64]; /* "" = free */
	bool dir;
	char bytes[64];
	uint64_t size, allocated;
};

static struct {
	struct lac_backend be;
	struct node nodes[NAMES];
	char log[1024];
	int step, fail_step, fail_code; /* step counts calls that change something */
	unsigned flags;			/* of the last open */
	bool no_allocate;
} disk;

static int step(const char *what, const char *name)
{
	size_t end = strlen(disk.log);

	snprintf(disk.log + end, sizeof(disk.log) - end, "%s(%s) ", what, name);
	return disk.step++ == disk.fail_step ? disk.fail_code : 0;
}

static struct node *find(const char *name)
{
	for (int i = 0; i < NAMES; i++) {
		if (strcmp(disk.nodes[i].name, name) == 0)
			return &disk.nodes[i];
	}
	return NULL;
}

static struct node *add(const char *name, bool dir)
{
	struct node *node = find("");

	if (!node)
		abort(); /* more names than this test needs */
	memset(node, 0, sizeof(*node));
	node->file.backend = &disk.be;
	node->dir = dir;
	snprintf(node->name, sizeof(node->name), "%s", name);
	return node;
}

static int disk_open(
	struct lac_backend *be, const char *path, unsigned flags, struct lac_file **ret)
{
	int rc = step("open", path);

	disk.flags = flags;
	if (rc == 0 && find(path))
		rc = -EEXIST;
	if (rc == 0)
		*ret = &add(path, false)->file;
	return rc;
}

static int disk_close(struct lac_file *file)
{
	return step("close", ((struct node *)file)->name);
}

static ssize_t disk_pwrite(struct lac_file *file, const void *bytes, size_t length, uint64_t offset)
{
	struct node *node = (struct node *)file;
	int rc = step("write", node->name);

	if (rc < 0)
		return rc;
	assert_true(offset + length <= sizeof(node->bytes));
	memcpy(node->bytes + offset, bytes, length);
	if (offset + length > node->size)
		node->size = offset + length;
	return (ssize_t)length;
}

static int disk_sync(struct lac_file *file)
{
	return step("sync", ((struct node *)file)->name);
}

static int disk_allocate(struct lac_file *file, uint64_t offset, uint64_t length)
{
	struct node *node = (struct node *)file;
	int rc = step("allocate", node->name);

	if (rc == 0 && disk.no_allocate)
		rc = -EOPNOTSUPP;
	if (rc == 0)
		node->allocated = node->size = offset + length;
	return rc;
}

static int disk_rename(struct lac_backend *be, const char *from, const char *to)
{
	int rc = step("rename", to);
	struct node *old = find(to), *node = find(from);

	if (rc < 0)
		return rc;
	assert_non_null(node);
	if (old)
		old->name[0] = '\0';
	snprintf(node->name, sizeof(node->name), "%s", to);
	return 0;
}

static int disk_unlink(struct lac_backend *be, const char *path)
{
	int rc = step("unlink", path);
	struct node *node = find(path);

	if (rc == 0 && !node)
		rc = -ENOENT;
	if (rc == 0)
		node->name[0] = '\0';
	return rc;
}

static int disk_make_dir(struct lac_backend *be, const char *path)
{
	int rc = step("mkdir", path);

	if (rc == 0 && find(path))
		rc = -EEXIST;
	if (rc == 0)
		add(path, true);
	return rc;
}

static int disk_sync_dir(struct lac_backend *be, const char *path)
{
	return step("syncdir", path);
}

static int disk_path_info(struct lac_backend *be, const char *path, struct lac_file_info *ret)
{
	struct node *node = find(path);

	if (!node)
		return -ENOENT;
	*ret = (struct lac_file_info){.mode = node->dir ? S_IFDIR : S_IFREG};
	return 0;
}

static const struct lac_backend_ops disk_ops = {
	.open = disk_open,
	.close = disk_close,
	.pwrite = disk_pwrite,
	.sync = disk_sync,
	.allocate = disk_allocate,
	.rename = disk_rename,
	.unlink = disk_unlink,
	.make_dir = disk_make_dir,
	.sync_dir = disk_sync_dir,
	.path_info = disk_path_info,
};

static int setup(void **state)
{
	memset(&disk, 0, sizeof(disk));
	disk.be.ops = &disk_ops;
	disk.fail_step = -1;
	return 0;
}

static void expect_log(const char *want)
{
	assert_string_equal(disk.log, want);
	disk.log[0] = '\0';
}

static int create(struct lac_error *err)
{
	return lac__create_file(&disk.be, "d/f", LAC_OPEN_NOCOW, "bytes", 5, 1000, err);
}

static void a_file_gets_its_name_when_it_is_whole(void **state)
{
	assert_int_equal(create(NULL), 0);
	expect_log("unlink(d/f.tmp) open(d/f.tmp) allocate(d/f.tmp) write(d/f.tmp) sync(d/f.tmp) "
		   "close(d/f.tmp) rename(d/f) syncdir(d) ");
	assert_int_equal(
		disk.flags, LAC_OPEN_WRITE | LAC_OPEN_CREATE | LAC_OPEN_EXCLUSIVE | LAC_OPEN_NOCOW);
	struct node *node = find("d/f");
	assert_non_null(node);
	assert_memory_equal(node->bytes, "bytes", 5);
	assert_int_equal(node->size, 1000);
	assert_int_equal(node->allocated, 1000);
	assert_null(find("d/f.tmp"));
}

static void a_leftover_is_replaced(void **state)
{
	struct node *old = add("d/f.tmp", false);

	old->size = 50;
	assert_int_equal(create(NULL), 0);
	assert_null(find("d/f.tmp"));
	assert_int_equal(find("d/f")->size, 1000);
}

static void nothing_is_allocated_unless_asked_or_possible(void **state)
{
	assert_int_equal(lac__create_file(&disk.be, "f", 0, "x", 1, 0, NULL), 0);
	expect_log("unlink(f.tmp) open(f.tmp) write(f.tmp) sync(f.tmp) close(f.tmp) rename(f) "
		   "syncdir() ");
	disk.no_allocate = true;
	assert_int_equal(create(NULL), 0);
	assert_int_equal(find("d/f")->size, 5);
}

static void every_step_that_fails_leaves_nothing(void **state)
{
	static const char *const words[] = {"unlink d/f.tmp", "create d/f.tmp", "allocate d/f.tmp",
		"write d/f.tmp", "sync d/f.tmp", "close d/f.tmp", "rename d/f.tmp to d/f",
		"sync directory d"};
	struct lac_error err;

	for (int i = 0; i < 8; i++) {
		setup(NULL);
		disk.fail_step = i;
		disk.fail_code = -EIO;
		assert_int_equal(create(&err), -EIO);
		assert_int_equal(err.code, -EIO);
		assert_memory_equal(err.message, words[i], strlen(words[i]));
		assert_null(find("d/f"));
		assert_null(find("d/f.tmp"));
	}
}

static void a_replaced_file_is_not_lost_to_a_failure(void **state)
{
	for (int i = 0; i < 8; i++) {
		setup(NULL);
		struct node *old = add("d/f", false);
		old->size = 77;
		disk.fail_step = i;
		disk.fail_code = -EIO;
		assert_int_equal(create(NULL), -EIO);
		struct node *node = find("d/f");
		assert_non_null(node);
		assert_int_equal(node->size, i < 7 ? 77 : 1000);
	}
}

static void signals_are_no_failure(void **state)
{
	/* Those steps that a signal can interrupt; the log is longer by one. */
	static const int steps[] = {1, 2, 3, 4, 5, 7};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		setup(NULL);
		disk.fail_step = steps[i];
		disk.fail_code = -EINTR;
		assert_int_equal(create(NULL), 0);
		assert_non_null(find("d/f"));
	}
}

static void a_directory_may_be_there(void **state)
{
	struct lac_error err;

	assert_int_equal(lac__create_dir(&disk.be, "a/b", NULL), 0);
	expect_log("mkdir(a/b) syncdir(a) ");
	assert_true(find("a/b")->dir);
	/* The one who made it may have been cut off before its sync. */
	assert_int_equal(lac__create_dir(&disk.be, "a/b", NULL), 0);
	expect_log("mkdir(a/b) syncdir(a) ");
	add("f", false);
	assert_int_equal(lac__create_dir(&disk.be, "f", &err), -ENOTDIR);
	assert_non_null(strstr(err.message, "create directory f"));
	setup(NULL);
	disk.fail_step = 0;
	disk.fail_code = -ENOSPC;
	assert_int_equal(lac__create_dir(&disk.be, "g", &err), -ENOSPC);
	assert_int_equal(err.reason, LAC_REASON_NO_SPACE);
	disk.fail_step = 2;
	disk.fail_code = -EIO;
	assert_int_equal(lac__create_dir(&disk.be, "g", &err), -EIO);
	assert_non_null(strstr(err.message, "sync directory .:"));
}

static void a_removed_file_is_gone_for_good(void **state)
{
	struct lac_error err;

	add("d/f", false);
	assert_int_equal(lac__remove_file(&disk.be, "d/f", NULL), 0);
	expect_log("unlink(d/f) syncdir(d) ");
	assert_int_equal(lac__remove_file(&disk.be, "d/f", NULL), 0);
	expect_log("unlink(d/f) syncdir(d) ");
	disk.fail_step = disk.step;
	disk.fail_code = -EPERM;
	assert_int_equal(lac__remove_file(&disk.be, "d/f", &err), -EPERM);
	assert_non_null(strstr(err.message, "unlink d/f: "));
	expect_log("unlink(d/f) ");
	disk.fail_step = disk.step + 1;
	disk.fail_code = -EIO;
	assert_int_equal(lac__remove_file(&disk.be, "d/f", &err), -EIO);
}

static void the_directory_part_of_a_path(void **state)
{
	char dir[4];

	assert_int_equal(lac__dir_of("f", dir, sizeof(dir)), 0);
	assert_string_equal(dir, "");
	assert_int_equal(lac__dir_of("a/f", dir, sizeof(dir)), 0);
	assert_string_equal(dir, "a");
	assert_int_equal(lac__dir_of("a/b/f", dir, sizeof(dir)), 0);
	assert_string_equal(dir, "a/b");
	assert_int_equal(lac__dir_of("abcd/f", dir, sizeof(dir)), -ENAMETOOLONG);
	assert_int_equal(lac__dir_of("f", dir, 0), -ENAMETOOLONG);
}

static void a_path_may_be_too_long(void **state)
{
	static char path[PATH_MAX + 10];

	memset(path, 'x', PATH_MAX - 3);
	assert_int_equal(lac__create_file(&disk.be, path, 0, "x", 1, 0, NULL), -ENAMETOOLONG);
	assert_int_equal(disk.step, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_file_gets_its_name_when_it_is_whole, setup),
		cmocka_unit_test_setup(a_leftover_is_replaced, setup),
		cmocka_unit_test_setup(nothing_is_allocated_unless_asked_or_possible, setup),
		cmocka_unit_test_setup(every_step_that_fails_leaves_nothing, setup),
		cmocka_unit_test_setup(a_replaced_file_is_not_lost_to_a_failure, setup),
		cmocka_unit_test_setup(signals_are_no_failure, setup),
		cmocka_unit_test_setup(a_directory_may_be_there, setup),
		cmocka_unit_test_setup(a_removed_file_is_gone_for_good, setup),
		cmocka_unit_test_setup(the_directory_part_of_a_path, setup),
		cmocka_unit_test_setup(a_path_may_be_too_long, setup),
	};

	return cmocka_run_group_tests_name("create", tests, NULL, NULL);
}
