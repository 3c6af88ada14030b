/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/testing.h - what the tests of this layer share: a journal on the lying backend, records
 * that can be told by their LSN, and a scan that checks them.
 */
#ifndef LAC_JOURNAL_TESTING_H
#define LAC_JOURNAL_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/sim.h"
#include "journal/journal_internal.h"

#define DIR	   "journal"
#define RECORD_MAX (256u << 10)

#define assert_ok(rc, err)                                                                         \
	do {                                                                                       \
		int rc_ = (rc);                                                                    \
		if (rc_ != 0)                                                                      \
			print_message("%s:%d: %d: %s\n", __FILE__, __LINE__, rc_, (err)->message); \
		assert_int_equal(rc_, 0);                                                          \
	} while (0)

static const struct lac__uuid test_uuid = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

static inline struct lac__journal_options test_options(void)
{
	return (struct lac__journal_options){.uuid = test_uuid,
		.segment_bytes = 16384,
		.segments_min = 3,
		.ready_target = 1,
		.tear_bytes = 512,
		.record_bytes_max = RECORD_MAX};
}

/* generation tells apart records that had the same LSN before and after a torn group. */
static inline size_t record_make(uint64_t lsn, unsigned generation, size_t length, uint8_t *ret)
{
	for (size_t i = 0; i < length; i++)
		ret[i] = (uint8_t)(lsn * 131 + generation * 31 + i * 7 + 1);
	if (length >= 16) {
		memcpy(ret, &lsn, 8);
		memcpy(ret + 8, &generation, sizeof generation);
	}
	return length;
}

static inline bool record_is(uint64_t lsn, unsigned generation, const void *bytes, size_t length)
{
	uint8_t *want = malloc(length + 1);
	bool same;

	assert_non_null(want);
	record_make(lsn, generation, length, want);
	same = memcmp(want, bytes, length) == 0;
	free(want);
	return same;
}

static inline struct lac_backend *sim_make(const struct lac__sim_options *options)
{
	struct lac__sim_options none = {0};
	struct lac_backend *be;

	assert_int_equal(lac__sim_new(options ? options : &none, &be), 0);
	assert_int_equal(be->ops->make_dir(be, DIR), 0);
	assert_int_equal(be->ops->sync_dir(be, ""), 0);
	return be;
}

static inline struct lac_backend *journal_make(const struct lac__journal_options *options)
{
	struct lac_backend *be = sim_make(NULL);
	struct lac_error err = {0};

	assert_ok(lac__journal_create(be, DIR, options, &err), &err);
	return be;
}

static inline struct lac__jscan_options scan_options(uint64_t from_lsn, uint64_t from_seq)
{
	return (struct lac__jscan_options){.uuid = test_uuid,
		.from_lsn = from_lsn,
		.from_seq = from_seq,
		.record_bytes_max = RECORD_MAX,
		.past_cache = true};
}

static inline struct lac__jscan_end scan_end(
	struct lac_backend *be, const struct lac__jscan_options *options)
{
	struct lac__jscan *scan = NULL;
	struct lac__jscan_end end;
	struct lac_error err = {0};

	assert_ok(lac__jscan_open(be, DIR, options, &scan, &err), &err);
	lac__jscan_end(scan, &end);
	lac__jscan_close(scan);
	return end;
}

/* Walks all records and checks them; generations[lsn] may be NULL for all 0. */
static inline struct lac__jscan_end scan_check(struct lac_backend *be,
	const struct lac__jscan_options *options, const unsigned *generations)
{
	struct lac__jscan *scan = NULL;
	struct lac__jscan_end end;
	struct lac__jrecord record;
	struct lac_error err = {0};
	uint64_t lsn = options->from_lsn;
	int rc;

	assert_ok(lac__jscan_open(be, DIR, options, &scan, &err), &err);
	lac__jscan_end(scan, &end);
	for (int round = 0; round < 2; round++) {
		lsn = options->from_lsn;
		while ((rc = lac__jscan_next(scan, &record, &err)) == 0) {
			assert_int_equal(record.lsn, lsn);
			assert_true(record.watermark < lsn);
			assert_true(record_is(lsn, generations ? generations[lsn] : 0, record.bytes,
				record.length));
			lsn++;
		}
		assert_int_equal(rc, 1);
		if (end.last_lsn >= options->from_lsn)
			assert_int_equal(lsn - 1, end.last_lsn);
		assert_ok(lac__jscan_rewind(scan, &err), &err);
	}
	lac__jscan_close(scan);
	return end;
}

static inline struct lac__journal *journal_open(struct lac_backend *be,
	const struct lac__journal_options *options, const struct lac__jscan_end *end,
	uint64_t keep_seq)
{
	struct lac__journal *j = NULL;
	struct lac_error err = {0};

	assert_ok(lac__journal_start(be, DIR, options, end, keep_seq, NULL, NULL, &j, &err), &err);
	return j;
}

static inline struct lac__journal *journal_open_new(
	struct lac_backend *be, const struct lac__journal_options *options)
{
	struct lac__jscan_options so = scan_options(1, 1);
	struct lac__jscan_end end = scan_end(be, &so);

	assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
	return journal_open(be, options, &end, 1);
}

static inline int try_append(struct lac__journal *j, unsigned generation, size_t length,
	unsigned flags, uint64_t *ret_lsn, struct lac_error *err)
{
	uint8_t *bytes = malloc(length + 1);
	int rc;

	assert_non_null(bytes);
	record_make(lac__journal_next_lsn(j), generation, length, bytes);
	rc = lac__journal_append(j, bytes, length, flags, ret_lsn, err);
	free(bytes);
	return rc;
}

static inline uint64_t append(struct lac__journal *j, size_t length)
{
	struct lac_error err = {0};
	uint64_t lsn = 0;

	assert_ok(try_append(j, 0, length, 0, &lsn, &err), &err);
	return lsn;
}

static inline uint64_t commit(struct lac__journal *j, size_t length)
{
	struct lac_error err = {0};
	uint64_t lsn = append(j, length);

	assert_ok(lac__journal_wait(j, lsn, &err), &err);
	return lsn;
}

static inline void segment_path(uint64_t seq, char *ret)
{
	snprintf(ret, 64, DIR "/%016" PRIx64 ".seg", seq);
}

#endif
