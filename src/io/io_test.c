/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/io_test.c - whole reads and writes over a backend that does as little as its contract allows.
 */
#include "io/io.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FAKE_SIZE = 10000 };

struct fake {
	struct lac_backend be;
	struct lac_file file;
	unsigned char bytes[FAKE_SIZE];
	size_t most;	     /* bytes that one call moves */
	unsigned interrupts; /* so many EINTR before each success */
	unsigned pending;    /* of those, still to come */
	int fail_code;	     /* the call number fail_at fails with it */
	unsigned fail_at;
	unsigned calls;
	bool direct;	/* want aligned calls */
	bool overlong;	/* claim more than was asked for */
	size_t largest; /* length of the largest call */
	uint64_t allocated_to, largest_allocate;
	unsigned closes;
};

static struct fake *fake_of(struct lac_file *file)
{
	return (struct fake *)file->backend;
}

/* 0, or what the call has to fail with before it does anything. */
static int obstacle(struct fake *f)
{
	if (f->pending > 0) {
		f->pending--;
		return -EINTR;
	}
	f->pending = f->interrupts;
	if (f->fail_code != 0 && f->calls == f->fail_at)
		return f->fail_code;
	f->calls++;
	return 0;
}

static size_t share(struct fake *f, size_t length, uint64_t offset)
{
	if (length > f->largest)
		f->largest = length;
	if (offset >= FAKE_SIZE)
		return 0;
	if (length > FAKE_SIZE - offset)
		length = FAKE_SIZE - (size_t)offset;
	return length < f->most ? length : f->most;
}

static ssize_t fake_pread(struct lac_file *file, void *buf, size_t length, uint64_t offset)
{
	struct fake *f = fake_of(file);
	int rc = obstacle(f);
	if (rc < 0)
		return rc;
	if (f->direct && ((uintptr_t)buf | length | offset) % 4096 != 0)
		return -EINVAL;
	if (f->overlong)
		return (ssize_t)length + 1;
	size_t n = share(f, length, offset);
	if (n > 0)
		memcpy(buf, f->bytes + offset, n);
	return (ssize_t)n;
}

static ssize_t fake_pwrite(struct lac_file *file, const void *buf, size_t length, uint64_t offset)
{
	struct fake *f = fake_of(file);
	int rc = obstacle(f);
	if (rc < 0)
		return rc;
	if (f->direct && ((uintptr_t)buf | length | offset) % 4096 != 0)
		return -EINVAL;
	if (f->overlong)
		return (ssize_t)length + 1;
	size_t n = share(f, length, offset);
	if (n > 0)
		memcpy(f->bytes + offset, buf, n);
	return (ssize_t)n;
}

static int fake_open(
	struct lac_backend *be, const char *path, unsigned flags, struct lac_file **ret)
{
	struct fake *f = (struct fake *)be;
	int rc = obstacle(f);
	if (rc == 0)
		*ret = &f->file;
	return rc;
}

static int fake_close(struct lac_file *file)
{
	fake_of(file)->closes++;
	return obstacle(fake_of(file));
}

static int fake_sync(struct lac_file *file)
{
	return obstacle(fake_of(file));
}

static int fake_allocate(struct lac_file *file, uint64_t offset, uint64_t length)
{
	struct fake *f = fake_of(file);
	/* Large pieces never get through when every call is interrupted. */
	if (f->interrupts == UINT32_MAX && length > 1u << 20)
		return -EINTR;
	int rc = f->interrupts == UINT32_MAX ? 0 : obstacle(f);
	if (rc < 0)
		return rc;
	assert_int_equal(offset, f->allocated_to);
	f->allocated_to += length;
	if (length > f->largest_allocate)
		f->largest_allocate = length;
	return 0;
}

static int fake_punch(struct lac_file *file, uint64_t offset, uint64_t length)
{
	return obstacle(fake_of(file));
}

static int fake_truncate(struct lac_file *file, uint64_t size)
{
	return obstacle(fake_of(file));
}

static int fake_file_info(struct lac_file *file, struct lac_file_info *ret)
{
	*ret = (struct lac_file_info){.size_bytes = FAKE_SIZE};
	return obstacle(fake_of(file));
}

static const struct lac_backend_ops fake_ops = {
	.file_info = fake_file_info,
	.open = fake_open,
	.close = fake_close,
	.pread = fake_pread,
	.pwrite = fake_pwrite,
	.sync = fake_sync,
	.allocate = fake_allocate,
	.punch = fake_punch,
	.truncate = fake_truncate,
};

static struct fake fake;
static unsigned char buffer[FAKE_SIZE + 100];

static int setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	memset(buffer, 0, sizeof(buffer));
	fake.be.ops = &fake_ops;
	fake.file.backend = &fake.be;
	fake.most = SIZE_MAX;
	for (int i = 0; i < FAKE_SIZE; i++)
		fake.bytes[i] = (unsigned char)(i * 7 + i / 256);
	return 0;
}

static void reads_whole_over_short_counts_and_signals(void **state)
{
	fake.most = 7;
	fake.interrupts = 3;
	fake.pending = 3;
	assert_int_equal(lac__read_full(&fake.file, buffer, 1000, 55), 0);
	assert_memory_equal(buffer, fake.bytes + 55, 1000);
	assert_int_equal(buffer[1000], 0);
	assert_int_equal(fake.calls, 143);
}

static void early_end_is_a_count_or_enodata(void **state)
{
	fake.most = 64;
	assert_int_equal(lac__read_up_to(&fake.file, buffer, 500, FAKE_SIZE - 100), 100);
	assert_memory_equal(buffer, fake.bytes + FAKE_SIZE - 100, 100);
	assert_int_equal(lac__read_up_to(&fake.file, buffer, 500, FAKE_SIZE), 0);
	assert_int_equal(lac__read_full(&fake.file, buffer, 500, FAKE_SIZE - 100), -ENODATA);
	assert_int_equal(lac__read_full(&fake.file, buffer, 0, FAKE_SIZE), 0);
}

static void an_error_after_part_of_a_read_is_an_error(void **state)
{
	/* P13: it must not look like an end. */
	fake.most = 10;
	fake.fail_at = 3;
	fake.fail_code = -EIO;
	assert_int_equal(lac__read_up_to(&fake.file, buffer, 100, 0), -EIO);
	fake.calls = 0;
	assert_int_equal(lac__read_full(&fake.file, buffer, 100, 0), -EIO);
}

static void writes_whole_over_short_counts_and_signals(void **state)
{
	for (int i = 0; i < 1000; i++)
		buffer[i] = (unsigned char)(i ^ 0x5a);
	fake.most = 13;
	fake.interrupts = 2;
	assert_int_equal(lac__write_full(&fake.file, buffer, 1000, 77), 0);
	assert_memory_equal(fake.bytes + 77, buffer, 1000);
	assert_int_equal(fake.bytes[76], (unsigned char)(76 * 7));
}

static void a_failed_write_says_why(void **state)
{
	fake.most = 10;
	fake.fail_at = 2;
	fake.fail_code = -ENOSPC;
	assert_int_equal(lac__write_full(&fake.file, buffer, 100, 0), -ENOSPC);
}

static void a_write_without_progress_ends(void **state)
{
	assert_int_equal(lac__write_full(&fake.file, buffer, 10, FAKE_SIZE), -EIO);
	assert_int_equal(lac__write_full(&fake.file, buffer, 20, FAKE_SIZE - 10), -EIO);
}

static void a_backend_that_claims_too_much_is_not_believed(void **state)
{
	fake.overlong = true;
	assert_int_equal(lac__read_up_to(&fake.file, buffer, 10, 0), -EIO);
	assert_int_equal(lac__write_full(&fake.file, buffer, 10, 0), -EIO);
}

static void direct_files_are_read_to_an_odd_end(void **state)
{
	char *p = lac__aligned_alloc(16384);

	assert_non_null(p);
	fake.direct = true;
	assert_int_equal(lac__read_up_to(&fake.file, p, 16384, 0), FAKE_SIZE);
	assert_memory_equal(p, fake.bytes, FAKE_SIZE);
	assert_int_equal(lac__read_up_to(&fake.file, p, 4096, 8192), FAKE_SIZE - 8192);
	/* What is not aligned by the caller's own fault stays an error. */
	assert_int_equal(lac__read_up_to(&fake.file, p, 4096, 1), -EINVAL);
	assert_int_equal(lac__write_full(&fake.file, p, 4095, 0), -EINVAL);
	free(p);
}

static void direct_files_go_on_after_odd_counts(void **state)
{
	char *p = lac__aligned_alloc(8192);

	assert_non_null(p);
	fake.direct = true;
	fake.most = 5000;
	assert_int_equal(lac__read_full(&fake.file, p, 8192, 0), 0);
	assert_memory_equal(p, fake.bytes, 8192);
	memset(p, 0x77, 8192);
	assert_int_equal(lac__write_full(&fake.file, p, 8192, 0), 0);
	assert_memory_equal(p, fake.bytes, 8192);
	/* Never coming past the same place is neither an end nor to be tried for ever. */
	fake.most = 100;
	assert_int_equal(lac__read_up_to(&fake.file, p, 8192, 0), -EIO);
	assert_int_equal(lac__write_full(&fake.file, p, 8192, 0), -EIO);
	free(p);
}

static void nothing_lies_beyond_the_largest_offset(void **state)
{
	assert_int_equal(lac__read_up_to(&fake.file, buffer, 2, INT64_MAX - 1), -EINVAL);
	assert_int_equal(lac__read_up_to(&fake.file, buffer, 2, UINT64_MAX), -EINVAL);
	assert_int_equal(lac__write_full(&fake.file, buffer, 2, INT64_MAX - 1), -EFBIG);
	assert_int_equal(lac__write_full(&fake.file, buffer, 2, UINT64_MAX), -EFBIG);
	assert_int_equal(lac__allocate(&fake.file, UINT64_MAX - 1, 10), -EFBIG);
	assert_int_equal(lac__punch(&fake.file, UINT64_MAX - 1, 10), -EINVAL);
	assert_int_equal(lac__truncate(&fake.file, UINT64_MAX), -EFBIG);
	assert_int_equal(fake.calls, 0);
}

static void one_call_asks_for_what_linux_can_give(void **state)
{
	/* The buffer is only named: the backend touches ten bytes of it. */
	fake.most = 10;
	assert_int_equal(lac__read_up_to(&fake.file, buffer, (size_t)3 << 30, FAKE_SIZE - 10), 10);
	assert_int_equal(fake.largest, 0x7ffff000);
	fake.largest = 0;
	assert_int_equal(
		lac__write_full(&fake.file, buffer, (size_t)3 << 30, FAKE_SIZE - 10), -EIO);
	assert_int_equal(fake.largest, 0x7ffff000);
}

static void signals_do_not_fail_single_calls(void **state)
{
	struct lac_file *file = NULL;

	fake.interrupts = fake.pending = 5;
	assert_int_equal(lac__open(&fake.be, "x", 0, &file), 0);
	assert_ptr_equal(file, &fake.file);
	assert_int_equal(lac__sync(file), 0);
	assert_int_equal(lac__punch(file, 0, 4096), 0);
	assert_int_equal(lac__truncate(file, 0), 0);
	assert_int_equal(fake.calls, 4);
	/* close is over when it returns: once, whatever it says. */
	assert_int_equal(lac__close(file), 0);
	assert_int_equal(fake.closes, 1);
	assert_int_equal(lac__close(NULL), 0);
}

static void single_calls_pass_errors_on(void **state)
{
	struct lac_file *file = NULL;

	fake.fail_code = -EIO;
	assert_int_equal(lac__open(&fake.be, "x", 0, &file), -EIO);
	assert_null(file);
	assert_int_equal(lac__sync(&fake.file), -EIO);
	assert_int_equal(lac__close(&fake.file), -EIO);
	assert_int_equal(lac__truncate(&fake.file, 0), -EIO);
	fake.fail_code = -EOPNOTSUPP;
	assert_int_equal(lac__punch(&fake.file, 0, 1), -EOPNOTSUPP);
	assert_int_equal(lac__allocate(&fake.file, 0, 1), -EOPNOTSUPP);
}

static void allocates_everything_in_pieces(void **state)
{
	fake.interrupts = fake.pending = 2;
	assert_int_equal(lac__allocate(&fake.file, 0, (300u << 20) + 5), 0);
	assert_int_equal(fake.allocated_to, (300u << 20) + 5);
	assert_in_range(fake.largest_allocate, 1u << 20, 64u << 20);
}

static void allocation_gets_through_a_signal_storm(void **state)
{
	fake.interrupts = UINT32_MAX; /* what takes longer than 1 MiB does is interrupted */
	assert_int_equal(lac__allocate(&fake.file, 0, 100u << 20), 0);
	assert_int_equal(fake.allocated_to, 100u << 20);
}

static void allocation_gives_up_at_last(void **state)
{
	fake.pending = UINT32_MAX;
	assert_int_equal(lac__allocate(&fake.file, 0, 100u << 20), -EINTR);
	assert_true(UINT32_MAX - fake.pending <= 1000);
	assert_int_equal(fake.allocated_to, 0);
}

static void aligned_memory_is_aligned_and_whole(void **state)
{
	static const size_t lengths[] = {0, 1, 4095, 4096, 4097, 100000};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t rounded = (lengths[i] + 4095) / 4096 * 4096;
		char *p = lac__aligned_alloc(lengths[i]);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 4096, 0);
		memset(p, 1, rounded);
		free(p);
	}
	assert_null(lac__aligned_alloc(SIZE_MAX - 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(reads_whole_over_short_counts_and_signals, setup),
		cmocka_unit_test_setup(early_end_is_a_count_or_enodata, setup),
		cmocka_unit_test_setup(an_error_after_part_of_a_read_is_an_error, setup),
		cmocka_unit_test_setup(writes_whole_over_short_counts_and_signals, setup),
		cmocka_unit_test_setup(a_failed_write_says_why, setup),
		cmocka_unit_test_setup(a_write_without_progress_ends, setup),
		cmocka_unit_test_setup(a_backend_that_claims_too_much_is_not_believed, setup),
		cmocka_unit_test_setup(direct_files_are_read_to_an_odd_end, setup),
		cmocka_unit_test_setup(direct_files_go_on_after_odd_counts, setup),
		cmocka_unit_test_setup(nothing_lies_beyond_the_largest_offset, setup),
		cmocka_unit_test_setup(one_call_asks_for_what_linux_can_give, setup),
		cmocka_unit_test_setup(signals_do_not_fail_single_calls, setup),
		cmocka_unit_test_setup(single_calls_pass_errors_on, setup),
		cmocka_unit_test_setup(allocates_everything_in_pieces, setup),
		cmocka_unit_test_setup(allocation_gets_through_a_signal_storm, setup),
		cmocka_unit_test_setup(allocation_gives_up_at_last, setup),
		cmocka_unit_test_setup(aligned_memory_is_aligned_and_whole, setup),
	};

	return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
