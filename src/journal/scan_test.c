/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/scan_test.c - what a scan says of journals that were cut, damaged, mixed up or forged,
 * and that an I/O error is never taken for an end.
 */
#include "journal/testing.h"

#include "format/frame.h"

#define SEGMENT_BYTES 16384u

static struct lac__journal_options options;

static int setup(void **state)
{
	options = test_options();
	return 0;
}

static struct lac__jscan_options scan_all(void)
{
	return scan_options(1, 1);
}

static struct lac_backend *copy_of(struct lac_backend *be)
{
	struct lac_backend *copy;

	assert_int_equal(lac__sim_clone(be, &copy), 0);
	return copy;
}

static void flip(struct lac_backend *be, uint64_t seq, uint64_t offset, uint8_t mask)
{
	char path[64];
	uint8_t byte;

	segment_path(seq, path);
	assert_int_equal(lac__sim_peek(be, path, offset, &byte, 1), 0);
	byte ^= mask;
	assert_int_equal(lac__sim_poke(be, path, offset, &byte, 1), 0);
}

static void cut(struct lac_backend *be, uint64_t seq, uint64_t size)
{
	struct lac_file *file;
	char path[64];

	segment_path(seq, path);
	assert_int_equal(lac__open(be, path, LAC_OPEN_WRITE, &file), 0);
	assert_int_equal(lac__truncate(file, size), 0);
	assert_int_equal(lac__sync(file), 0);
	assert_int_equal(lac__close(file), 0);
}

/* Groups of one record of `length` bytes each, and where each one's frame ends. */
static struct lac_backend *journal_of(unsigned groups, size_t length, uint64_t *ret_ends)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);

	for (unsigned i = 0; i < groups; i++) {
		commit(j, length);
		if (ret_ends)
			ret_ends[i] = LAC__PAGE_BYTES + lac__journal_live_bytes(j);
	}
	assert_int_equal(lac__journal_close(j), 0);
	return be;
}

static void empty_journal_is_clean(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__jscan_options so = scan_all();
	struct lac__jscan_end end = scan_check(be, &so, NULL);

	assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
	assert_int_equal(end.last_lsn, 0);
	assert_int_equal(end.next_seq, 1);
	assert_int_equal(end.epoch, 0);
	so.least_lsn = 1;
	end = scan_end(be, &so);
	assert_int_equal(end.verdict, LAC__JOURNAL_CORRUPT);
	assert_int_equal(end.evidence.reason, LAC_REASON_JOURNAL_SHORT);
	lac__sim_free(be);
}

static void records_of_every_length_come_back(void **state)
{
	static const size_t lengths[] = {0, 1, 7, 8, 9, 439, 440, 441, 511, 512, 513, 4095, 4096,
		8000, 11000, 16000, 50000, RECORD_MAX, 3};
	static const uint32_t tears[] = {512, 4096, 65536};

	for (size_t t = 0; t < 3; t++) {
		struct lac__jscan_options so = scan_all();
		struct lac_backend *be;
		struct lac__journal *j;
		struct lac__jscan_end end;

		options.tear_bytes = tears[t];
		options.segment_bytes = tears[t] == 65536 ? 4 * 65536 : SEGMENT_BYTES;
		be = journal_make(&options);
		j = journal_open_new(be, &options);
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
			commit(j, lengths[i]);
		assert_int_equal(lac__journal_close(j), 0);
		end = scan_check(be, &so, NULL);
		assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
		assert_int_equal(end.last_lsn, sizeof lengths / sizeof *lengths);
		so.from_lsn = 9;
		end = scan_check(be, &so, NULL);
		assert_int_equal(end.last_lsn, sizeof lengths / sizeof *lengths);
		lac__sim_free(be);
	}
}

/* After a cut the whole frames before it remain, and a promise of more makes it corrupt. */
static void every_truncation(void **state)
{
	enum { GROUPS = 6 };
	uint64_t ends[GROUPS];
	struct lac_backend *be = journal_of(GROUPS, 700, ends);

	for (uint64_t size = 0; size <= ends[GROUPS - 1]; size += 41) {
		struct lac_backend *copy = copy_of(be);
		struct lac__jscan_options so = scan_all();
		struct lac__jscan_end end;
		uint64_t whole = 0;

		/* The last bytes before a frame's end are padding: 64 + 8 + 704 of 1024. */
		while (whole < GROUPS && size >= ends[whole] - 1024 + 776)
			whole++;
		cut(copy, 1, size);
		end = scan_check(copy, &so, NULL);
		assert_int_not_equal(end.verdict, LAC__JOURNAL_CORRUPT);
		assert_int_equal(end.last_lsn, whole);
		so.least_lsn = GROUPS;
		end = scan_end(copy, &so);
		assert_int_equal(end.verdict == LAC__JOURNAL_CORRUPT, whole < GROUPS);
		lac__sim_free(copy);
	}
	lac__sim_free(be);
}

/* Any changed byte of a frame that another one follows is damage; of the last one it can't be told
   from a torn group; padding does not matter. */
static void every_flipped_byte(void **state)
{
	enum { GROUPS = 4 };
	uint64_t ends[GROUPS], used = 64 + 8 + 80;
	struct lac_backend *be = journal_of(GROUPS, 77, ends);

	for (uint64_t at = 0; at < ends[GROUPS - 1]; at += at < 128 || at >= 4000 ? 1 : 67) {
		struct lac_backend *copy = copy_of(be);
		struct lac__jscan_options so = scan_all();
		struct lac__jscan_end end;
		uint64_t frame = (at - LAC__PAGE_BYTES) / 512;
		bool hit = at < LAC__PAGE_BYTES || (at - LAC__PAGE_BYTES) % 512 < used;

		flip(copy, 1, at, (uint8_t)(1u << at % 8));
		end = scan_check(copy, &so, NULL);
		if (!hit) {
			assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
			assert_int_equal(end.last_lsn, GROUPS);
		} else if (at < LAC__PAGE_BYTES) {
			assert_int_equal(end.verdict, LAC__JOURNAL_CORRUPT);
			assert_int_equal(end.last_lsn, 0);
		} else if (frame < GROUPS - 1) {
			assert_int_equal(end.verdict, LAC__JOURNAL_CORRUPT);
			assert_int_equal(end.last_lsn, frame);
			assert_int_equal(end.offset, LAC__PAGE_BYTES + frame * 512);
			assert_int_equal(end.evidence.reason, LAC_REASON_JOURNAL_CORRUPT);
		} else {
			assert_int_not_equal(end.verdict, LAC__JOURNAL_CORRUPT);
			assert_int_equal(end.last_lsn, GROUPS - 1);
		}
		lac__sim_free(copy);
	}
	lac__sim_free(be);
}

/* A marker confirms the last group: its damage is then no torn tail. */
static void marker_confirms(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	struct lac__jscan_options so = scan_all();
	struct lac__journal_stats stats;
	struct lac__jscan_end end;
	struct lac_error err = {0};

	assert_ok(lac__journal_mark(j, &err), &err); /* nothing to confirm */
	commit(j, 100);
	assert_ok(lac__journal_mark(j, &err), &err);
	assert_ok(lac__journal_mark(j, &err), &err);
	lac__journal_stats(j, &stats);
	assert_int_equal(stats.groups, 2);
	assert_int_equal(lac__journal_close(j), 0);
	end = scan_check(be, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
	assert_int_equal(end.last_lsn, 1);
	flip(be, 1, LAC__PAGE_BYTES + 70, 1);
	end = scan_end(be, &so);
	assert_int_equal(end.verdict, LAC__JOURNAL_CORRUPT);
	assert_int_equal(end.last_lsn, 0);
	lac__sim_free(be);
}

/* A damaged marker hides records behind it just as a damaged group does. */
static void damaged_marker_is_corrupt(void **state)
{
	struct lac_backend *be = journal_make(&options);
	struct lac__journal *j = journal_open_new(be, &options);
	struct lac__jscan_options so = scan_all();
	struct lac__jscan_end end;
	struct lac_error err = {0};

	commit(j, 100);
	assert_ok(lac__journal_mark(j, &err), &err);
	commit(j, 100);
	assert_int_equal(lac__journal_close(j), 0);
	flip(be, 1, LAC__PAGE_BYTES + 512 + 40, 1);
	end = scan_end(be, &so);
	assert_int_equal(end.verdict, LAC__JOURNAL_CORRUPT);
	assert_int_equal(end.last_lsn, 1);
	lac__sim_free(be);
}

/* The end of a segment is what the next header says: damage there is found without a later frame.
 */
static void next_header_is_the_authority(void **state)
{
	struct lac_backend *be = journal_of(7, 3000, NULL); /* 3 to a segment */
	struct lac__jscan_options so = scan_all();
	struct lac__jscan_end end = scan_check(be, &so, NULL);
	struct lac_backend *copy;

	assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
	assert_int_equal(end.last_lsn, 7);
	assert_int_equal(end.seq, 3);
	assert_int_equal(end.next_seq, 4);

	copy = copy_of(be);
	flip(copy, 2, LAC__PAGE_BYTES + 2 * 3072 + 1024, 1); /* the third */
	end = scan_check(copy, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_CORRUPT);
	assert_int_equal(end.last_lsn, 5);
	lac__sim_free(copy);

	copy = copy_of(
		be); /* no header, but frames: the second one says that the first was durable */
	flip(copy, 2, 20, 1);
	end = scan_check(copy, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_CORRUPT);
	assert_int_equal(end.last_lsn, 3);
	assert_int_equal(end.next_seq, 4);
	lac__sim_free(copy);

	copy = copy_of(be); /* a file is gone */
	assert_int_equal(copy->ops->unlink(copy, DIR "/0000000000000002.seg"), 0);
	end = scan_check(copy, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_CORRUPT);
	assert_int_equal(end.evidence.reason, LAC_REASON_JOURNAL_GAP);
	lac__sim_free(copy);

	copy = copy_of(be); /* the first one is */
	assert_int_equal(copy->ops->unlink(copy, DIR "/0000000000000001.seg"), 0);
	end = scan_check(copy, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_CORRUPT);
	assert_int_equal(end.last_lsn, 0);
	lac__sim_free(copy);

	/* The header of the last segment: its only frame could have been torn with it. */
	flip(be, 3, 20, 1);
	end = scan_check(be, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_TORN);
	assert_int_equal(end.last_lsn, 6);
	assert_int_equal(end.next_seq, 3);
	lac__sim_free(be);
}

/* What the caller knows: redo's start, a checkpoint's LSN, a clean close. */
static void the_caller_knows_more(void **state)
{
	struct lac_backend *be = journal_of(5, 100, NULL);
	struct lac__jscan_options so = scan_all();
	struct lac__jscan_end end;
	struct lac__journal *j;

	so.least_lsn = 5;
	so.clean_lsn = 5;
	assert_int_equal(scan_end(be, &so).verdict, LAC__JOURNAL_CLEAN);
	so.clean_lsn = 6;
	assert_int_equal(scan_end(be, &so).verdict, LAC__JOURNAL_CORRUPT);
	so.clean_lsn = 4; /* the same run wrote on */
	assert_int_equal(scan_end(be, &so).verdict, LAC__JOURNAL_CORRUPT);
	so.clean_lsn = 0;
	so.least_lsn = 6;
	assert_int_equal(scan_end(be, &so).verdict, LAC__JOURNAL_CORRUPT);
	so.least_lsn = 0;
	so.from_lsn = 6;
	assert_int_equal(scan_end(be, &so).verdict, LAC__JOURNAL_CLEAN);
	so.from_lsn = 7;
	assert_int_equal(scan_end(be, &so).verdict, LAC__JOURNAL_CORRUPT);
	so = scan_all();
	so.from_seq = 2;
	so.from_lsn = 6;
	end = scan_end(be, &so);
	assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
	assert_int_equal(end.last_lsn, 5);

	so = scan_all(); /* a later run is no contradiction to the clean close */
	end = scan_end(be, &so);
	j = journal_open(be, &options, &end, 1);
	commit(j, 100);
	assert_int_equal(lac__journal_close(j), 0);
	so.clean_lsn = 5;
	end = scan_check(be, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
	assert_int_equal(end.last_lsn, 6);
	assert_int_equal(end.epoch, 2);
	so.from_seq = 2; /* begins behind the clean close: all that it finds is a later run's */
	so.from_lsn = 6;
	assert_int_equal(scan_end(be, &so).verdict, LAC__JOURNAL_CLEAN);
	so.from_lsn = 1; /* begins above what is wanted */
	so.clean_lsn = 0;
	assert_int_equal(scan_end(be, &so).verdict, LAC__JOURNAL_CORRUPT);
	lac__sim_free(be);
}

/* No read, open, list or sync that fails is taken for an end. */
static void io_errors_are_errors(void **state)
{
	static const enum lac__sim_op kinds[] = {
		LAC__SIM_READ, LAC__SIM_OPEN, LAC__SIM_LIST, LAC__SIM_SYNC, LAC__SIM_INFO};
	struct lac_backend *be = journal_of(7, 3000, NULL);
	struct lac__jscan_options so = scan_all();

	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		for (uint64_t n = 0;; n++) {
			struct lac__jscan *scan = NULL;
			struct lac__jrecord record;
			struct lac_error err = {0};
			uint64_t lsn = 0;
			int rc;

			lac__sim_heal(be);
			assert_true(
				lac__sim_arm(be, kinds[k], NULL, n, false, LAC__SIM_ERRNO, EIO));
			uint64_t before = lac__sim_struck(be);

			rc = lac__jscan_open(be, DIR, &so, &scan, &err);
			while (rc == 0 && (rc = lac__jscan_next(scan, &record, &err)) == 0)
				lsn = record.lsn;
			lac__jscan_close(scan);
			if (lac__sim_struck(be) == before) {
				assert_int_equal(rc, 1);
				assert_int_equal(lsn, 7);
				assert_true(n > 0);
				break;
			}
			assert_int_equal(rc, -EIO);
			assert_int_equal(err.code, -EIO);
		}
	}
	lac__sim_heal(be);
	lac__sim_free(be);
}

/* ---- forged bytes ---- */

static void put_header(struct lac_backend *be, const struct lac__segment_header *h)
{
	uint8_t page[LAC__PAGE_BYTES];
	char path[64];

	segment_path(h->seq, path);
	lac__segment_header_encode(h, page);
	assert_int_equal(lac__sim_poke(be, path, 0, page, sizeof page), 0);
}

/* A frame with one record of 24 bytes. */
static void put_frame(struct lac_backend *be, uint64_t seq, uint32_t epoch, uint64_t offset,
	uint64_t lsn, uint64_t watermark, bool whole)
{
	uint8_t bytes[64 + 32], record[24];
	struct lac__frame_header h = {.seq = seq,
		.offset = offset,
		.epoch = epoch,
		.first_lsn = lsn,
		.count = 1,
		.watermark = watermark,
		.body_bytes = 32};
	char path[64];

	segment_path(seq, path);
	record_make(lsn, 0, sizeof record, record);
	lac__frame_record_encode(record, sizeof record, bytes + 64);
	lac__frame_header_encode(&h, &test_uuid, bytes + 64, bytes);
	bytes[90] ^= whole ? 0 : 1;
	assert_int_equal(lac__sim_poke(be, path, offset, bytes, sizeof bytes), 0);
}

static struct lac__segment_header header_of(uint64_t seq, uint32_t epoch, uint64_t first_lsn)
{
	return (struct lac__segment_header){.uuid = test_uuid,
		.seq = seq,
		.epoch = epoch,
		.tear_bytes = 512,
		.segment_bytes = SEGMENT_BYTES,
		.first_lsn = first_lsn,
		.prev_last_lsn = first_lsn - 1};
}

static void forged_segments(void **state)
{
	struct lac_backend *be = journal_of(3, 24, NULL), *copy;
	struct lac__jscan_options so = scan_all();
	struct lac__segment_header h;
	struct lac__jscan_end end;

	copy = copy_of(be); /* the next segment ends below what verifies here */
	h = header_of(2, 1, 3);
	put_header(copy, &h);
	assert_int_equal(scan_end(copy, &so).verdict, LAC__JOURNAL_CORRUPT);
	h = header_of(2, 1, 4);
	put_header(copy, &h);
	assert_int_equal(scan_end(copy, &so).verdict, LAC__JOURNAL_CLEAN);
	h = header_of(2, 1, 5); /* above it */
	put_header(copy, &h);
	assert_int_equal(scan_end(copy, &so).verdict, LAC__JOURNAL_CORRUPT);
	h = header_of(2, 1, 4);
	h.prev_last_lsn = 2; /* contradicts itself */
	put_header(copy, &h);
	assert_int_equal(scan_end(copy, &so).verdict, LAC__JOURNAL_CORRUPT);
	lac__sim_free(copy);

	copy = copy_of(be); /* an epoch that goes back */
	h = header_of(2, 7, 4);
	put_header(copy, &h);
	h = header_of(3, 6, 4);
	put_header(copy, &h);
	end = scan_end(copy, &so);
	assert_int_equal(end.verdict, LAC__JOURNAL_CORRUPT);
	assert_int_equal(end.epoch, 7);
	assert_int_equal(end.next_seq, 4);
	lac__sim_free(copy);

	copy = copy_of(be); /* a frame that verifies, but is not the next one */
	put_frame(copy, 1, 1, LAC__PAGE_BYTES + 3 * 512, 5, 3, true);
	assert_int_equal(scan_end(copy, &so).verdict, LAC__JOURNAL_CORRUPT);
	put_frame(copy, 1, 1, LAC__PAGE_BYTES + 3 * 512, 4, 3, true);
	end = scan_check(copy, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_CLEAN);
	assert_int_equal(end.last_lsn, 4);
	put_frame(copy, 1, 1, LAC__PAGE_BYTES + 3 * 512, 4, 3, false);
	end = scan_check(copy, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_TORN);
	assert_int_equal(end.torn_bytes, 96);
	/* and a frame behind it, issued when LSN 4 was durable */
	put_frame(copy, 1, 1, SEGMENT_BYTES - 512, 5, 4, true);
	assert_int_equal(scan_end(copy, &so).verdict, LAC__JOURNAL_CORRUPT);
	/* of another epoch: what an earlier use of the segment left */
	put_frame(copy, 1, 2, SEGMENT_BYTES - 512, 5, 4, true);
	assert_int_equal(scan_end(copy, &so).verdict, LAC__JOURNAL_TORN);
	lac__sim_free(copy);
	lac__sim_free(be);
}

/* A first group that lost its header leaves its epoch behind: the next run must use another one. */
static void headless_group(void **state)
{
	struct lac_backend *be = journal_of(3, 24, NULL);
	struct lac__jscan_options so = scan_all();
	struct lac__jscan_end end;

	put_frame(be, 2, 9, LAC__PAGE_BYTES, 4, 3, true);
	end = scan_check(be, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_TORN);
	assert_int_equal(end.last_lsn, 3);
	assert_int_equal(end.next_seq, 2);
	assert_int_equal(end.epoch, 9);
	put_frame(be, 2, 9, LAC__PAGE_BYTES + 512, 5, 4, true);
	end = scan_check(be, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_CORRUPT);
	assert_int_equal(end.last_lsn, 3);
	lac__sim_free(be);

	be = journal_make(&options); /* the very first group */
	put_frame(be, 1, 1, LAC__PAGE_BYTES, 1, 0, true);
	end = scan_check(be, &so, NULL);
	assert_int_equal(end.verdict, LAC__JOURNAL_TORN);
	assert_int_equal(end.next_seq, 1);
	assert_int_equal(end.epoch, 1);
	lac__sim_free(be);
}

/* Whatever stands in the files: a result, no crash, bounded memory. */
static void random_bytes(void **state)
{
	struct lac_backend *be = journal_of(7, 3000, NULL);
	uint64_t random = 88172645463325252u;

	for (int round = 0; round < 300; round++) {
		struct lac_backend *copy = copy_of(be);
		struct lac__jscan_options so = scan_all();

		for (int i = 0; i < 1 + round % 7; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			flip(copy, 1 + random % 3, random / 3 % SEGMENT_BYTES,
				(uint8_t)(1 + random / 65536 % 255));
		}
		scan_check(copy, &so, NULL);
		lac__sim_free(copy);
	}
	lac__sim_free(be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(empty_journal_is_clean, setup),
		cmocka_unit_test_setup(records_of_every_length_come_back, setup),
		cmocka_unit_test_setup(every_truncation, setup),
		cmocka_unit_test_setup(every_flipped_byte, setup),
		cmocka_unit_test_setup(marker_confirms, setup),
		cmocka_unit_test_setup(damaged_marker_is_corrupt, setup),
		cmocka_unit_test_setup(next_header_is_the_authority, setup),
		cmocka_unit_test_setup(the_caller_knows_more, setup),
		cmocka_unit_test_setup(io_errors_are_errors, setup),
		cmocka_unit_test_setup(forged_segments, setup),
		cmocka_unit_test_setup(headless_group, setup),
		cmocka_unit_test_setup(random_bytes, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
