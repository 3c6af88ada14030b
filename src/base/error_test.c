/* SPDX-License-Identifier: Apache-2.0 */
/* base/error_test.c - messages are filled once, prefixed, and never run over. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void test_set(void **state)
{
	struct lac_error err;
	int rc;

	(void)state;
	errno = 77;
	rc = lac__error_set(&err, -EBADMSG, LAC_REASON_BAD_CHECKSUM, 40960, 64,
		"crc32c %08x, want %08x", 0x1f2e0a11, 0x9a8b3c07);
	assert_int_equal(rc, -EBADMSG);
	assert_int_equal(err.code, -EBADMSG);
	assert_int_equal(err.reason, 10);
	assert_int_equal(err.offset, 40960);
	assert_int_equal(err.length, 64);
	lac__error_prepend(&err, "record at %d", 40960);
	lac__error_prepend(&err, "open %s", "a.lac");
	assert_string_equal(
		err.message, "open a.lac: record at 40960: crc32c 1f2e0a11, want 9a8b3c07");
	assert_int_equal(err.code, -EBADMSG);
	assert_int_equal(errno, 77);
}

static void test_null(void **state)
{
	(void)state;
	assert_int_equal(lac__error_set(NULL, -EIO, LAC_REASON_SYSTEM, 0, 0, "x"), -EIO);
	assert_int_equal(lac__error_sys(NULL, -EIO, "x"), -EIO);
	assert_int_equal(lac__error_nomem(NULL), -ENOMEM);
	lac__error_prepend(NULL, "x");
}

static void test_sys(void **state)
{
	struct lac_error err = {.offset = 1, .length = 2};

	(void)state;
	assert_int_equal(lac__error_sys(&err, -EACCES, "open %s", "a"), -EACCES);
	assert_string_equal(err.message, "open a: Permission denied");
	assert_int_equal(err.reason, LAC_REASON_SYSTEM);
	assert_int_equal(err.offset, 0);
	assert_int_equal(err.length, 0);
	lac__error_sys(&err, -ENOSPC, "x");
	assert_int_equal(err.reason, LAC_REASON_NO_SPACE);
	lac__error_sys(&err, -EDQUOT, "x");
	assert_int_equal(err.reason, LAC_REASON_NO_SPACE);
	lac__error_sys(&err, -EFBIG, "x");
	assert_int_equal(err.reason, LAC_REASON_NO_SPACE);
	lac__error_sys(&err, -ENOMEM, "x");
	assert_int_equal(err.reason, LAC_REASON_NO_MEMORY);
	lac__error_sys(&err, -4000, "x");
	assert_string_equal(err.message, "x: unknown error");
	assert_int_equal(lac__error_nomem(&err), -ENOMEM);
	assert_int_equal(err.reason, LAC_REASON_NO_MEMORY);
}

/* A message of any length stays a string of at most 511 bytes, and keeps its beginning. */
static void test_long(void **state)
{
	struct {
		struct lac_error err;
		char guard[16];
	} s;
	char text[1024];

	(void)state;
	memset(s.guard, 'g', sizeof(s.guard));
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	lac__error_set(&s.err, -EIO, LAC_REASON_SYSTEM, 0, 0, "%s", text);
	assert_int_equal(strlen(s.err.message), 511);
	lac__error_prepend(&s.err, "open");
	assert_int_equal(strlen(s.err.message), 511);
	assert_memory_equal(s.err.message, "open: aaa", 9);
	lac__error_prepend(&s.err, "b%s", text);
	assert_memory_equal(s.err.message, "baaa", 4);
	assert_int_equal(strlen(s.err.message), 511);
	lac__error_sys(&s.err, -EIO, "%s", text);
	assert_int_equal(strlen(s.err.message), 511);
	/* An unterminated message of a careless caller does not lead astray. */
	memset(s.err.message, 'z', sizeof(s.err.message));
	lac__error_prepend(&s.err, "open");
	assert_memory_equal(s.err.message, "open: zzz", 9);
	assert_int_equal(strlen(s.err.message), 511);
	for (size_t i = 0; i < sizeof(s.guard); i++)
		assert_int_equal(s.guard[i], 'g');
}

static void test_reasons(void **state)
{
	(void)state;
	assert_string_equal(lac_reason_text(0), "no further reason");
	assert_string_equal(lac_reason_text(28), "a journal record contradicts the metadata");
	assert_string_equal(lac_reason_text(-1), "unknown reason");
	assert_string_equal(lac_reason_text(100000), "unknown reason");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_null),
		cmocka_unit_test(test_sys),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
