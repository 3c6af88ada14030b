/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/space_test.c - segments: prepared, taken, enlarged, recycled, found again after a
 * restart; and a full disk, which refuses an append and harms nothing else.
 */
#include "journal/testing.h"

static struct lac__journal_options options;

static int setup(void **state)
{
	options = test_options();
	options.direct = true; /* the lying backend then insists on whole pages */
	return 0;
}

static struct lac__journal_stats stats_of(struct lac__journal *j)
{
	struct lac__journal_stats stats;

	lac__journal_stats(j, &stats);
	return stats;
}

static bool exists(struct lac_backend *be, uint64_t seq)
{
	struct lac_file_info info;
	char path[64];

	segment_path(seq, path);
	return be->ops->path_info(be, path, &info) == 0;
}

static uint64_t size_of(struct lac_backend *be, uint64_t seq)
{
	struct lac_file_info info;
	char path[64];

	segment_path(seq, path);
	assert_int_equal(be->ops->path_info(be, path, &info), 0);
	return info.size_bytes;
}

static bool has_temporary(struct lac_backend *be)
{
	struct lac_file_info info;

	return be->ops->path_info(be, DIR "/prepare.tmp", &info) == 0;
}

static void release(struct lac__journal *j, uint64_t lsn)
{
	struct lac_error err = {0};

	assert_ok(lac__journal_release(j, lsn, &err), &err);
}

/* ---- recycling ---- */

/* Old frames stand wherever the new ones end, and are never taken for live ones. */
static void recycled_segments_never_replay(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	unsigned most = 0;

	for (int round = 0; round < 40; round++) {
		struct lac__jscan_options so;
		struct lac__jscan_end end;
		uint64_t last = commit(j, 100 + round * 137 % 2900), seq;

		seq = lac__journal_seq_of(j, last);
		so = scan_options(last, seq);
		so.past_cache = false;
		end = scan_check(be, &so, NULL);
		assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
		assert_int_equal(end.last_lsn, last);
		if (lac__journal_pressed(j))
			release(j, last);
		assert_false(lac__journal_pressed(j));
		assert_int_equal(stats_of(j).files, 3);
	}
	assert_true(stats_of(j).segments_recycled > 3);
	assert_int_equal(stats_of(j).segments_prepared, 0);
	assert_int_equal(lac__journal_close(j), 0);
	lac__sim_open_files(be, &most);
	assert_true(most <= 3);
	lac__sim_free(be);
}

static void release_keeps_what_is_needed(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	uint64_t live;

	assert_int_equal(lac__journal_seq_of(j, 1), 1);
	release(j, 1);
	for (int i = 0; i < 7; i++) /* three to a segment */
		commit(j, 3000);
	live = lac__journal_live_bytes(j);
	assert_int_equal(live, 7 * 3072);
	assert_int_equal(lac__journal_seq_of(j, 1), 1);
	assert_int_equal(lac__journal_seq_of(j, 3), 1);
	assert_int_equal(lac__journal_seq_of(j, 4), 2);
	assert_int_equal(lac__journal_seq_of(j, 6), 2);
	assert_int_equal(lac__journal_seq_of(j, 7), 3);
	assert_int_equal(lac__journal_seq_of(j, 8), 3);
	release(j, 3); /* 1 still holds 3 */
	assert_true(exists(be, 1));
	release(j, 4);
	assert_false(exists(be, 1));
	assert_int_equal(lac__journal_live_bytes(j), 4 * 3072);
	assert_true(exists(be, 2));
	release(j, 100); /* never the newest one with a header */
	assert_false(exists(be, 2));
	assert_true(exists(be, 3));
	assert_int_equal(lac__journal_close(j), 0);
	lac__sim_free(be);
}

/* A taken segment whose header is not durable is not what a checkpoint may start from. */
static void seq_of_names_durable_segments_only(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);

	for (int i = 0; i < 3; i++)
		commit(j, 3000);
	append(j, 3000); /* goes to segment 2, not written yet */
	assert_int_equal(lac__journal_seq_of(j, 4), 1);
	release(j, 4);
	assert_true(exists(be, 1));
	assert_int_equal(lac__journal_close(j), 0);
	lac__sim_free(be);
}

static void surplus_is_unlinked(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);

	for (int i = 0; i < 3 * 8; i++)
		commit(j, 3000);
	assert_true(stats_of(j).files >= 9);
	release(j, 24);
	assert_int_equal(stats_of(j).files, 3);
	for (int i = 0; i < 3; i++)
		commit(j, 3000);
	assert_int_equal(lac__journal_close(j), 0);
	lac__sim_free(be);
}

/* ---- records longer than a segment ---- */

static void jumbo_records(void **state)
{
	options.segments_min = 6; /* so that the enlarged ones are recycled too */
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	struct lac__jscan_options so = scan_options(1, 1);

	commit(j, 100);
	commit(j, 100000);
	commit(j, RECORD_MAX);
	commit(j, 100);
	commit(j, 16384);
	assert_true(size_of(be, 2) > 100000);
	assert_true(size_of(be, 3) > RECORD_MAX);
	assert_int_equal(scan_check(be, &so, NULL).last_lsn, 5);
	release(j, 5);
	for (uint64_t seq = 1; seq < 10; seq++)
		if (exists(be, seq) && seq != 4)
			assert_int_equal(size_of(be, seq), 16384);
	for (int i = 0; i < 12; i++)
		commit(j, 3000);
	assert_int_equal(lac__journal_close(j), 0);
	so = scan_options(6, 4);
	assert_int_equal(scan_check(be, &so, NULL).last_lsn, 17);
	lac__sim_free(be);
}

static void jumbo_on_a_full_disk(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	struct lac__jscan_options so = scan_options(1, 1);
	struct lac_error err = {0};
	uint64_t used, lsn = 0;

	commit(j, 100);
	used = lac__sim_used_bytes(be);
	lac__sim_set_capacity(be, used + 65536);
	assert_int_equal(try_append(j, 0, 200000, 0, &lsn, &err), -ENOSPC);
	assert_int_equal(err.reason, LAC_REASON_NO_SPACE);
	assert_int_equal(lac__sim_used_bytes(be), used);
	assert_int_equal(size_of(be, 2), 16384);
	assert_int_equal(commit(j, 15000 - 4096), 2);
	lac__sim_set_capacity(be, 0);
	assert_int_equal(commit(j, 200000), 3);
	assert_int_equal(lac__journal_close(j), 0);
	assert_int_equal(scan_check(be, &so, NULL).last_lsn, 3);
	lac__sim_free(be);
}

/* ---- a full disk ---- */

static void enospc_leaves_no_trace(void **state)
{
	for (int no_allocate = 0; no_allocate < 2; no_allocate++) {
		struct lac__sim_options so = {.no_allocate = no_allocate};
		struct lac_backend *be = sim_make(&so);
		struct lac__jscan_options all = scan_options(1, 1);
		struct lac__journal *j;
		struct lac_error err = {0};
		uint64_t lsn = 0, used, count = 0, next;

		assert_ok(lac__journal_create(be, DIR, &options, &err), &err);
		j = journal_open_new(be, &options);
		used = lac__sim_used_bytes(be);
		lac__sim_set_capacity(be, used + 8192); /* half a segment */
		while (try_append(j, 0, 3000, 0, &lsn, &err) == 0) {
			assert_ok(lac__journal_wait(j, lsn, &err), &err);
			count = lsn;
		}
		assert_int_equal(err.code, -ENOSPC);
		assert_int_equal(count, 6); /* two segments: the third is kept back */
		assert_true(lac__journal_pressed(j));
		assert_false(has_temporary(be));
		assert_int_equal(lac__sim_used_bytes(be), used);
		assert_int_equal(lac__journal_poisoned(j, NULL), 0);
		next = lac__journal_next_lsn(j);
		assert_int_equal(next, 7);
		/* A delete may. */
		assert_ok(try_append(j, 0, 3000, LAC__APPEND_RESERVE, &lsn, &err), &err);
		assert_ok(lac__journal_wait(j, lsn, &err), &err);
		/* And after a checkpoint everybody. */
		assert_int_equal(try_append(j, 0, 9000, 0, &lsn, &err), -ENOSPC);
		release(j, 7);
		assert_int_equal(commit(j, 9000), 8);
		assert_int_equal(lac__sim_used_bytes(be), used);
		assert_int_equal(lac__journal_close(j), 0);
		all = scan_options(7, 3);
		assert_int_equal(scan_check(be, &all, NULL).last_lsn, 8);
		lac__sim_free(be);
	}
}

/* Who makes a checkpoint when pressed never sees ENOSPC on a disk without a free byte. */
static void pressed_comes_in_time(void **state)
{
	for (int background = 0; background < 2; background++) {
		struct lac_backend *be = journal_make(&options);
		struct lac__journal *j;
		uint64_t last = 0;

		options.background = background;
		j = journal_open_new(be, &options);
		lac__sim_set_capacity(be, lac__sim_used_bytes(be));
		for (int i = 0; i < 100; i++) {
			last = commit(j, 1 + i * 613 % 11000);
			if (lac__journal_pressed(j))
				release(j, last + 1);
		}
		assert_int_equal(lac__journal_close(j), 0);
		lac__sim_free(be);
	}
}

/* A crash with every segment used: the journal starts, and a release makes room. */
static void start_on_a_full_disk(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	struct lac__jscan_options so = scan_options(1, 1);
	struct lac__jscan_end end;
	struct lac_error err = {0};
	uint64_t lsn;

	lac__sim_set_capacity(be, lac__sim_used_bytes(be));
	while (try_append(j, 0, 3000, LAC__APPEND_RESERVE, &lsn, &err) == 0)
		assert_ok(lac__journal_wait(j, lsn, &err), &err);
	assert_int_equal(lsn, 9);
	assert_int_equal(lac__journal_close(j), 0);
	end = scan_check(be, &so, NULL);
	assert_int_equal(end.last_lsn, 9);
	j = journal_open(be, &options, &end, 1);
	assert_true(lac__journal_pressed(j));
	assert_int_equal(try_append(j, 0, 3000, LAC__APPEND_RESERVE, &lsn, &err), -ENOSPC);
	release(j, 10);
	assert_int_equal(commit(j, 3000), 10);
	assert_int_equal(lac__journal_close(j), 0);
	so = scan_options(10, 3);
	end = scan_check(be, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
	assert_int_equal(end.last_lsn, 10);
	lac__sim_free(be);
}

/* Creating fails whole. */
static void create_on_a_full_disk(void **state)
{
	struct lac_backend *be = sim_make(NULL);
	uint64_t used = lac__sim_used_bytes(be);
	struct lac_error err = {0};

	lac__sim_set_capacity(be, used + 40000);
	assert_int_equal(lac__journal_create(be, DIR, &options, &err), -ENOSPC);
	assert_int_equal(lac__sim_used_bytes(be), used);
	assert_false(exists(be, 1));
	assert_false(has_temporary(be));
	lac__sim_free(be);
}

/* ---- failures while segments are made or recycled ---- */

/* Whatever call fails, nothing acknowledged is lost, and either the journal goes on or it is
   poisoned and a new start goes on. */
static void failures_of_housekeeping(void **state)
{
	static const enum lac__sim_op kinds[] = {LAC__SIM_OPEN, LAC__SIM_CLOSE, LAC__SIM_ALLOCATE,
		LAC__SIM_TRUNCATE, LAC__SIM_RENAME, LAC__SIM_UNLINK, LAC__SIM_SYNC_DIR};

	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		for (uint64_t n = 0; n < 6; n++) {
			struct lac_backend *be = journal_make(&options);
			struct lac__journal *j = journal_open_new(be, &options);
			uint64_t acked = 0, from_lsn = 1, from_seq = 1, lsn = 0;
			struct lac__jscan_options so;
			struct lac__jscan_end end;
			int rc = 0;

			lac__sim_arm(be, kinds[k], NULL, n, false, LAC__SIM_ERRNO, EIO);
			for (int i = 0; i < 30 && !lac__journal_poisoned(j, NULL); i++) {
				rc = try_append(j, 0, 1 + i * 613 % 20000, 0, &lsn, NULL);
				if (rc == 0)
					rc = lac__journal_wait(j, lsn, NULL);
				if (rc == 0)
					acked = lsn;
				if (rc == 0 && i % 5 == 4) {
					from_seq = lac__journal_seq_of(j, acked);
					from_lsn = acked;
					(void)lac__journal_release(j, acked, NULL);
				}
			}
			if (!lac__journal_poisoned(j, NULL))
				assert_true(acked >= 29);
			(void)lac__journal_close(j);
			lac__sim_heal(be);
			so = scan_options(from_lsn, from_seq);
			end = scan_check(be, &so, NULL);
			assert_int_not_equal(end.verdict, LAC__JOURNAL_CORRUPT);
			assert_true(end.last_lsn >= acked);
			j = journal_open(be, &options, &end, from_seq);
			for (int i = 0; i < 5; i++)
				commit(j, 3000);
			assert_int_equal(lac__journal_close(j), 0);
			lac__sim_free(be);
		}
}

/* ---- restart ---- */

static void restart_puts_files_in_order(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	struct lac__jscan_options so = scan_options(7, 3);
	struct lac__jscan_end end;
	struct lac_file *file;

	for (int i = 0; i < 7; i++)
		commit(j, 3000);
	assert_int_equal(lac__journal_close(j), 0);
	/* 1 and 2 are left over, 4 is missing, 5 is there, 6 was cut short, a preparation broke
	 * off. */
	assert_int_equal(
		be->ops->rename(be, DIR "/0000000000000004.seg", DIR "/0000000000000005.seg"), 0);
	assert_int_equal(
		lac__open(be, DIR "/0000000000000006.seg", LAC_OPEN_WRITE | LAC_OPEN_CREATE, &file),
		0);
	assert_int_equal(lac__write_full(file, "x", 1, 0), 0);
	assert_int_equal(lac__close(file), 0);
	assert_int_equal(
		lac__open(be, DIR "/prepare.tmp", LAC_OPEN_WRITE | LAC_OPEN_CREATE, &file), 0);
	assert_int_equal(lac__close(file), 0);
	end = scan_check(be, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
	assert_int_equal(end.last_lsn, 7);
	j = journal_open(be, &options, &end, 3);
	assert_int_equal(lac__sim_unsynced(be), 0); /* the new names are there for good */
	assert_false(has_temporary(be));
	assert_false(exists(be, 1));
	assert_false(exists(be, 2));
	assert_false(exists(be, 6));
	assert_true(exists(be, 3) && exists(be, 4) && exists(be, 5));
	assert_int_equal(stats_of(j).files, 3);
	for (int i = 0; i < 7; i++)
		commit(j, 3000);
	assert_int_equal(lac__journal_close(j), 0);
	end = scan_check(be, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
	assert_int_equal(end.last_lsn, 14);
	assert_int_equal(end.epoch, 2);
	lac__sim_free(be);
}

/* A ready segment that lost its blocks in a copy gets them back, or is no ready segment. */
static void sparse_ready_segments(void **state)
{
	for (int full = 0; full < 2; full++) {
		struct lac_backend *be = journal_make(&options);
		struct lac__jscan_options so = scan_options(1, 1);
		struct lac__jscan_end end;
		struct lac__journal *j;
		struct lac_file *file;
		uint64_t used;

		assert_int_equal(lac__sim_unsynced(be), 0);
		used = lac__sim_used_bytes(be);
		for (uint64_t seq = 1; seq <= 3; seq++) {
			char path[64];

			segment_path(seq, path);
			assert_int_equal(lac__open(be, path, LAC_OPEN_WRITE, &file), 0);
			assert_int_equal(lac__punch(file, 0, 16384), 0);
			assert_int_equal(lac__sync(file), 0);
			assert_int_equal(lac__close(file), 0);
		}
		assert_true(lac__sim_used_bytes(be) < used);
		if (full)
			lac__sim_set_capacity(be, lac__sim_used_bytes(be) + 40000);
		end = scan_end(be, &so);
		j = journal_open(be, &options, &end, 1);
		assert_int_equal(lac__sim_used_bytes(be), full ? used - 16384 : used);
		assert_int_equal(stats_of(j).files, full ? 2 : 3);
		commit(j, 3000);
		assert_int_equal(lac__journal_close(j), 0);
		lac__sim_free(be);
	}
}

static void restart_refuses_nonsense(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__jscan_options so = scan_options(1, 1);
	struct lac__journal *j = NULL;
	struct lac__jscan_end end = scan_end(be, &so);
	struct lac_error err = {0};

	end.next_seq = 3; /* 1 and 2 have no header */
	assert_true(lac__journal_start(be, DIR, &options, &end, 1, NULL, NULL, &j, &err) < 0);
	end.next_seq = 1;
	end.epoch = UINT32_MAX;
	assert_int_equal(
		lac__journal_start(be, DIR, &options, &end, 1, NULL, NULL, &j, &err), -EINVAL);
	end.epoch = 0;
	options.tear_bytes = 1000;
	assert_int_equal(
		lac__journal_start(be, DIR, &options, &end, 1, NULL, NULL, &j, &err), -EINVAL);
	lac__sim_free(be);
}

static void the_thread_prepares(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j;
	struct lac__jscan_options so = scan_options(1, 1);

	options.background = true;
	options.ready_target = 4;
	j = journal_open_new(be, &options);
	for (int i = 0; i < 60; i++)
		commit(j, 3000);
	release(j, 30);
	for (int i = 0; i < 60; i++)
		commit(j, 3000);
	so = scan_options(60, lac__journal_seq_of(j, 60));
	assert_int_equal(lac__journal_close(j), 0);
	assert_int_equal(scan_check(be, &so, NULL).last_lsn, 120);
	lac__sim_free(be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(recycled_segments_never_replay, setup),
		cmocka_unit_test_setup(release_keeps_what_is_needed, setup),
		cmocka_unit_test_setup(seq_of_names_durable_segments_only, setup),
		cmocka_unit_test_setup(surplus_is_unlinked, setup),
		cmocka_unit_test_setup(jumbo_records, setup),
		cmocka_unit_test_setup(jumbo_on_a_full_disk, setup),
		cmocka_unit_test_setup(enospc_leaves_no_trace, setup),
		cmocka_unit_test_setup(pressed_comes_in_time, setup),
		cmocka_unit_test_setup(start_on_a_full_disk, setup),
		cmocka_unit_test_setup(create_on_a_full_disk, setup),
		cmocka_unit_test_setup(failures_of_housekeeping, setup),
		cmocka_unit_test_setup(restart_puts_files_in_order, setup),
		cmocka_unit_test_setup(sparse_ready_segments, setup),
		cmocka_unit_test_setup(restart_refuses_nonsense, setup),
		cmocka_unit_test_setup(the_thread_prepares, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
