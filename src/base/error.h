/* SPDX-License-Identifier: Apache-2.0 */
/* base/error.h - filling and prefixing a struct lac_error; see lacuna/error.h for the contract. */
#ifndef LAC_BASE_ERROR_H
#define LAC_BASE_ERROR_H

#include "lacuna/error.h"

/*
 * Fills *err (which may be NULL) as its detector and returns code, so that
 * `return lac__error_set(err, -EBADMSG, ...)` reads well. code is a negative errno.
 */
int lac__error_set(struct lac_error *err, int code, enum lac_reason reason, uint64_t offset,
	uint64_t length, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* The common case of a failed call: "verb path: strerror text"; reason SYSTEM (NO_SPACE for ENOSPC,
   EDQUOT and EFBIG; NO_MEMORY for ENOMEM). */
int lac__error_sys(struct lac_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

int lac__error_nomem(struct lac_error *err);

/* Puts "text: " before the message; cuts the end when it no longer fits. */
void lac__error_prepend(struct lac_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
