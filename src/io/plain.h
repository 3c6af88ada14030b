/* SPDX-License-Identifier: Apache-2.0 */
/* io/plain.h - what the parts of the plain backend share. */
#ifndef LAC_IO_PLAIN_H
#define LAC_IO_PLAIN_H

#include <sys/stat.h>

#include "io/io.h"

struct lac__plain {
	struct lac_backend be; /* first */
	int root_fd;	       /* O_PATH; every path is looked up from here */
};

static inline struct lac__plain *lac__plain_of(struct lac_backend *be)
{
	return (struct lac__plain *)be;
}

/* openat below the root, for path "" the root itself; adds O_CLOEXEC and O_NOFOLLOW. Never gives
   descriptors 0 to 2. */
int lac__plain_openat(struct lac_backend *be, const char *path, int flags);
/* The path for the *at calls, or NULL for one that would leave the root. */
const char *lac__plain_path(const char *path);
/* RLIMIT_FSIZE: a write at or beyond it would raise SIGXFSZ; see plain.c. */
uint64_t lac__plain_size_limit(void);
void lac__plain_stat(const struct stat *st, struct lac_file_info *ret);

/* plain_dir.c */
int lac__plain_rename(struct lac_backend *be, const char *from, const char *to);
int lac__plain_unlink(struct lac_backend *be, const char *path);
int lac__plain_make_dir(struct lac_backend *be, const char *path);
int lac__plain_remove_dir(struct lac_backend *be, const char *path);
int lac__plain_sync_dir(struct lac_backend *be, const char *path);
int lac__plain_list(struct lac_backend *be, const char *path,
	int (*visit)(void *arg, const char *name), void *arg);
int lac__plain_path_info(struct lac_backend *be, const char *path, struct lac_file_info *ret);
int lac__plain_place_info(struct lac_backend *be, const char *path, struct lac_place_info *ret);

/* plain_lock.c */
int lac__plain_lock(struct lac_backend *be, void **ret_lock, int64_t *ret_holder_pid);
void lac__plain_unlock(struct lac_backend *be, void *lock);

#endif
