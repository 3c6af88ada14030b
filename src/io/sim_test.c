/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim_test.c - the lying backend keeps its own promises: what a crash may leave, of bytes and of
 * names. Everything else is tested with it, so what it claims to lose, tear and keep is pinned down
 * here.
 */
#include <pthread.h>

#include "io/sim_testing.h"

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
	/* What lay beyond the size does not come back with the size. */
	shut(f);
	f = open_old(after, "a");
	assert_int_equal(after->ops->truncate(f, 110), 0);
	assert_int_equal(load(after, "a"), 110);
	assert_true(all(90, 100, 'y') && all(100, 110, 0));
	shut(f);
	lac__sim_free(after);
	lac__sim_free(be);
}

/* A size that grew does not shrink again because a truncation before it was lost. */
static void test_size_after_lost_truncate(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = durable(be, "a", 'x', 200);

	assert_int_equal(be->ops->truncate(f, 50), 0);
	put(f, 140, 'y', 10);
	after = crash(be, LAC__SIM_MISS_ONE, 0);
	assert_int_equal(load(after, "a"), 200);
	assert_true(all(0, 140, 'x') && all(140, 150, 'y') && all(150, 200, 'x'));
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

/* The ones are one run without a gap. */
static bool is_run(unsigned bits)
{
	while (bits && !(bits & 1))
		bits >>= 1;
	return bits && (bits & (bits + 1)) == 0;
}

/* Every sector is old or new, and tears of all shapes come up: a head, a tail, a hole, scattered.
 */
static void test_seeded_tears_and_trashes(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = durable(be, "a", 'x', 16 * 512);
	unsigned seen_all = 0, seen_none = 0, head = 0, tail = 0, hole = 0, garbage = 0;

	put(f, 4 * 512, 'y', 8 * 512);
	for (uint64_t seed = 0; seed < 2000; seed++) {
		unsigned fresh_bits = 0;
		bool bad = false;

		after = crash(be, LAC__SIM_SEEDED, seed);
		assert_int_equal(load(after, "a"), 16 * 512);
		assert_true(all(0, 4 * 512, 'x') && all(12 * 512, 16 * 512, 'x'));
		for (unsigned i = 0; i < 8; i++) {
			if (all((4 + i) * 512, (5 + i) * 512, 'y'))
				fresh_bits |= 1u << i;
			else if (!all((4 + i) * 512, (5 + i) * 512, 'x'))
				bad = true;
		}
		garbage += bad;
		seen_all += fresh_bits == 0xff;
		seen_none += fresh_bits == 0;
		head += !bad && is_run(fresh_bits) && (fresh_bits & 0x81) == 0x01;
		tail += !bad && is_run(fresh_bits) && (fresh_bits & 0x81) == 0x80;
		hole += !bad && is_run(~fresh_bits & 0xff) && (fresh_bits & 0x81) == 0x81;
		lac__sim_free(after);
	}
	assert_true(seen_all > 100 && seen_none > 100 && garbage > 20);
	/* By scattering alone each of these would come up a few times only. */
	assert_true(head > 20 && tail > 20 && hole > 10);
	shut(f);
	lac__sim_free(be);
}

/* A punch and an allocation may get half way, block by block. */
static void test_seeded_punch(void **state)
{
	struct lac_backend *be = fresh();
	struct lac_file *f = durable(be, "a", 'x', 16 * 4096);
	unsigned none = 0, some = 0, every = 0;

	assert_int_equal(be->ops->punch(f, 4 * 4096, 8 * 4096), 0);
	assert_int_equal(be->ops->allocate(f, 16 * 4096, 8 * 4096), 0);
	for (uint64_t seed = 0; seed < 500; seed++) {
		struct lac_backend *after = crash(be, LAC__SIM_SEEDED, seed);
		uint64_t used = lac__sim_used_bytes(after) / 4096, punched = 0;

		assert_true(load(after, "a") >= 16 * 4096);
		assert_true(all(0, 4 * 4096, 'x') && all(12 * 4096, 16 * 4096, 'x'));
		for (unsigned i = 4; i < 12; i++) {
			bool zero = all(i * 4096, (i + 1) * 4096, 0);

			assert_true(zero || all(i * 4096, (i + 1) * 4096, 'x'));
			punched += zero;
		}
		assert_true(used >= 16 - punched && used <= 24 - punched);
		none += punched == 0;
		every += punched == 8;
		some += punched > 0 && punched < 8;
		lac__sim_free(after);
	}
	assert_true(none > 50 && every > 50 && some > 20);
	shut(f);
	lac__sim_free(be);
}

/* Only a sector in which a byte changes can turn into garbage, but then as a whole. */
static void trash_spares(uint32_t sector)
{
	struct lac_backend *be = make((struct lac__sim_options){.physical_sector_bytes = sector});
	struct lac_file *f = durable(be, "a", 'x', 16384);
	uint64_t start = 8300 / sector * sector, end = start + sector;
	bool before = false, behind = false;

	put(f, 8000, 'x', 300);
	put(f, 8300, 'y', 1);
	put(f, 8301, 'x', 1000);
	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct lac_backend *after = crash(be, LAC__SIM_SEEDED, seed);

		assert_int_equal(load(after, "a"), 16384);
		assert_true(all(0, start, 'x') && all(end, 16384, 'x'));
		before = before || got[start] != 'x';
		behind = behind || got[end - 1] != 'x';
		lac__sim_free(after);
	}
	assert_true(before && behind);
	shut(f);
	lac__sim_free(be);
}

static void test_trash_spares_unchanged_sectors(void **state)
{
	trash_spares(512);
	trash_spares(4096);
}

/* A seed always means the same state, and making states changes nothing. */
static void test_seeds_repeat(void **state)
{
	struct lac_backend *be = fresh(), *one, *two;
	struct lac_file *f = durable(be, "a", 'x', 65536), *g = open_new(be, "b");
	uint64_t before, digests[64], distinct = 0;

	for (unsigned i = 0; i < 10; i++) {
		put(f, i * 5000, (char)('0' + i), 3000);
		put(g, i * 700, (char)('a' + i), 700);
	}
	before = lac__sim_digest(be);
	for (uint64_t seed = 0; seed < 64; seed++) {
		bool known = false;

		one = crash(be, LAC__SIM_SEEDED, seed);
		two = crash(be, LAC__SIM_SEEDED, seed);
		digests[seed] = lac__sim_digest(one);
		assert_int_equal(digests[seed], lac__sim_digest(two));
		for (uint64_t i = 0; i < seed; i++)
			known = known || digests[i] == digests[seed];
		distinct += !known;
		lac__sim_free(one);
		lac__sim_free(two);
	}
	assert_true(distinct > 30);
	assert_int_equal(lac__sim_digest(be), before);
	shut(f);
	shut(g);
	lac__sim_free(be);
}

/* Two files: states exist in which one is lost and the other not, either way, whatever was first.
 */
static void test_seeds_reorder_files(void **state)
{
	struct lac_backend *be = fresh();
	struct lac_file *f = durable(be, "a", 'x', 4096), *g = durable(be, "b", 'x', 4096);
	unsigned counts[2][2] = {{0}};

	put(f, 0, 'y', 512);
	put(g, 0, 'y', 512);
	for (uint64_t seed = 0; seed < 500; seed++) {
		struct lac_backend *after = crash(be, LAC__SIM_SEEDED, seed);
		bool first, second;

		load(after, "a");
		first = all(0, 512, 'y');
		load(after, "b");
		second = all(0, 512, 'y');
		counts[first][second]++;
		lac__sim_free(after);
	}
	assert_true(
		counts[0][0] > 20 && counts[0][1] > 20 && counts[1][0] > 20 && counts[1][1] > 20);
	shut(f);
	shut(g);
	lac__sim_free(be);
}

/* ---- names ---- */

static void test_new_file_needs_sync_dir(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = open_new(be, "a");

	put(f, 0, 'x', 100);
	assert_int_equal(sync_file(f), 0);
	assert_int_equal(lac__sim_unsynced(be), 1);
	assert_false(exists_after(be, LAC__SIM_DROP_ALL, 0, "a"));
	put(f, 0, 'y', 100);
	assert_int_equal(sync_root(be), 0);
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	expect_file(after, "a", 100, 'x');
	lac__sim_free(after);
	shut(f);
	lac__sim_free(be);
}

/* A name may survive a crash without the bytes. */
static void test_name_without_content(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = open_new(be, "a");

	put(f, 0, 'x', 100);
	after = crash(be, LAC__SIM_ONLY_ONE, 0);
	assert_int_equal(load(after, "a"), 0);
	lac__sim_free(after);
	shut(f);
	lac__sim_free(be);
}

static void test_rename_is_atomic(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *old = durable(be, "a", 'x', 100), *f = durable(be, "a.tmp", 'y', 200);

	assert_int_equal(be->ops->rename(be, "a.tmp", "a"), 0);
	expect_file(be, "a", 200, 'y');
	assert_false(exists(be, "a.tmp"));
	for (uint64_t seed = 0; seed < 50; seed++) {
		bool renamed;

		after = crash(be, LAC__SIM_SEEDED, seed);
		renamed = !exists(after, "a.tmp");
		expect_file(after, "a", renamed ? 200 : 100, renamed ? 'y' : 'x');
		lac__sim_free(after);
	}
	assert_true(exists_after(be, LAC__SIM_DROP_ALL, 0, "a.tmp"));
	assert_int_equal(sync_root(be), 0);
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	expect_file(after, "a", 200, 'y');
	assert_false(exists(after, "a.tmp"));
	lac__sim_free(after);
	/* The replaced file lives on for who has it open. */
	put(old, 0, 'z', 1);
	assert_int_equal(sync_file(old), 0);
	shut(old);
	shut(f);
	lac__sim_free(be);
}

/* The classical mistake: rename before the content is durable. */
static void test_rename_before_content(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *old = durable(be, "a", 'x', 100), *f = open_new(be, "a.tmp");
	bool empty = false;

	put(f, 0, 'y', 100);
	assert_int_equal(be->ops->rename(be, "a.tmp", "a"), 0);
	for (uint64_t seed = 0; seed < 200 && !empty; seed++) {
		after = crash(be, LAC__SIM_SEEDED, seed);
		empty = load(after, "a") == 0;
		lac__sim_free(after);
	}
	assert_true(empty);
	shut(old);
	shut(f);
	lac__sim_free(be);
}

static void test_unlink(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file *f = durable(be, "a", 'x', 4096);
	char byte = 0;

	assert_int_equal(be->ops->unlink(be, "a"), 0);
	assert_false(exists(be, "a"));
	assert_int_equal(be->ops->pread(f, &byte, 1, 0), 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(lac__sim_used_bytes(be), 4096);
	after = crash(be, LAC__SIM_KILL, 0);
	assert_int_equal(lac__sim_used_bytes(after), 0);
	lac__sim_free(after);
	shut(f);
	assert_int_equal(lac__sim_used_bytes(be), 0);
	assert_true(exists_after(be, LAC__SIM_DROP_ALL, 0, "a"));
	assert_false(exists_after(be, LAC__SIM_KEEP_ALL, 0, "a"));
	assert_int_equal(sync_root(be), 0);
	assert_false(exists_after(be, LAC__SIM_DROP_ALL, 0, "a"));
	/* The name can be had again, and means the new file. */
	f = durable(be, "a", 'y', 10);
	expect_file(be, "a", 10, 'y');
	shut(f);
	lac__sim_free(be);
}

/* An unlink may reach the disk though an earlier rename of another name did not. */
static void test_names_reorder(void **state)
{
	struct lac_backend *be = fresh(), *after;
	bool early = false, late = false;

	shut(durable(be, "new.tmp", 'n', 10));
	shut(durable(be, "old", 'o', 10));
	assert_int_equal(be->ops->rename(be, "new.tmp", "new"), 0);
	assert_int_equal(be->ops->unlink(be, "old"), 0);
	for (uint64_t seed = 0; seed < 200; seed++) {
		after = crash(be, LAC__SIM_SEEDED, seed);
		assert_true(exists(after, "new") != exists(after, "new.tmp"));
		early = early || (!exists(after, "old") && !exists(after, "new"));
		late = late || (exists(after, "old") && exists(after, "new"));
		lac__sim_free(after);
	}
	assert_true(early && late);
	lac__sim_free(be);
}

/* Rotating names: in any state each of the two files has one name, none is lost. */
static void test_name_swap_loses_nothing(void **state)
{
	struct lac_backend *be = fresh();

	shut(durable(be, "a", 'a', 10));
	shut(durable(be, "b", 'b', 10));
	assert_int_equal(be->ops->rename(be, "a", "t"), 0);
	assert_int_equal(be->ops->rename(be, "b", "a"), 0);
	assert_int_equal(be->ops->rename(be, "t", "b"), 0);
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct lac_backend *after =
			crash(be, seed < 3 ? LAC__SIM_MISS_ONE : LAC__SIM_SEEDED, seed);
		const char *names[] = {"a", "b", "t"};
		unsigned as = 0, bs = 0;

		for (size_t i = 0; i < 3; i++) {
			if (load(after, names[i]) < 0)
				continue;
			as += all(0, 10, 'a');
			bs += all(0, 10, 'b');
		}
		assert_int_equal(as, 1);
		assert_int_equal(bs, 1);
		lac__sim_free(after);
	}
	assert_int_equal(sync_root(be), 0);
	expect_file(be, "a", 10, 'b');
	lac__sim_free(be);
}

static void test_directories(void **state)
{
	struct lac_backend *be = fresh(), *after;
	struct lac_file_info info;
	char names[64] = "";
	struct lac_file *f;

	assert_int_equal(be->ops->make_dir(be, "d"), 0);
	assert_int_equal(be->ops->make_dir(be, "d"), -EEXIST);
	assert_int_equal(be->ops->make_dir(be, "d/e"), 0);
	assert_int_equal(be->ops->make_dir(be, "no/e"), -ENOENT);
	f = open_new(be, "d/e/f");
	put(f, 0, 'x', 10);
	assert_int_equal(sync_file(f), 0);
	assert_int_equal(be->ops->sync_dir(be, "d/e"), 0);
	assert_int_equal(be->ops->sync_dir(be, "d"), 0);
	assert_int_equal(be->ops->path_info(be, "d/e", &info), 0);
	assert_true(S_ISDIR(info.mode));
	/* The names inside are durable, but not the way there. */
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	assert_false(exists(after, "d"));
	assert_int_equal(lac__sim_used_bytes(after), 0);
	assert_int_equal(lac__sim_digest(after), 0);
	lac__sim_free(after);
	assert_int_equal(sync_root(be), 0);
	after = crash(be, LAC__SIM_DROP_ALL, 0);
	expect_file(after, "d/e/f", 10, 'x');
	lac__sim_free(after);
	assert_int_equal(be->ops->list(be, "d/e", gather, names), 0);
	assert_string_equal(names, "f ");
	shut(open_new(be, "d/e/stop"));
	assert_int_equal(be->ops->unlink(be, "d/e/f"), 0);
	assert_int_equal(be->ops->list(be, "d/e", gather, names), 7);
	assert_int_equal(be->ops->list(be, "d/x", gather, names), -ENOENT);
	assert_int_equal(be->ops->list(be, "d/e/stop", gather, names), -ENOTDIR);
	shut(f);
	lac__sim_free(be);
}

static void test_name_errors(void **state)
{
	struct lac_backend *be = fresh();
	struct lac_file *f = NULL;
	char longest[300];

	shut(open_new(be, "a"));
	assert_int_equal(be->ops->make_dir(be, "d"), 0);
	assert_int_equal(be->ops->make_dir(be, "d/e"), 0);
	assert_int_equal(be->ops->open(be, "no", LAC_OPEN_WRITE, &f), -ENOENT);
	assert_int_equal(be->ops->open(be, "d", 0, &f), -EISDIR);
	assert_int_equal(be->ops->open(be, "", 0, &f), -EISDIR);
	assert_int_equal(be->ops->open(be, "a/b", LAC_OPEN_CREATE, &f), -ENOTDIR);
	assert_int_equal(be->ops->open(be, "no/b", LAC_OPEN_CREATE, &f), -ENOENT);
	assert_int_equal(be->ops->open(be, "a", LAC_OPEN_CREATE | LAC_OPEN_EXCLUSIVE, &f), -EEXIST);
	memset(longest, 'n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(be->ops->open(be, longest, LAC_OPEN_CREATE, &f), -ENAMETOOLONG);
	assert_null(f);
	assert_int_equal(be->ops->unlink(be, "d"), -EISDIR);
	assert_int_equal(be->ops->unlink(be, "no"), -ENOENT);
	assert_int_equal(be->ops->remove_dir(be, "a"), -ENOTDIR);
	assert_int_equal(be->ops->remove_dir(be, "d"), -ENOTEMPTY);
	assert_int_equal(be->ops->remove_dir(be, ""), -EBUSY);
	assert_int_equal(be->ops->rename(be, "no", "b"), -ENOENT);
	assert_int_equal(be->ops->rename(be, "a", "d"), -EISDIR);
	assert_int_equal(be->ops->rename(be, "d", "a"), -ENOTDIR);
	assert_int_equal(be->ops->rename(be, "d", "d/e/f"), -EINVAL);
	assert_int_equal(be->ops->rename(be, "", "b"), -EBUSY);
	assert_int_equal(be->ops->rename(be, "d", ""), -EBUSY);
	assert_int_equal(be->ops->rename(be, "a", "a"), 0);
	assert_int_equal(be->ops->make_dir(be, "g"), 0);
	assert_int_equal(be->ops->rename(be, "g", "d"), -ENOTEMPTY);
	assert_int_equal(be->ops->rename(be, "g", "d/e"), 0);
	assert_int_equal(be->ops->sync_dir(be, "a"), -ENOTDIR);
	assert_int_equal(be->ops->remove_dir(be, "d/e"), 0);
	assert_int_equal(be->ops->rename(be, "d", "e"), 0);
	assert_false(exists(be, "d"));
	assert_int_equal(be->ops->remove_dir(be, "e"), 0);
	lac__sim_free(be);
}

/* Moving a file out and removing the directory: never is the file lost. */
static void test_move_and_remove_dir(void **state)
{
	struct lac_backend *be = fresh();

	assert_int_equal(be->ops->make_dir(be, "d"), 0);
	shut(open_new(be, "d/a"));
	assert_int_equal(be->ops->sync_dir(be, "d"), 0);
	assert_int_equal(sync_root(be), 0);
	assert_int_equal(be->ops->rename(be, "d/a", "a"), 0);
	assert_int_equal(be->ops->remove_dir(be, "d"), 0);
	for (uint64_t seed = 0; seed < 100; seed++) {
		struct lac_backend *after = crash(be, LAC__SIM_SEEDED, seed);

		assert_true(exists(after, "a") != (exists(after, "d") && exists(after, "d/a")));
		lac__sim_free(after);
	}
	assert_int_equal(sync_root(be), 0);
	assert_int_equal(lac__sim_unsynced(be), 0);
	assert_false(exists_after(be, LAC__SIM_DROP_ALL, 0, "d"));
	lac__sim_free(be);
}

/* For a rename the target's directory counts. */
static void test_rename_across(void **state)
{
	struct lac_backend *be = fresh();

	assert_int_equal(be->ops->make_dir(be, "from"), 0);
	assert_int_equal(be->ops->make_dir(be, "to"), 0);
	shut(open_new(be, "from/a"));
	assert_int_equal(be->ops->sync_dir(be, "from"), 0);
	assert_int_equal(sync_root(be), 0);
	assert_int_equal(be->ops->rename(be, "from/a", "to/a"), 0);
	assert_int_equal(be->ops->sync_dir(be, "from"), 0);
	assert_true(exists_after(be, LAC__SIM_DROP_ALL, 0, "from/a"));
	assert_false(exists_after(be, LAC__SIM_DROP_ALL, 0, "to/a"));
	assert_int_equal(be->ops->sync_dir(be, "to"), 0);
	assert_false(exists_after(be, LAC__SIM_DROP_ALL, 0, "from/a"));
	assert_true(exists_after(be, LAC__SIM_DROP_ALL, 0, "to/a"));
	/* A move into a directory that is not durable yet takes the directory with it. */
	assert_int_equal(be->ops->make_dir(be, "late"), 0);
	assert_int_equal(be->ops->rename(be, "to/a", "late/a"), 0);
	assert_int_equal(be->ops->sync_dir(be, "late"), 0);
	assert_true(exists_after(be, LAC__SIM_DROP_ALL, 0, "late/a"));
	lac__sim_free(be);
}

/* ---- against each other ---- */

static uint64_t random_state;

static uint64_t dice(uint64_t sides)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (random_state >> 33) % sides;
}

#define FILES 4

/* Returns whether atoms went without a sync: with the last handle of a file without a name. */
static bool random_change(struct lac_backend *be, struct lac_file **files)
{
	static const char *const names[] = {"a", "b", "d/a", "d/b"};
	uint64_t at = dice(40000), length = 1 + dice(12000);
	struct lac_file *f = files[dice(FILES)];
	bool gone = false;
	int rc = 0;

	switch (dice(10)) {
	case 0: rc = be->ops->truncate(f, at); break;
	case 1: rc = be->ops->punch(f, at, length); break;
	case 2: rc = be->ops->allocate(f, at, length); break;
	case 3: rc = be->ops->rename(be, names[dice(4)], names[dice(4)]); break;
	case 4: rc = be->ops->unlink(be, names[dice(4)]); break;
	case 5: {
		unsigned slot = (unsigned)dice(FILES);
		uint64_t count = lac__sim_unsynced(be);

		shut(files[slot]);
		gone = lac__sim_unsynced(be) < count;
		files[slot] = open_new(be, names[dice(4)]);
		break;
	}
	default:
		if (dice(2)) {
			at = at / 4096 * 4096;
			length = (1 + length / 4096) * 4096;
		}
		put(f, at, (char)('a' + dice(26)), length);
		break;
	}
	assert_true(rc == 0 || rc == -ENOENT);
	return gone;
}

/*
 * A crash that keeps the first n changes must look as the filesystem looked after n changes, and
 * one that keeps all as it looks now, whether files are taken whole or built atom by atom (as under
 * copy_on_write). Syncs in between must not show.
 */
static void random_history(uint64_t seed, bool copy_on_write)
{
	struct lac_backend *be = make((struct lac__sim_options){.copy_on_write = copy_on_write}),
			   *after;
	struct lac_file *files[FILES];
	uint64_t digests[41], counts[41];
	uint64_t rounds = 8;

	random_state = seed;
	assert_int_equal(be->ops->make_dir(be, "d"), 0);
	assert_int_equal(sync_root(be), 0);
	for (size_t i = 0; i < FILES; i++)
		files[i] = open_new(be, "a");
	for (uint64_t round = 0; round < rounds; round++) {
		size_t steady = 0;

		for (size_t i = 0; i <= 40; i++) {
			digests[i] = lac__sim_digest(be);
			counts[i] = lac__sim_unsynced(be);
			if (i < 40 && random_change(be, files))
				steady = i + 1; /* earlier numbers no longer fit */
		}
		for (size_t i = steady; i <= 40; i++) {
			after = crash(be, LAC__SIM_PREFIX, counts[i]);
			assert_int_equal(lac__sim_digest(after), digests[i]);
			lac__sim_free(after);
		}
		after = crash(be, LAC__SIM_KEEP_ALL, 0);
		assert_int_equal(lac__sim_digest(after), digests[40]);
		assert_int_equal(lac__sim_used_bytes(after) <= lac__sim_used_bytes(be), 1);
		lac__sim_free(after);
		for (size_t i = 0; i < FILES; i++)
			if (dice(2))
				assert_int_equal(sync_file(files[i]), 0);
		if (dice(2))
			assert_int_equal(be->ops->sync_dir(be, dice(2) ? "" : "d"), 0);
		if (dice(4) == 0) { /* the rest as well: an empty list */
			for (size_t i = 0; i < FILES; i++)
				assert_int_equal(sync_file(files[i]), 0);
			assert_int_equal(sync_root(be), 0);
			assert_int_equal(be->ops->sync_dir(be, "d"), 0);
		}
		assert_int_equal(lac__sim_digest(be), digests[40]);
	}
	for (size_t i = 0; i < FILES; i++)
		shut(files[i]);
	lac__sim_free(be);
}

static void test_random_histories(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		random_history(seed, false);
		random_history(seed, true);
	}
}

/* ---- threads ---- */

static void *worker(void *arg)
{
	struct lac_file *f = arg;
	char bytes[600];

	for (unsigned i = 0; i < 300; i++) {
		memset(bytes, (int)i, sizeof(bytes));
		if (f->backend->ops->pwrite(f, bytes, sizeof(bytes), i * 500) < 0 ||
			f->backend->ops->pread(f, bytes, sizeof(bytes), i * 300) < 0 ||
			(i % 16 == 0 && f->backend->ops->sync(f) < 0))
			return NULL;
	}
	return f;
}

static void *crasher(void *arg)
{
	struct lac_backend *be = arg, *after;

	for (uint64_t i = 0; i < 300; i++) {
		struct lac_file *f = NULL;

		if (lac__sim_crash(be, (enum lac__sim_crash_mode)(i % 7), i, &after) < 0)
			return NULL;
		if (after->ops->open(after, "0", LAC_OPEN_WRITE, &f) == 0) {
			worker(f);
			after->ops->close(f);
		}
		lac__sim_free(after);
	}
	return be;
}

static void test_threads(void **state)
{
	struct lac_backend *be = fresh();
	struct lac_file *files[4];
	pthread_t threads[5];
	char name[2] = "0";

	for (unsigned i = 0; i < 4; i++, name[0]++)
		files[i] = open_new(be, name);
	assert_int_equal(sync_root(be), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, worker, files[i]), 0);
	assert_int_equal(pthread_create(&threads[4], NULL, crasher, be), 0);
	for (unsigned i = 0; i < 5; i++) {
		void *done = NULL;

		assert_int_equal(pthread_join(threads[i], &done), 0);
		assert_non_null(done);
	}
	for (unsigned i = 0; i < 4; i++)
		shut(files[i]);
	lac__sim_free(be);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_read_write),
	cmocka_unit_test(test_truncate_hides_nothing),
	cmocka_unit_test(test_drop_all_keep_all),
	cmocka_unit_test(test_prefix_miss_only),
	cmocka_unit_test(test_size_without_data),
	cmocka_unit_test(test_size_after_lost_truncate),
	cmocka_unit_test(test_kill),
	cmocka_unit_test(test_seeded_tears_and_trashes),
	cmocka_unit_test(test_seeded_punch),
	cmocka_unit_test(test_trash_spares_unchanged_sectors),
	cmocka_unit_test(test_seeds_repeat),
	cmocka_unit_test(test_seeds_reorder_files),
	cmocka_unit_test(test_new_file_needs_sync_dir),
	cmocka_unit_test(test_name_without_content),
	cmocka_unit_test(test_rename_is_atomic),
	cmocka_unit_test(test_rename_before_content),
	cmocka_unit_test(test_unlink),
	cmocka_unit_test(test_names_reorder),
	cmocka_unit_test(test_name_swap_loses_nothing),
	cmocka_unit_test(test_directories),
	cmocka_unit_test(test_name_errors),
	cmocka_unit_test(test_move_and_remove_dir),
	cmocka_unit_test(test_rename_across),
	cmocka_unit_test(test_random_histories),
	cmocka_unit_test(test_threads),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
