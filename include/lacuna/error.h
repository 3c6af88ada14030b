/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lacuna/error.h - how every part of lacuna reports a failure.
 *
 * A function returns 0 (or a count) on success and a negative errno on failure; iterators return
 * +1 at their end. Those that can say more take a caller-owned `struct lac_error *err` last, which
 * may be NULL. It is filled once, by whoever detected the failure; each layer above prepends what
 * it was doing. No allocation, no locale, no global state.
 *
 * Errno values with a fixed meaning: EBADMSG a checksum does not match, EUCLEAN structures
 * contradict each other, EOPNOTSUPP an unknown format or feature, EBUSY locked by another writer,
 * EROFS the store is open for reading only, ENOENT no such block (or store), E2BIG a transaction
 * is over its limits, EIO and others from the system as they came.
 */
#ifndef LACUNA_ERROR_H
#define LACUNA_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reasons are permanent: a number is never reused or renumbered. New ones go to the end.
 * X(name, number, text)
 */
#define LAC_REASONS(X)                                                                             \
	X(NONE, 0, "no further reason")                                                            \
	X(SYSTEM, 1, "the operating system refused")                                               \
	X(NO_MEMORY, 2, "out of memory")                                                           \
	X(ARGUMENT, 3, "an argument is out of range")                                              \
	X(NOT_A_STORE, 4, "the directory is not a store")                                          \
	X(EXISTS, 5, "something is already there")                                                 \
	X(LOCKED, 6, "another process has the store open for writing")                             \
	X(READ_ONLY, 7, "opened for reading only")                                                 \
	X(FORMAT_UNKNOWN, 8, "a format version or feature this release does not know")             \
	X(BAD_MAGIC, 9, "the magic number is not the expected one")                                \
	X(BAD_CHECKSUM, 10, "the checksum does not match")                                         \
	X(BAD_IDENTITY, 11, "the structure says it is another one")                                \
	X(BAD_FIELD, 12, "a field is out of bounds")                                               \
	X(TRUNCATED, 13, "the file ends too early")                                                \
	X(JOURNAL_CORRUPT, 14, "the journal is damaged below what was durable")                    \
	X(JOURNAL_SHORT, 15, "the journal ends below what a checkpoint saw")                       \
	X(JOURNAL_GAP, 16, "a journal segment is missing")                                         \
	X(PAGE_STALE, 17, "a metadata page is older than the journal says")                        \
	X(PAGE_LOST, 18, "no valid slot of a metadata page")                                       \
	X(POISONED, 19, "an earlier write or sync failed; reopen the store")                       \
	X(NO_SPACE, 20, "no space left")                                                           \
	X(TOO_BIG, 21, "over a stated limit")                                                      \
	X(NO_BLOCK, 22, "no such block")                                                           \
	X(BLOCK_DAMAGED, 23, "the block's bytes do not match their checksum")                      \
	X(WRONG_PROCESS, 24, "the handle belongs to another process (fork)")                       \
	X(CLOSED, 25, "the handle is not in a state for this call")                                \
	X(INTERRUPTED, 26, "interrupted by request")                                               \
	X(MISSING_FILE, 27, "a file of the store is missing")                                      \
	X(RECORD_BAD, 28, "a journal record contradicts the metadata")

enum lac_reason {
#define LAC_REASON_ENUM(name, number, text) LAC_REASON_##name = number,
	LAC_REASONS(LAC_REASON_ENUM)
#undef LAC_REASON_ENUM
};

struct lac_error {
	int code;	   /* negative errno; 0 when nothing was reported */
	int reason;	   /* enum lac_reason */
	uint64_t offset;   /* byte offset in the object named in the message, else 0 */
	uint64_t length;   /* length in bytes of the region concerned, else 0 */
	char message[512]; /* lower case, no full stop: verb, path, where, what, got, want */
};

/* The permanent text of a reason; "unknown reason" for a number that is none. Never NULL. */
const char *lac_reason_text(int reason);

#ifdef __cplusplus
}
#endif
#endif
