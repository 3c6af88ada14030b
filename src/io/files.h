/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/files.h - a bounded set of open files, by path.
 *
 * Keeps at most `limit` descriptors open; the least recently used one that nobody holds and that
 * has no unsynced writes is closed for a new one. When none is left to close, the oldest dirty one
 * that nobody holds is synced first (rule 4.14: a descriptor with unsynced writes is never closed).
 * When every file is held the limit is exceeded rather than a caller refused. Thread-safe.
 */
#ifndef LAC_IO_FILES_H
#define LAC_IO_FILES_H

#include "io/io.h"

struct lac__files;
struct lac__held; /* a file in use */

int lac__files_new(struct lac_backend *be, unsigned limit, struct lac__files **ret);
/* Every file has been released. Closes all; the caller synced what must be durable. Returns the
   first error of a close, as a failed sync. NULL is fine. */
int lac__files_free(struct lac__files *files);
struct lac_backend *lac__files_backend(const struct lac__files *files);

/* Opens path (flags as for lac__open, without CREATE) or finds it open; the flags of the first open
   count, a read-only one is reopened for writing when asked for. */
int lac__files_hold(struct lac__files *files, const char *path, unsigned flags,
	struct lac__held **ret, struct lac_error *err);
void lac__files_release(struct lac__held *held);
struct lac_file *lac__held_file(struct lac__held *held);

/* To be called after each write through held; see lac__syncer. */
void lac__held_wrote(struct lac__held *held);
bool lac__held_dirty(struct lac__held *held);
/* All writes that returned before the call are durable, or the file's first sync failure. */
int lac__held_sync(struct lac__held *held, struct lac_error *err);

/* Syncs every dirty file whose path starts with prefix ("" = all). */
int lac__files_sync(struct lac__files *files, const char *prefix, struct lac_error *err);
/* Forgets path: closes it now, or when its last holder releases it. For files about to be unlinked.
 */
void lac__files_forget(struct lac__files *files, const char *path);

struct lac__files_stats {
	uint64_t opens, closes, syncs, open_now;
};
void lac__files_stats(struct lac__files *files, struct lac__files_stats *ret);

#endif
