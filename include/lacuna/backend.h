/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lacuna/backend.h - the one table of functions through which all I/O goes (layer io).
 *
 * Who brings a storage of his own fills this table; lacuna brings two: the plain one over the
 * Linux system calls, and in the tests one that lies (loses, tears, reorders, fails).
 *
 * Paths are NUL-terminated and relative to the backend's own root, with '/' between parts; the
 * empty path "" names the root directory. Offsets and lengths are bytes; ranges are half open.
 * Every function returns a negative errno on failure. All may be called from any thread; calls on
 * one file may run at the same time. Nothing here retries, prints or keeps state beyond the file:
 * short reads and writes and EINTR are passed up, io/io.h loops over them.
 */
#ifndef LACUNA_BACKEND_H
#define LACUNA_BACKEND_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lac_backend;

/* Embedded as first member in the backend's own file structure. */
struct lac_file {
	struct lac_backend *backend;
};

struct lac_file_info {
	uint64_t size_bytes;	  /* end of file */
	uint64_t allocated_bytes; /* what the filesystem really holds (st_blocks * 512) */
	uint32_t mode;		  /* S_IFMT bits tell file from directory */
};

/* What the place of a path is like, cheap to ask; nothing is written. */
struct lac_place_info {
	uint64_t filesystem_type;	/* statfs f_type */
	uint64_t filesystem_id;		/* statfs f_fsid folded to 64 bits, or st_dev */
	uint32_t block_bytes;		/* filesystem block */
	uint32_t physical_sector_bytes; /* tear unit of the device; 4096 when unknown */
	uint64_t free_bytes;		/* available to this process */
};

enum lac_open_flags {
	LAC_OPEN_WRITE = 1,  /* read and write; otherwise read only */
	LAC_OPEN_CREATE = 2, /* create; with EXCLUSIVE fail with EEXIST when there */
	LAC_OPEN_EXCLUSIVE = 4,
	LAC_OPEN_DIRECT = 8, /* past the page cache where the filesystem can; a hint: a backend that
				can't falls back to buffered I/O without a word */
	LAC_OPEN_NOCOW = 16, /* with CREATE: ask for overwriting in place (btrfs); a hint */
};

struct lac_backend_ops {
	/* Opens a regular file. *ret_file is set on success only. Never follows a symbolic link at
	   the last part (ELOOP), descriptors are close-on-exec. */
	int (*open)(struct lac_backend *be, const char *path, unsigned flags,
		struct lac_file **ret_file);
	/* Closes; file is gone whatever is returned. What was not synced may be lost, so callers
	   sync first; a late write error is returned here and counts as a failed sync. */
	int (*close)(struct lac_file *file);

	/* Up to length bytes; returns the count, 0 at end of file. May be short. A DIRECT file
	   wants buffer, offset and length in multiples of 4096. */
	ssize_t (*pread)(struct lac_file *file, void *buffer, size_t length, uint64_t offset);
	/* Up to length bytes; returns the count (> 0). May be short. Not durable. */
	ssize_t (*pwrite)(
		struct lac_file *file, const void *buffer, size_t length, uint64_t offset);

	/* Makes content, size and allocation of this file durable (fdatasync). After a failure
	   nothing is known about any write since the last success, and a repeated call may succeed
	   without having written them: the caller must treat the first failure as final. */
	int (*sync)(struct lac_file *file);

	/* Reserves real space for [offset, offset + length); grows the file's size when beyond it;
	   bytes already there stay, new ones read as zeros. Fails with ENOSPC before any later
	   write could; may leave part of the space allocated after a failure. EOPNOTSUPP where
	   impossible. */
	int (*allocate)(struct lac_file *file, uint64_t offset, uint64_t length);
	/* Gives the space of the whole filesystem blocks inside the range back, reads give zeros
	   from now on, the size stays. Only inside the file's size. EOPNOTSUPP where impossible.
	   Not durable. */
	int (*punch)(struct lac_file *file, uint64_t offset, uint64_t length);
	/* Sets the size; also gives back what was allocated beyond it. Not durable. */
	int (*truncate)(struct lac_file *file, uint64_t size);
	int (*file_info)(struct lac_file *file, struct lac_file_info *ret_info);
	/* Forgets what the cache holds of this file, so that the next read comes from the device.
	   Called after sync. A hint; 0 where nothing can be done. */
	int (*drop_cache)(struct lac_file *file);

	/* Namespace operations are durable only after sync_dir of the directory (for rename: of the
	   target's). rename replaces. */
	int (*rename)(struct lac_backend *be, const char *from, const char *to);
	int (*unlink)(struct lac_backend *be, const char *path);
	int (*make_dir)(struct lac_backend *be, const char *path);
	int (*remove_dir)(struct lac_backend *be, const char *path);
	int (*sync_dir)(struct lac_backend *be, const char *path);
	/* Calls visit for every entry but "." and "..", in no order; stops at and returns the first
	   non-zero result of visit. */
	int (*list)(struct lac_backend *be, const char *path,
		int (*visit)(void *arg, const char *name), void *arg);
	int (*path_info)(struct lac_backend *be, const char *path, struct lac_file_info *ret_info);
	int (*place_info)(
		struct lac_backend *be, const char *path, struct lac_place_info *ret_info);

	/* Takes the writer's lock of the root directory. EBUSY when it is held, also by this
	   process; *ret_holder_pid is then the holder's pid, or 0 when unknown. The lock ends with
	   unlock, or with the process. It must survive: a second open and close of any file in this
	   process, fork, an unlinked lock file. */
	int (*lock)(struct lac_backend *be, void **ret_lock, int64_t *ret_holder_pid);
	void (*unlock)(struct lac_backend *be, void *lock);
};

struct lac_backend {
	const struct lac_backend_ops *ops;
};

#ifdef __cplusplus
}
#endif
#endif
