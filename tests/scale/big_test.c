/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/scale/big_test.c - a block of more than 4 GiB on real files: put in pieces, read around
 * 2^31, 2^32 and its end, deleted, its space given back. Skipped aloud where the disk is too small.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include <cmocka.h>

#include "common/blocks.h"
#include "lacuna/check.h"
#include "lacuna/lacuna.h"

#define BIG_BYTES   ((UINT64_C(1) << 32) + 1234567)
#define PIECE_BYTES (UINT64_C(8) << 20)
#define NEED_BYTES  (UINT64_C(6) << 30)

/* One piece, written again and again with its number in front: cheap, and every place differs. */
static void stamp(uint8_t *piece, uint64_t number)
{
	memcpy(piece, &number, sizeof number);
	memcpy(piece + PIECE_BYTES / 2, &number, sizeof number);
}

static void expect_at(
	struct lac_store *s, uint64_t id, uint8_t *piece, uint64_t from, size_t length)
{
	uint8_t *got = malloc(length);
	struct lac_error err = {0};

	assert_non_null(got);
	if (lac_block_read(s, id, got, length, from, &err) != (int64_t)length)
		fail_msg("read at %llu: %s", (unsigned long long)from, err.message);
	for (size_t i = 0; i < length; i++) {
		uint64_t at = from + i;

		if (i == 0 || at % PIECE_BYTES == 0)
			stamp(piece, at / PIECE_BYTES);
		if (got[i] != piece[at % PIECE_BYTES])
			fail_msg("byte %llu is wrong", (unsigned long long)at);
	}
	free(got);
}

static uint64_t put_big(struct lac_store *s, uint8_t *piece)
{
	struct lac_error err = {0};
	struct lac_txn *txn;
	struct lac_put *put;
	uint64_t id;

	assert_int_equal(lac_txn_begin(s, &txn, &err), 0);
	if (lac_put_begin(txn, BIG_BYTES, 7, &put, &err) < 0)
		fail_msg("%s", err.message);
	for (uint64_t at = 0; at < BIG_BYTES; at += PIECE_BYTES) {
		uint64_t take = BIG_BYTES - at < PIECE_BYTES ? BIG_BYTES - at : PIECE_BYTES;

		stamp(piece, at / PIECE_BYTES);
		if (lac_put_write(put, piece, take, &err) < 0)
			fail_msg("%s", err.message);
	}
	if (lac_put_finish(put, &id, &err) < 0 || lac_txn_commit(txn, NULL, &err) < 0)
		fail_msg("%s", err.message);
	return id;
}

static void delete_big(struct lac_store *s, uint64_t id)
{
	struct lac_reclaim_result result;
	struct lac_store_stats stats = {.size = sizeof stats};
	struct lac_txn *txn;

	assert_int_equal(lac_txn_begin(s, &txn, NULL), 0);
	assert_int_equal(lac_txn_delete(txn, id, NULL), 0);
	assert_int_equal(lac_txn_commit(txn, NULL, NULL), 0);
	assert_int_equal(lac_store_reclaim(s, &result, NULL), 0);
	assert_true(
		result.punched_bytes + result.unlinked_bytes + result.truncated_bytes >= BIG_BYTES);
	assert_int_equal(lac_store_stat(s, &stats, NULL), 0);
	assert_true(stats.allocated_bytes < 64 << 20);
}

static void test_big(void **state)
{
	struct lac_check_options check = {.size = sizeof check};
	struct lac_check_result result;
	struct lac_open_options open = {.size = sizeof open, .no_background = true};
	struct lac_store *s;
	struct lac_error err = {0};
	char *dir = test_make_dir("big");
	uint8_t *piece = malloc(PIECE_BYTES);
	struct statvfs fs;
	uint64_t id;

	(void)state;
	assert_non_null(dir);
	assert_non_null(piece);
	assert_int_equal(statvfs(dir, &fs), 0);
	if ((uint64_t)fs.f_bavail * fs.f_frsize < NEED_BYTES || test_scale() < 1) {
		print_message("SKIP big: needs 6 GiB of disk and a full run\n");
		goto out;
	}
	test_fill(piece, PIECE_BYTES, 1);
	assert_int_equal(lac_store_create(dir, NULL, &err), 0);
	assert_int_equal(lac_store_open(dir, &open, &s, &err), 0);
	id = put_big(s, piece);
	expect_at(s, id, piece, 0, 100000);
	expect_at(s, id, piece, (UINT64_C(1) << 31) - 70000, 140000);
	expect_at(s, id, piece, (UINT64_C(1) << 32) - 3, 7);
	expect_at(s, id, piece, BIG_BYTES - 65537, 65537);
	assert_int_equal(lac_store_close(s, &err), 0);
	assert_int_equal(lac_check(dir, &check, &result, &err), 0);
	assert_int_equal(result.damages + result.fatals, 0);
	assert_int_equal(result.live_bytes, BIG_BYTES);
	assert_int_equal(lac_store_open(dir, &open, &s, &err), 0);
	expect_at(s, id, piece, BIG_BYTES / 2, 1);
	delete_big(s, id);
	assert_int_equal(lac_store_close(s, &err), 0);
out:
	free(piece);
	test_remove_dir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_big)};

	return cmocka_run_group_tests_name("big", tests, NULL, NULL);
}
