/* SPDX-License-Identifier: Apache-2.0 */
/* fs/create.h - making files and directories durable under their name. */
#ifndef LAC_FS_CREATE_H
#define LAC_FS_CREATE_H

#include "io/io.h"

/*
 * Creates path whole or not at all: writes a temporary name next to it (path + ".tmp", replaced if
 * a former attempt left one), allocates allocate_bytes (0 = none; EOPNOTSUPP is passed over),
 * writes `length` bytes at 0, syncs, renames, syncs the directory. On failure nothing is left but
 * perhaps the temporary name, which is removed as well as can be. open_flags: LAC_OPEN_NOCOW or 0.
 */
int lac__create_file(struct lac_backend *be, const char *path, unsigned open_flags,
	const void *bytes, size_t length, uint64_t allocate_bytes, struct lac_error *err);

/* Makes directory path (EEXIST for a directory is fine) and syncs its parent. */
int lac__create_dir(struct lac_backend *be, const char *path, struct lac_error *err);

/* Unlinks path (ENOENT is fine) and syncs its directory. */
int lac__remove_file(struct lac_backend *be, const char *path, struct lac_error *err);

/* Makes the names in path's directory durable as they are now. */
int lac__sync_dir_of(struct lac_backend *be, const char *path, struct lac_error *err);

/* The directory part of path, "" without one. ret has room for size bytes; -ENAMETOOLONG. */
int lac__dir_of(const char *path, char *ret, size_t size);

#endif
