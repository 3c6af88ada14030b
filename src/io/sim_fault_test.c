/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim_fault_test.c - the lying backend's faults, its space, and what lets a test look at it.
 */
#include "io/sim_testing.h"

/* ---- failed syncs ---- */

static void arm(struct lac_backend *be, enum lac__sim_op kind, uint64_t n,
	enum lac__sim_fault fault, int64_t value)
{
	assert_true(lac__sim_arm(be, kind, NULL, n, false, fault, value));
}

/* What XFS and ext4 do: EIO once, then success, new bytes shown until the cache goes. */
static void test_sync_revert(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = durable(be, "a", 'x', 8192);

	arm(be, LAC__SIM_SYNC, 0, LAC__SIM_SYNC_REVERT, 0);
	put(f, 0, 'y', 8192);
	assert_int_equal(sync_file(f), -EIO);
	assert_int_equal(sync_file(f), 0);
	expect_file(be, "a", 8192, 'y');
	/* Past the cache is the truth. */
	assert_int_equal(load_flags(be, "a", LAC_OPEN_DIRECT), 8192);
	assert_true(all(0, 8192, 'x'));
	after = crash(be, LAC__SIM_KEEP_ALL, 0);
	expect_file(after, "a", 8192, 'x');
	lac__sim_free(after);
	/* The cache survives the process. */
	after = crash(be, LAC__SIM_KILL, 0);
	expect_file(after, "a", 8192, 'y');
	lac__sim_free(after);
	/* A later write is an ordinary one, alone. */
	put(f, 0, 'z', 4096);
	assert_int_equal(load_flags(be, "a", LAC_OPEN_DIRECT), 8192);
	assert_true(all(0, 4096, 'z') && all(4096, 8192, 'x'));
	assert_int_equal(sync_file(f), 0);
	load(be, "a");
	assert_true(all(0, 4096, 'z') && all(4096, 8192, 'y'));
	put(f, 100, 'w', 1);
	assert_int_equal(be->ops->drop_cache(f), 0);
	load(be, "a");
	assert_true(all(0, 100, 'z') && got[100] == 'w' && all(101, 4096, 'z'));
	assert_true(all(4096, 8192, 'x'));
	assert_int_equal(lac__sim_struck(be), 1);
	shut(f);
	lac__sim_free(be);
}

/* The lost end of a file comes back as zeros while the machine runs, and is gone after a crash; a
   later write into it brings its own size along. */
static void test_sync_revert_size(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = durable(be, "a", 'x', 100);

	arm(be, LAC__SIM_SYNC, 0, LAC__SIM_SYNC_REVERT, 0);
	put(f, 100, 'y', 100);
	assert_int_equal(sync_file(f), -EIO);
	assert_int_equal(be->ops->drop_cache(f), 0);
	assert_int_equal(load(be, "a"), 200);
	assert_true(all(0, 100, 'x') && all(100, 200, 0));
	after = crash(be, LAC__SIM_KEEP_ALL, 0);
	expect_file(after, "a", 100, 'x');
	lac__sim_free(after);
	put(f, 150, 'z', 10);
	assert_int_equal(sync_file(f), 0);
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	assert_int_equal(load(after, "a"), 160);
	assert_true(all(100, 150, 0) && all(150, 160, 'z'));
	lac__sim_free(after);
	shut(f);
	lac__sim_free(be);
}

static void test_sync_landed_and_half(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = durable(be, "a", 'x', 16384);

	arm(be, LAC__SIM_SYNC, 0, LAC__SIM_SYNC_LANDED, 0);
	put(f, 0, 'y', 16384);
	assert_int_equal(sync_file(f), -EIO);
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	expect_file(after, "a", 16384, 'y');
	lac__sim_free(after);
	arm(be, LAC__SIM_SYNC, 0, LAC__SIM_SYNC_HALF, 0);
	for (unsigned i = 0; i < 4; i++)
		put(f, i * 4096, 'z', 4096);
	assert_int_equal(sync_file(f), -EIO);
	expect_file(be, "a", 16384, 'z');
	after = crash(be, LAC__SIM_KEEP_ALL, 0);
	load(after, "a");
	assert_true(all(0, 4096, 'z') && all(4096, 8192, 'y') && all(8192, 12288, 'z') &&
		    all(12288, 16384, 'y'));
	lac__sim_free(after);
	shut(f);
	lac__sim_free(be);
}

static void test_sync_dir_faults(void **state)
{
	struct lac_backend *be = fresh();

	shut(open_new(be, "a"));
	arm(be, LAC__SIM_SYNC_DIR, 0, LAC__SIM_SYNC_REVERT, 0);
	assert_int_equal(sync_root(be), -EIO);
	assert_int_equal(sync_root(be), 0);
	assert_true(exists(be, "a"));
	assert_false(exists_after(be, LAC__SIM_KEEP_ALL, 0, "a"));
	assert_true(exists_after(be, LAC__SIM_KILL, 0, "a"));
	shut(open_new(be, "b"));
	arm(be, LAC__SIM_SYNC_DIR, 0, LAC__SIM_SYNC_LANDED, 0);
	assert_int_equal(sync_root(be), -EIO);
	assert_true(exists_after(be, LAC__SIM_DROP_ALL, 0, "b"));
	shut(open_new(be, "c"));
	shut(open_new(be, "d"));
	arm(be, LAC__SIM_SYNC_DIR, 0, LAC__SIM_SYNC_HALF, 0);
	assert_int_equal(sync_root(be), -EIO);
	assert_true(exists_after(be, LAC__SIM_KEEP_ALL, 0, "c"));
	assert_false(exists_after(be, LAC__SIM_KEEP_ALL, 0, "d"));
	lac__sim_free(be);
}

/* A write error that comes to light when the file is closed. */
static void test_late_error_at_close(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = durable(be, "a", 'x', 100);

	put(f, 0, 'y', 100);
	arm(be, LAC__SIM_CLOSE, 0, LAC__SIM_SYNC_REVERT, 0);
	assert_int_equal(be->ops->close(f), -EIO);
	assert_int_equal(lac__sim_open_files(be, NULL), 0);
	expect_file(be, "a", 100, 'y');
	after = crash(be, LAC__SIM_KEEP_ALL, 0);
	expect_file(after, "a", 100, 'x');
	lac__sim_free(after);
	lac__sim_free(be);
}

/* ---- other faults ---- */

static void test_errno(void **state)
{
	struct lac_backend *be = fresh();
	struct lac_file *f = durable(be, "a", 'x', 100), *g = NULL;
	struct lac_file_info info;
	char byte;

	arm(be, LAC__SIM_READ, 1, LAC__SIM_ERRNO, EIO);
	assert_int_equal(be->ops->pread(f, &byte, 1, 0), 1);
	assert_int_equal(be->ops->pread(f, &byte, 1, 0), -EIO);
	assert_int_equal(be->ops->pread(f, &byte, 1, 0), 1);
	arm(be, LAC__SIM_WRITE, 0, LAC__SIM_ERRNO, ENOSPC);
	assert_int_equal(fill(f, 0, 'y', 1), -ENOSPC);
	expect_file(be, "a", 100, 'x');
	arm(be, LAC__SIM_OPEN, 0, LAC__SIM_ERRNO, EMFILE);
	assert_int_equal(be->ops->open(be, "b", LAC_OPEN_CREATE, &g), -EMFILE);
	assert_false(exists(be, "b"));
	/* Any operation, for ever. */
	assert_true(lac__sim_arm(be, LAC__SIM_OPS, NULL, 1, true, LAC__SIM_ERRNO, EACCES));
	assert_int_equal(be->ops->file_info(f, &info), 0);
	assert_int_equal(be->ops->file_info(f, &info), -EACCES);
	assert_int_equal(be->ops->unlink(be, "a"), -EACCES);
	assert_int_equal(be->ops->allocate(f, 0, 1), -EACCES);
	assert_int_equal(be->ops->punch(f, 0, 1), -EACCES);
	assert_int_equal(be->ops->truncate(f, 1), -EACCES);
	assert_int_equal(be->ops->sync(f), -EACCES);
	assert_int_equal(sync_root(be), -EACCES);
	assert_int_equal(be->ops->make_dir(be, "d"), -EACCES);
	assert_int_equal(be->ops->list(be, "", gather, NULL), -EACCES);
	/* A close that fails has closed. */
	assert_int_equal(be->ops->close(f), -EACCES);
	assert_int_equal(lac__sim_open_files(be, NULL), 0);
	assert_true(lac__sim_struck(be) >= 13);
	lac__sim_heal(be);
	expect_file(be, "a", 100, 'x');
	lac__sim_free(be);
}

static void test_faults_by_path(void **state)
{
	struct lac_backend *be = fresh();
	struct lac_file *f = open_new(be, "j1"), *g;

	assert_int_equal(be->ops->make_dir(be, "d"), 0);
	g = open_new(be, "d/j2");
	assert_true(lac__sim_arm(be, LAC__SIM_WRITE, "d/", 1, true, LAC__SIM_ERRNO, EIO));
	put(f, 0, 'x', 1);
	put(g, 0, 'x', 1);
	put(f, 0, 'x', 1);
	assert_int_equal(fill(g, 0, 'x', 1), -EIO);
	assert_int_equal(fill(g, 0, 'x', 1), -EIO);
	put(f, 0, 'x', 1);
	/* A file is known by its name of now; a rename counts for both names. */
	assert_int_equal(be->ops->rename(be, "d/j2", "j2"), 0);
	put(g, 0, 'x', 1);
	assert_true(lac__sim_arm(be, LAC__SIM_RENAME, "d", 0, false, LAC__SIM_ERRNO, EIO));
	assert_int_equal(be->ops->rename(be, "j2", "d/j2"), -EIO);
	shut(f);
	shut(g);
	lac__sim_free(be);
}

static void test_eight_faults(void **state)
{
	struct lac_backend *be = fresh();

	for (unsigned i = 0; i < 8; i++)
		assert_true(lac__sim_arm(be, LAC__SIM_READ, "a", 0, true, LAC__SIM_ERRNO, EIO));
	assert_false(lac__sim_arm(be, LAC__SIM_READ, "a", 0, true, LAC__SIM_ERRNO, EIO));
	lac__sim_heal(be);
	/* Two that are due at once strike one after the other. */
	arm(be, LAC__SIM_OPEN, 0, LAC__SIM_ERRNO, EIO);
	arm(be, LAC__SIM_OPEN, 0, LAC__SIM_ERRNO, EACCES);
	assert_int_equal(load(be, "a"), -EIO);
	assert_int_equal(load(be, "a"), -EACCES);
	assert_int_equal(load(be, "a"), -ENOENT);
	assert_int_equal(lac__sim_struck(be), 2);
	lac__sim_free(be);
}

static void test_short_lost_misdirected(void **state)
{
	struct lac_backend *be = fresh();
	struct lac_file *f = durable(be, "a", 'x', 8192);
	char bytes[100];

	arm(be, LAC__SIM_READ, 0, LAC__SIM_SHORT, 7);
	assert_int_equal(be->ops->pread(f, bytes, 100, 0), 7);
	arm(be, LAC__SIM_WRITE, 0, LAC__SIM_SHORT, 0);
	assert_int_equal(fill(f, 0, 'y', 100), 1);
	load(be, "a");
	assert_true(got[0] == 'y' && got[1] == 'x');
	arm(be, LAC__SIM_WRITE, 0, LAC__SIM_LOST, 0);
	assert_int_equal(fill(f, 0, 'z', 100), 100);
	load(be, "a");
	assert_int_equal(got[0], 'y');
	arm(be, LAC__SIM_WRITE, 0, LAC__SIM_MISDIRECT, 4096);
	assert_int_equal(fill(f, 0, 'w', 100), 100);
	load(be, "a");
	assert_true(got[0] == 'y' && all(4096, 4196, 'w') && got[4196] == 'x');
	arm(be, LAC__SIM_WRITE, 0, LAC__SIM_MISDIRECT, -4096);
	assert_int_equal(fill(f, 4096, 'v', 1), 1);
	load(be, "a");
	assert_int_equal(got[0], 'v');
	/* A flush that a drive only claims to have done. */
	assert_int_equal(sync_file(f), 0);
	put(f, 0, 'u', 1);
	arm(be, LAC__SIM_SYNC, 0, LAC__SIM_LOST, 0);
	assert_int_equal(sync_file(f), 0);
	assert_int_equal(lac__sim_unsynced(be), 1);
	shut(f);
	lac__sim_free(be);
}

static void test_stale_read(void **state)
{
	struct lac_backend *be = fresh();
	struct lac_file *f = durable(be, "a", 'x', 8192);
	char bytes[8192];

	put(f, 0, 'y', 4096);
	assert_int_equal(sync_file(f), 0);
	put(f, 4096, 'z', 4096);
	assert_int_equal(sync_file(f), 0);
	arm(be, LAC__SIM_READ, 0, LAC__SIM_STALE, 0);
	assert_int_equal(be->ops->pread(f, bytes, 8192, 0), 8192);
	/* Each page as it was before the sync that wrote it, not before the last sync of all. */
	assert_true(bytes[0] == 'x' && bytes[4095] == 'x');
	assert_true(bytes[4096] == 'x' && bytes[8191] == 'x');
	put(f, 0, 'w', 4096);
	assert_int_equal(sync_file(f), 0);
	arm(be, LAC__SIM_READ, 0, LAC__SIM_STALE, 0);
	assert_int_equal(be->ops->pread(f, bytes, 8192, 0), 8192);
	assert_true(bytes[0] == 'y' && bytes[4096] == 'x');
	assert_int_equal(be->ops->pread(f, bytes, 8192, 0), 8192);
	assert_true(bytes[0] == 'w' && bytes[4096] == 'z');
	shut(f);
	lac__sim_free(be);
}

static void test_unreadable(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = durable(be, "a", 'x', 8192);
	char bytes[1024];

	assert_int_equal(lac__sim_unreadable(be, "a", 1024, 512), 0);
	assert_int_equal(lac__sim_unreadable(be, "no", 1024, 512), -ENOENT);
	assert_int_equal(be->ops->pread(f, bytes, 1024, 0), 1024);
	assert_int_equal(be->ops->pread(f, bytes, 1024, 1), -EIO);
	assert_int_equal(be->ops->pread(f, bytes, 1, 1535), -EIO);
	assert_int_equal(be->ops->pread(f, bytes, 1, 1536), 1);
	put(f, 1100, 'y', 100);
	assert_int_equal(be->ops->pread(f, bytes, 100, 1100), 100);
	assert_int_equal(be->ops->pread(f, bytes, 101, 1099), -EIO);
	assert_int_equal(be->ops->pread(f, bytes, 101, 1100), -EIO);
	/* The device is not healed before the write gets there. */
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	assert_int_equal(load(after, "a"), -EIO);
	lac__sim_free(after);
	put(f, 1024, 'y', 512);
	assert_int_equal(sync_file(f), 0);
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	assert_int_equal(load(after, "a"), 8192);
	lac__sim_free(after);
	shut(f);
	lac__sim_free(be);
}

static void test_direct(void **state)
{
	struct lac_backend *be = fresh();
	static char page[8192] __attribute__((aligned(4096)));
	struct lac_file *f =
		open_flags(be, "a", LAC_OPEN_WRITE | LAC_OPEN_CREATE | LAC_OPEN_DIRECT);

	memset(page, 'x', sizeof(page));
	assert_int_equal(be->ops->pwrite(f, page, 4096, 0), 4096);
	assert_int_equal(be->ops->pwrite(f, page, 4096, 512), -EINVAL);
	assert_int_equal(be->ops->pwrite(f, page + 1, 4096, 0), -EINVAL);
	assert_int_equal(be->ops->pread(f, page, 100, 0), -EINVAL);
	assert_int_equal(be->ops->pread(f, page, 8192, 0), 4096);
	/* Not more durable than any other write. */
	assert_true(lac__sim_unsynced(be) > 0);
	shut(f);
	lac__sim_free(be);
}

static void test_read_only(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = durable(be, "a", 'x', 100), *g;

	put(f, 0, 'y', 1);
	shut(open_new(be, "c"));
	lac__sim_set_read_only(be, true);
	assert_int_equal(fill(f, 0, 'z', 1), -EROFS);
	assert_int_equal(sync_file(f), -EROFS);
	assert_int_equal(be->ops->truncate(f, 0), -EROFS);
	assert_int_equal(be->ops->unlink(be, "a"), -EROFS);
	assert_int_equal(be->ops->rename(be, "a", "b"), -EROFS);
	assert_int_equal(be->ops->make_dir(be, "d"), -EROFS);
	assert_int_equal(be->ops->open(be, "b", LAC_OPEN_CREATE, &g), -EROFS);
	assert_int_equal(be->ops->open(be, "a", LAC_OPEN_WRITE, &g), -EROFS);
	assert_int_equal(load_flags(be, "a", LAC_OPEN_CREATE), 100);
	assert_int_equal(sync_root(be), -EROFS);
	/* The next mount is another try. */
	after = crash(be, LAC__SIM_KEEP_ALL, 0);
	assert_int_equal(after->ops->unlink(after, "a"), 0);
	lac__sim_free(after);
	lac__sim_set_read_only(be, false);
	assert_int_equal(sync_file(f), 0);
	shut(f);
	lac__sim_free(be);
}

/* ---- space ---- */

static uint64_t allocated(struct lac_file *f)
{
	struct lac_file_info info;

	assert_int_equal(f->backend->ops->file_info(f, &info), 0);
	return info.allocated_bytes;
}

static void test_capacity(void **state)
{
	struct lac_backend *be = make((struct lac__sim_options){.capacity_bytes = 64 * KIB});
	struct lac_place_info place;
	struct lac_file *f = open_new(be, "a"), *g = open_new(be, "b");

	put(f, 0, 'x', 40 * KIB);
	assert_int_equal(be->ops->place_info(be, "", &place), 0);
	assert_int_equal(place.free_bytes, 24 * KIB);
	assert_int_equal(place.block_bytes, 4096);
	assert_int_equal(place.physical_sector_bytes, 512);
	/* As far as it goes, then nothing. */
	assert_int_equal(fill(g, 100, 'x', 40 * KIB), 24 * KIB - 100);
	assert_int_equal(fill(g, 24 * KIB, 'x', 1), -ENOSPC);
	assert_int_equal(lac__sim_used_bytes(be), 64 * KIB);
	/* Overwriting in place works on a full disk, and so does giving back. */
	put(g, 0, 'y', 24 * KIB);
	assert_int_equal(be->ops->punch(f, 0, 8 * KIB), 0);
	assert_int_equal(lac__sim_used_bytes(be), 56 * KIB);
	assert_int_equal(be->ops->truncate(g, 0), 0);
	assert_int_equal(lac__sim_used_bytes(be), 32 * KIB);
	lac__sim_set_capacity(be, 36 * KIB);
	assert_int_equal(fill(g, 0, 'x', 16 * KIB), 4096);
	assert_int_equal(be->ops->unlink(be, "b"), 0);
	shut(g);
	assert_int_equal(lac__sim_used_bytes(be), 32 * KIB);
	shut(f);
	lac__sim_free(be);
}

static void test_allocate(void **state)
{
	struct lac_backend *be = make((struct lac__sim_options){.capacity_bytes = 64 * KIB}),
			   *after;
	struct lac_file *f = durable(be, "a", 'x', 100), *g = open_new(be, "b");

	assert_int_equal(be->ops->allocate(f, 0, 32 * KIB), 0);
	assert_int_equal(allocated(f), 32 * KIB);
	assert_int_equal(load(be, "a"), 32 * KIB);
	assert_true(all(0, 100, 'x') && all(100, 32 * KIB, 0));
	put(g, 0, 'y', 32 * KIB);
	assert_int_equal(fill(g, 32 * KIB, 'y', 1), -ENOSPC);
	/* What is reserved can be written. */
	put(f, 0, 'z', 32 * KIB);
	assert_int_equal(be->ops->allocate(f, 0, 32 * KIB), 0);
	assert_int_equal(be->ops->punch(g, 0, 8 * KIB), 0);
	/* Fails, and keeps what it got. */
	assert_int_equal(be->ops->allocate(f, 32 * KIB, 16 * KIB), -ENOSPC);
	assert_int_equal(lac__sim_used_bytes(be), 64 * KIB);
	assert_int_equal(load(be, "a"), 32 * KIB);
	assert_int_equal(be->ops->truncate(f, 32 * KIB), 0);
	assert_int_equal(lac__sim_used_bytes(be), 56 * KIB);
	assert_int_equal(be->ops->allocate(f, 0, 0), -EINVAL);
	assert_int_equal(be->ops->allocate(f, UINT64_MAX, 2), -EFBIG);
	/* Nothing of it is durable. */
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	expect_file(after, "a", 100, 'x');
	assert_int_equal(lac__sim_used_bytes(after), 4096);
	lac__sim_free(after);
	shut(f);
	shut(g);
	lac__sim_free(be);
}

static void test_punch(void **state)
{
	struct lac_backend *be = make((struct lac__sim_options){.block_bytes = 1024}), *after;
	struct lac_file *f = durable(be, "a", 'x', 16 * KIB);

	/* Bytes to the byte, space by whole blocks. */
	assert_int_equal(be->ops->punch(f, 1000, 2 * KIB), 0);
	assert_int_equal(load(be, "a"), 16 * KIB);
	assert_true(all(0, 1000, 'x') && all(1000, 3048, 0) && all(3048, 16 * KIB, 'x'));
	assert_int_equal(allocated(f), 15 * KIB);
	assert_int_equal(be->ops->punch(f, 0, 16 * KIB), 0);
	assert_int_equal(allocated(f), 0);
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	expect_file(after, "a", 16 * KIB, 'x');
	lac__sim_free(after);
	assert_int_equal(sync_file(f), 0);
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	expect_file(after, "a", 16 * KIB, 0);
	assert_int_equal(lac__sim_used_bytes(after), 0);
	lac__sim_free(after);
	assert_int_equal(be->ops->punch(f, 0, 0), -EINVAL);
	shut(f);
	lac__sim_free(be);
}

static void test_without_punch_and_allocate(void **state)
{
	struct lac_backend *be =
		make((struct lac__sim_options){.no_punch = true, .no_allocate = true});
	struct lac_file *f = durable(be, "a", 'x', 8192);

	assert_int_equal(be->ops->punch(f, 0, 4096), -EOPNOTSUPP);
	assert_int_equal(be->ops->allocate(f, 0, 4096), -EOPNOTSUPP);
	shut(f);
	lac__sim_free(be);
	be = make((struct lac__sim_options){.useless_punch = true});
	f = durable(be, "a", 'x', 8192);
	assert_int_equal(be->ops->punch(f, 0, 4096), 0);
	assert_int_equal(load(be, "a"), 8192);
	assert_true(all(0, 4096, 0) && all(4096, 8192, 'x'));
	assert_int_equal(allocated(f), 8192);
	shut(f);
	lac__sim_free(be);
}

/* As measured on btrfs: overwriting needs space; the first write into reserved space does not. */
static void test_copy_on_write(void **state)
{
	struct lac_backend *be =
		make((struct lac__sim_options){.copy_on_write = true, .capacity_bytes = 64 * KIB});
	struct lac_file *f = open_new(be, "a"), *g;

	assert_int_equal(be->ops->allocate(f, 0, 56 * KIB), 0);
	put(f, 0, 'x', 56 * KIB);
	assert_int_equal(sync_file(f), 0);
	assert_int_equal(fill(f, 0, 'y', 56 * KIB), 8 * KIB);
	assert_int_equal(lac__sim_used_bytes(be), 64 * KIB);
	assert_int_equal(fill(f, 8 * KIB, 'y', 1), -ENOSPC);
	/* Already in a new place since the last sync. */
	put(f, 0, 'z', 8 * KIB);
	assert_int_equal(be->ops->punch(f, 48 * KIB, 8 * KIB), 0);
	assert_int_equal(sync_file(f), 0);
	assert_int_equal(lac__sim_used_bytes(be), 48 * KIB);
	shut(f);
	/* Not so for a file that is overwritten in place. */
	g = open_flags(be, "b", LAC_OPEN_WRITE | LAC_OPEN_CREATE | LAC_OPEN_NOCOW);
	put(g, 0, 'x', 16 * KIB);
	assert_int_equal(sync_file(g), 0);
	put(g, 0, 'y', 16 * KIB);
	shut(g);
	lac__sim_free(be);
}

/* ---- looking and counting ---- */

static void test_peek_and_poke(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = durable(be, "a", 'x', 100);
	char byte = 0;
	uint64_t digest = lac__sim_digest(be);

	assert_int_equal(lac__sim_peek(be, "a", 99, &byte, 1), 0);
	assert_int_equal(byte, 'x');
	assert_int_equal(lac__sim_peek(be, "a", 100, &byte, 1), -ENODATA);
	assert_int_equal(lac__sim_peek(be, "b", 0, &byte, 1), -ENOENT);
	assert_int_equal(lac__sim_poke(be, "a", 50, "y", 1), 0);
	assert_int_not_equal(lac__sim_digest(be), digest);
	assert_int_equal(lac__sim_unsynced(be), 0);
	load(be, "a");
	assert_int_equal(got[50], 'y');
	put(f, 60, 'z', 1);
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	load(after, "a");
	assert_true(got[50] == 'y' && got[60] == 'x');
	lac__sim_free(after);
	put(f, 60, 'x', 1);
	assert_int_equal(lac__sim_poke(be, "a", 50, "x", 1), 0);
	assert_int_equal(lac__sim_digest(be), digest);
	/* Beyond the end it makes the file longer. */
	assert_int_equal(lac__sim_poke(be, "a", 200, "w", 1), 0);
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	assert_int_equal(load(after, "a"), 201);
	assert_true(all(100, 200, 0) && got[200] == 'w');
	lac__sim_free(after);
	shut(f);
	lac__sim_free(be);
}

static void test_clone(void **state)
{
	struct lac_backend *be = fresh(), *twin = NULL, *one, *two;
	struct lac_file *f = durable(be, "a", 'x', 300 * KIB), *g;

	put(f, 1000, 'y', 1000);
	shut(open_new(be, "b"));
	assert_int_equal(lac__sim_clone(be, &twin), 0);
	assert_int_equal(lac__sim_digest(twin), lac__sim_digest(be));
	assert_int_equal(lac__sim_unsynced(twin), lac__sim_unsynced(be));
	for (uint64_t seed = 0; seed < 20; seed++) {
		one = crash(be, LAC__SIM_SEEDED, seed);
		two = crash(twin, LAC__SIM_SEEDED, seed);
		assert_int_equal(lac__sim_digest(one), lac__sim_digest(two));
		lac__sim_free(one);
		lac__sim_free(two);
	}
	/* Neither sees what the other does from now on. */
	g = open_old(twin, "a");
	put(g, 0, 'z', 300 * KIB);
	assert_int_equal(sync_file(g), 0);
	load(be, "a");
	assert_true(all(0, 1000, 'x') && all(1000, 2000, 'y') && all(2000, 300 * KIB, 'x'));
	shut(f);
	lac__sim_free(be);
	expect_file(twin, "a", 300 * KIB, 'z');
	shut(g);
	lac__sim_free(twin);
}

static void test_digest(void **state)
{
	struct lac_backend *be = fresh();
	struct lac_file *f = open_new(be, "a");
	uint64_t digest;

	put(f, 0, 'x', 8192);
	digest = lac__sim_digest(be);
	assert_int_equal(sync_file(f), 0);
	assert_int_equal(lac__sim_digest(be), digest);
	assert_int_equal(be->ops->rename(be, "a", "b"), 0);
	assert_int_not_equal(lac__sim_digest(be), digest);
	assert_int_equal(be->ops->rename(be, "b", "a"), 0);
	assert_int_equal(lac__sim_digest(be), digest);
	assert_int_equal(be->ops->truncate(f, 8193), 0);
	assert_int_not_equal(lac__sim_digest(be), digest);
	assert_int_equal(be->ops->truncate(f, 8192), 0);
	assert_int_equal(lac__sim_digest(be), digest);
	/* Zeros are zeros, written or not. */
	assert_int_equal(be->ops->punch(f, 0, 8192), 0);
	digest = lac__sim_digest(be);
	put(f, 0, 0, 8192);
	assert_int_equal(lac__sim_digest(be), digest);
	assert_int_equal(be->ops->make_dir(be, "d"), 0);
	assert_int_not_equal(lac__sim_digest(be), digest);
	shut(f);
	lac__sim_free(be);
}

static void test_counts(void **state)
{
	struct lac_backend *be = fresh();
	struct lac_file *f = open_new(be, "a"), *g = open_old(be, "a");
	unsigned most = 0;

	put(f, 0, 'x', 1);
	put(f, 0, 'x', 1);
	assert_int_equal(sync_file(f), 0);
	assert_int_equal(lac__sim_count(be, LAC__SIM_OPEN), 2);
	assert_int_equal(lac__sim_count(be, LAC__SIM_WRITE), 2);
	assert_int_equal(lac__sim_count(be, LAC__SIM_SYNC), 1);
	assert_int_equal(lac__sim_count(be, LAC__SIM_READ), 0);
	assert_int_equal(lac__sim_count(be, LAC__SIM_OPS), 5);
	assert_int_equal(lac__sim_open_files(be, &most), 2);
	shut(f);
	shut(g);
	assert_int_equal(lac__sim_open_files(be, &most), 0);
	assert_int_equal(most, 2);
	lac__sim_free(be);
}

struct watcher {
	struct lac_backend *be;
	uint64_t calls;
	uint64_t digests[8];
};

static void watch(void *arg, uint64_t number)
{
	struct watcher *w = arg;
	struct lac_backend *after = crash(w->be, LAC__SIM_KEEP_ALL, 0);

	assert_int_equal(number, w->calls);
	assert_true(w->calls < 8);
	w->digests[w->calls++] = lac__sim_digest(after);
	lac__sim_free(after);
}

/* The hook comes before the change, may crash the very filesystem, and is not inherited. */
static void test_hook(void **state)
{
	struct watcher w = {.be = fresh()};
	struct lac_file *f;
	uint64_t written;

	lac__sim_on_change(w.be, watch, &w);
	f = open_new(w.be, "a");
	put(f, 0, 'x', 100);
	written = lac__sim_digest(w.be);
	assert_int_equal(sync_file(f), 0);
	load(w.be, "a");
	assert_int_equal(sync_root(w.be), 0);
	assert_int_equal(w.calls, 4);
	assert_int_equal(w.digests[0], 0);
	assert_int_not_equal(w.digests[1], written);
	assert_int_equal(w.digests[2], written);
	assert_int_equal(w.digests[3], written);
	shut(f);
	lac__sim_free(w.be);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_sync_revert),
	cmocka_unit_test(test_sync_revert_size),
	cmocka_unit_test(test_sync_landed_and_half),
	cmocka_unit_test(test_sync_dir_faults),
	cmocka_unit_test(test_late_error_at_close),
	cmocka_unit_test(test_errno),
	cmocka_unit_test(test_faults_by_path),
	cmocka_unit_test(test_eight_faults),
	cmocka_unit_test(test_short_lost_misdirected),
	cmocka_unit_test(test_stale_read),
	cmocka_unit_test(test_unreadable),
	cmocka_unit_test(test_direct),
	cmocka_unit_test(test_read_only),
	cmocka_unit_test(test_capacity),
	cmocka_unit_test(test_allocate),
	cmocka_unit_test(test_punch),
	cmocka_unit_test(test_without_punch_and_allocate),
	cmocka_unit_test(test_copy_on_write),
	cmocka_unit_test(test_peek_and_poke),
	cmocka_unit_test(test_clone),
	cmocka_unit_test(test_digest),
	cmocka_unit_test(test_counts),
	cmocka_unit_test(test_hook),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
