/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/error.c - fills and prefixes a struct lac_error.
 *
 * Everything happens in the caller's struct and on the stack: an error must be reportable when
 * memory has run out, and from any thread. errno stays as it was, because a caller may still want
 * it.
 */
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/public.h"

LAC_PUBLIC const char *lac_reason_text(int reason)
{
	switch (reason) {
#define LAC__REASON_CASE(name, number, text)                                                       \
	case number: return text;
		LAC_REASONS(LAC__REASON_CASE)
#undef LAC__REASON_CASE
	default: return "unknown reason";
	}
}

/* The text of an errno without a locale, where libc has that; strerror of the others is safe for
   threads as far as known numbers go. */
static const char *errno_text(int number)
{
	const char *text;

#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 32)
	text = strerrordesc_np(number);
#else
	text = strerror(number);
#endif
	return text ? text : "unknown error";
}

static void set_fields(
	struct lac_error *err, int code, int reason, uint64_t offset, uint64_t length)
{
	err->code = code;
	err->reason = reason;
	err->offset = offset;
	err->length = length;
}

int lac__error_set(struct lac_error *err, int code, enum lac_reason reason, uint64_t offset,
	uint64_t length, const char *format, ...)
{
	int saved = errno;
	va_list args;

	assert(code < 0);
	if (!err)
		return code;
	set_fields(err, code, reason, offset, length);
	va_start(args, format);
	if (vsnprintf(err->message, sizeof(err->message), format, args) < 0)
		err->message[0] = '\0';
	va_end(args);
	errno = saved;
	return code;
}

static enum lac_reason reason_of(int code)
{
	switch (-code) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG: return LAC_REASON_NO_SPACE;
	case ENOMEM: return LAC_REASON_NO_MEMORY;
	default: return LAC_REASON_SYSTEM;
	}
}

int lac__error_sys(struct lac_error *err, int code, const char *format, ...)
{
	int saved = errno;
	va_list args;
	size_t used;

	assert(code < 0);
	if (!err)
		return code;
	set_fields(err, code, reason_of(code), 0, 0);
	va_start(args, format);
	if (vsnprintf(err->message, sizeof(err->message), format, args) < 0)
		err->message[0] = '\0';
	va_end(args);
	used = strlen(err->message);
	snprintf(err->message + used, sizeof(err->message) - used, ": %s", errno_text(-code));
	errno = saved;
	return code;
}

int lac__error_nomem(struct lac_error *err)
{
	return lac__error_set(err, -ENOMEM, LAC_REASON_NO_MEMORY, 0, 0, "out of memory");
}

void lac__error_prepend(struct lac_error *err, const char *format, ...)
{
	char prefix[sizeof(err->message)];
	int saved = errno;
	size_t used, room;
	va_list args;

	if (!err)
		return;
	va_start(args, format);
	if (vsnprintf(prefix, sizeof(prefix) - 2, format, args) < 0)
		prefix[0] = '\0';
	va_end(args);
	used = strlen(prefix);
	memcpy(prefix + used, ": ", 2);
	used += 2;
	room = sizeof(err->message) - 1 - used;
	/* The beginning of the old message says more than its end. */
	err->message[sizeof(err->message) - 1] = '\0';
	if (strlen(err->message) > room)
		err->message[room] = '\0';
	memmove(err->message + used, err->message, strlen(err->message) + 1);
	memcpy(err->message, prefix, used);
	errno = saved;
}
