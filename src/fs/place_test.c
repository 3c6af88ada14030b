/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs/place_test.c - the probe against filesystems that are known because they are made up here, and
 * against the real one that the test runs on.
 */
#include "fs/place.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"

enum { SECTOR = 512, SECTORS = 8192 };

enum op { OPEN, WRITE, SYNC, ALLOCATE, PUNCH, TRUNCATE, CLOSE, OPS };

/* One file; space is held in whole units, and freed when no sector of one is in use. */
static struct {
	struct lac_backend be;
	struct lac_file file;
	struct lac_place_info info;
	bool there, in_use[SECTORS];
	uint64_t size;
	uint32_t unit;
	char path[64];
	bool empty_allocate, useless_punch, partial_fails, counts_nothing;
	bool written; /* partial_fails: only what was written can be freed */
	int fail_code[OPS], opens, unlinks;
} disk;

static int disk_open(
	struct lac_backend *be, const char *path, unsigned flags, struct lac_file **ret)
{
	if (disk.fail_code[OPEN] < 0)
		return disk.fail_code[OPEN];
	assert_true(flags & LAC_OPEN_EXCLUSIVE);
	if (disk.there)
		return -EEXIST;
	snprintf(disk.path, sizeof(disk.path), "%s", path);
	disk.there = true;
	disk.opens++;
	disk.file.backend = be;
	*ret = &disk.file;
	return 0;
}

static int disk_close(struct lac_file *file)
{
	disk.opens--;
	return disk.fail_code[CLOSE];
}

static void mark(uint64_t offset, uint64_t length, bool value)
{
	assert_true(offset + length <= (uint64_t)SECTORS * SECTOR);
	for (uint64_t i = offset / SECTOR; i < (offset + length) / SECTOR; i++)
		disk.in_use[i] = value;
	if (value && offset + length > disk.size)
		disk.size = offset + length;
}

static ssize_t disk_pwrite(struct lac_file *file, const void *bytes, size_t length, uint64_t offset)
{
	if (disk.fail_code[WRITE] < 0)
		return disk.fail_code[WRITE];
	disk.written = true;
	mark(offset, length, true);
	return (ssize_t)length;
}

static int disk_sync(struct lac_file *file)
{
	return disk.fail_code[SYNC];
}

static int disk_allocate(struct lac_file *file, uint64_t offset, uint64_t length)
{
	if (disk.fail_code[ALLOCATE] == 0 && !disk.empty_allocate)
		mark(offset, length, true);
	return disk.fail_code[ALLOCATE];
}

static int disk_punch(struct lac_file *file, uint64_t offset, uint64_t length)
{
	assert_true(offset + length <= disk.size);
	if (disk.fail_code[PUNCH] == 0 && !disk.useless_punch &&
		!(disk.partial_fails && !disk.written))
		mark(offset, length, false);
	return disk.fail_code[PUNCH];
}

static int disk_truncate(struct lac_file *file, uint64_t size)
{
	assert_int_equal(size, 0);
	memset(disk.in_use, 0, sizeof(disk.in_use));
	disk.size = 0;
	disk.written = false;
	return disk.fail_code[TRUNCATE];
}

static int disk_file_info(struct lac_file *file, struct lac_file_info *ret)
{
	uint32_t each = disk.unit / SECTOR;

	*ret = (struct lac_file_info){.size_bytes = disk.size};
	for (uint32_t unit = 0; unit < SECTORS / each && !disk.counts_nothing; unit++) {
		bool any = false;
		for (uint32_t i = 0; i < each; i++)
			any |= disk.in_use[unit * each + i];
		ret->allocated_bytes += any ? disk.unit : 0;
	}
	return 0;
}

static int disk_unlink(struct lac_backend *be, const char *path)
{
	if (!disk.there)
		return -ENOENT;
	disk.there = false;
	disk.unlinks++;
	return 0;
}

static int disk_place_info(struct lac_backend *be, const char *path, struct lac_place_info *ret)
{
	if (strcmp(path, "none") == 0)
		return -ENOENT;
	*ret = disk.info;
	return 0;
}

static const struct lac_backend_ops disk_ops = {
	.open = disk_open,
	.close = disk_close,
	.pwrite = disk_pwrite,
	.sync = disk_sync,
	.allocate = disk_allocate,
	.punch = disk_punch,
	.truncate = disk_truncate,
	.file_info = disk_file_info,
	.unlink = disk_unlink,
	.place_info = disk_place_info,
};

static struct lac__place place;

static int setup(void **state)
{
	memset(&disk, 0, sizeof(disk));
	memset(&place, 0xee, sizeof(place));
	disk.be.ops = &disk_ops;
	disk.unit = 4096;
	disk.info = (struct lac_place_info){.filesystem_type = 0x1234,
		.filesystem_id = 99,
		.block_bytes = 4096,
		.physical_sector_bytes = 512,
		.free_bytes = 1u << 30};
	return 0;
}

static void probe(void)
{
	assert_int_equal(lac__place_probe(&disk.be, "data", &place, NULL), 0);
	/* Whatever was found, nothing is left. */
	assert_false(disk.there);
	assert_int_equal(disk.opens, 0);
	assert_int_equal(place.filesystem_type, disk.info.filesystem_type);
	assert_int_equal(place.filesystem_id, 99);
	assert_int_equal(place.block_bytes, disk.info.block_bytes);
	assert_int_equal(place.physical_sector_bytes, 512);
}

enum {
	ALL = LAC__PLACE_ALLOCATE | LAC__PLACE_PUNCH | LAC__PLACE_PARTIAL | LAC__PLACE_PROBED,
	ASSUMED = LAC__PLACE_ALLOCATE | LAC__PLACE_PUNCH
};

static void what_works_is_found(void **state)
{
	probe();
	assert_int_equal(place.flags, ALL);
	assert_int_equal(place.reclaim_unit_bytes, 4096);
	assert_string_equal(disk.path, "data/probe.tmp");
	assert_int_equal(lac__place_probe(&disk.be, "", &place, NULL), 0);
	assert_string_equal(disk.path, "probe.tmp");
}

static void the_unit_is_what_is_freed_not_what_is_said(void **state)
{
	static const uint32_t units[] = {512, 1024, 8192, 65536, 262144, 524288, 2097152};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		setup(NULL);
		disk.unit = units[i];
		disk.info.block_bytes = units[i] < 4096 ? units[i] : 4096;
		probe();
		assert_int_equal(place.reclaim_unit_bytes, units[i]);
		assert_int_equal(place.flags, ALL);
	}
	/* And not less than is there, where the block is said to be a large one. */
	setup(NULL);
	disk.info.block_bytes = 1u << 20;
	probe();
	assert_int_equal(place.reclaim_unit_bytes, 4096);
	setup(NULL);
	disk.info.block_bytes = 0;
	probe();
	assert_int_equal(place.reclaim_unit_bytes, 4096);
}

static void a_punch_that_does_nothing_is_none(void **state)
{
	disk.useless_punch = true;
	probe();
	assert_int_equal(place.flags, LAC__PLACE_ALLOCATE | LAC__PLACE_PROBED);
	assert_int_equal(place.reclaim_unit_bytes, 0);

	setup(NULL);
	disk.fail_code[PUNCH] = -EOPNOTSUPP;
	probe();
	assert_int_equal(place.flags, LAC__PLACE_ALLOCATE | LAC__PLACE_PROBED);
	assert_int_equal(place.reclaim_unit_bytes, 0);
}

static void an_allocation_that_reserves_nothing_is_none(void **state)
{
	disk.empty_allocate = true;
	probe();
	assert_int_equal(place.flags, LAC__PLACE_PUNCH | LAC__PLACE_PROBED);

	setup(NULL);
	disk.fail_code[ALLOCATE] = -EOPNOTSUPP;
	probe();
	assert_int_equal(place.flags, LAC__PLACE_PUNCH | LAC__PLACE_PROBED);
	assert_int_equal(place.reclaim_unit_bytes, 4096);
}

static void a_part_of_an_extent_may_not_be_freed(void **state)
{
	disk.partial_fails = true;
	probe();
	assert_int_equal(place.flags, ALL & ~LAC__PLACE_PARTIAL);
}

static void filesystems_that_copy_are_known_by_name(void **state)
{
	static const uint32_t magics[] = {0x9123683e, 0x2fc12fc1, 0xca451a4e};

	for (size_t i = 0; i < 3; i++) {
		setup(NULL);
		disk.info.filesystem_type = magics[i];
		probe();
		/* What they say of parts of extents is not true. */
		assert_int_equal(place.flags, (ALL & ~LAC__PLACE_PARTIAL) | LAC__PLACE_COW);
		assert_int_equal(lac__place_assume(&disk.be, "data", &place, NULL), 0);
		assert_int_equal(place.flags, ASSUMED | LAC__PLACE_COW);
	}
}

static void assuming_touches_nothing(void **state)
{
	struct lac_error err;

	assert_int_equal(lac__place_assume(&disk.be, "data", &place, NULL), 0);
	assert_int_equal(place.flags, ASSUMED);
	assert_int_equal(place.reclaim_unit_bytes, 4096);
	assert_string_equal(disk.path, "");
	assert_int_equal(lac__place_assume(&disk.be, "none", &place, &err), -ENOENT);
	assert_non_null(strstr(err.message, "none: "));
	assert_int_equal(lac__place_probe(&disk.be, "none", &place, &err), -ENOENT);
}

static void a_full_disk_leaves_what_was_assumed(void **state)
{
	static const enum op ops[] = {OPEN, WRITE, SYNC, ALLOCATE};
	static const int codes[] = {-ENOSPC, -EDQUOT, -EFBIG, -EROFS};

	for (int i = 0; i < 16; i++) {
		setup(NULL);
		disk.fail_code[ops[i / 4]] = codes[i % 4];
		probe();
		assert_int_equal(place.flags, ASSUMED);
		assert_int_equal(place.reclaim_unit_bytes, 4096);
	}
}

static void numbers_that_do_not_count_prove_nothing(void **state)
{
	disk.counts_nothing = true;
	probe();
	assert_int_equal(place.flags, ASSUMED);
	assert_int_equal(place.reclaim_unit_bytes, 4096);
}

static void other_failures_are_failures_and_leave_nothing(void **state)
{
	struct lac_error err;

	for (int op = 0; op < CLOSE; op++) {
		setup(NULL);
		disk.fail_code[op] = -EIO;
		assert_int_equal(lac__place_probe(&disk.be, "data", &place, &err), -EIO);
		assert_int_equal(place.flags, 0xeeeeeeee);
		assert_non_null(strstr(err.message, "probe data/probe.tmp: "));
		assert_false(disk.there);
		assert_int_equal(disk.opens, 0);
	}
	setup(NULL);
	disk.fail_code[CLOSE] = -EIO;
	probe();
	assert_int_equal(place.flags, ALL);
}

static void a_leftover_is_removed(void **state)
{
	disk.there = true;
	probe();
	assert_int_equal(place.flags, ALL);
	assert_int_equal(disk.unlinks, 2);
}

static void the_real_filesystem_is_probed(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char root[4096];
	struct lac_backend *be;

	snprintf(root, sizeof(root), "%s/lacuna-place-XXXXXX", tmp ? tmp : ".");
	assert_non_null(mkdtemp(root));
	assert_int_equal(lac__backend_plain_new(root, &be, NULL), 0);
	assert_int_equal(be->ops->make_dir(be, "data"), 0);
	assert_int_equal(lac__place_probe(be, "data", &place, NULL), 0);
	if (place.reclaim_unit_bytes != 0)
		assert_true(lac__is_power_of_two(place.reclaim_unit_bytes));
	if (place.flags & LAC__PLACE_PROBED)
		assert_int_equal(place.reclaim_unit_bytes != 0, !!(place.flags & LAC__PLACE_PUNCH));
	/* Empty again. */
	assert_int_equal(be->ops->remove_dir(be, "data"), 0);
	lac__backend_plain_free(be);
	assert_int_equal(rmdir(root), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_works_is_found, setup),
		cmocka_unit_test_setup(the_unit_is_what_is_freed_not_what_is_said, setup),
		cmocka_unit_test_setup(a_punch_that_does_nothing_is_none, setup),
		cmocka_unit_test_setup(an_allocation_that_reserves_nothing_is_none, setup),
		cmocka_unit_test_setup(a_part_of_an_extent_may_not_be_freed, setup),
		cmocka_unit_test_setup(filesystems_that_copy_are_known_by_name, setup),
		cmocka_unit_test_setup(assuming_touches_nothing, setup),
		cmocka_unit_test_setup(a_full_disk_leaves_what_was_assumed, setup),
		cmocka_unit_test_setup(numbers_that_do_not_count_prove_nothing, setup),
		cmocka_unit_test_setup(other_failures_are_failures_and_leave_nothing, setup),
		cmocka_unit_test_setup(a_leftover_is_removed, setup),
		cmocka_unit_test_setup(the_real_filesystem_is_probed, setup),
	};

	return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
