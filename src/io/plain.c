/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/plain.c - the plain backend: files over Linux system calls. Directories are in plain_dir.c,
 * the writer's lock in plain_lock.c.
 *
 * Everything is looked up from a descriptor of the root, so a process that changes its working
 * directory, or somebody who renames the store while it is open, makes no difference.
 *
 * Two things that a careful library must not do to its host:
 *
 * Descriptors 0 to 2 are never used for a file of the store. A daemon that closed them would get
 * one of ours as its standard output, and the next line that anybody prints would land in a
 * container.
 *
 * A write beyond RLIMIT_FSIZE raises SIGXFSZ, which kills. A library may not change the process's
 * signal dispositions, and blocking the signal around every call costs two system calls. Asking
 * for the limit first costs one that takes no lock, and no signal is ever raised: the call fails
 * with EFBIG as it would with the signal ignored. (A limit lowered between the question and the
 * call still kills; nobody does that to a process that he wants to keep.)
 */
#include "io/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

struct plain_file {
	struct lac_file file; /* first */
	int fd;
};

static int fd_of(struct lac_file *file)
{
	return ((struct plain_file *)file)->fd;
}

const char *lac__plain_path(const char *path)
{
	if (path[0] == '\0')
		return ".";
	if (path[0] == '/')
		return NULL;
	for (const char *part = path; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
			return NULL;
	}
	return path;
}

/* fd, or a copy of it above the standard descriptors; closes fd when there is none. */
static int above_stdio(int fd)
{
	if (fd > STDERR_FILENO)
		return fd;
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int rc = moved < 0 ? -errno : moved;
	close(fd);
	return rc;
}

int lac__plain_openat(struct lac_backend *be, const char *path, int flags)
{
	const char *at = lac__plain_path(path);

	if (!at)
		return -EINVAL;
	/* The umask decides who may read a store, as for any other file. */
	int fd = openat(lac__plain_of(be)->root_fd, at, flags | O_CLOEXEC | O_NOFOLLOW, 0666);
	return fd < 0 ? -errno : above_stdio(fd);
}

void lac__plain_stat(const struct stat *st, struct lac_file_info *ret)
{
	ret->size_bytes = (uint64_t)st->st_size;
	ret->allocated_bytes = (uint64_t)st->st_blocks * 512;
	ret->mode = st->st_mode;
}

/* On btrfs: overwrite in place. Works on an empty file only; without it the file is still right. */
static void ask_nocow(int fd)
{
	struct statfs fs;
	int attr = 0;

	if (fstatfs(fd, &fs) != 0 || (uint32_t)fs.f_type != BTRFS_SUPER_MAGIC)
		return;
	if (ioctl(fd, FS_IOC_GETFLAGS, &attr) != 0)
		return;
	attr |= FS_NOCOW_FL;
	if (ioctl(fd, FS_IOC_SETFLAGS, &attr) != 0)
		return;
}

static int require_regular(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return 0;
	return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
}

/*
 * Opens without O_DIRECT and turns it on afterwards: where the filesystem can't, an open that
 * creates would fail with EINVAL after it has created. O_NONBLOCK keeps a fifo in the place of a
 * file from blocking the open for ever.
 */
static int plain_open(
	struct lac_backend *be, const char *path, unsigned flags, struct lac_file **ret_file)
{
	struct plain_file *f = NULL;
	int how = (flags & LAC_OPEN_WRITE) ? O_RDWR : O_RDONLY;
	int fd = -1, rc;

	if (flags & LAC_OPEN_CREATE)
		how |= O_CREAT | ((flags & LAC_OPEN_EXCLUSIVE) ? O_EXCL : 0);
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	rc = fd = lac__plain_openat(be, path, how | O_NONBLOCK);
	if (rc < 0)
		goto out;
	rc = require_regular(fd);
	if (rc < 0)
		goto out;
	if ((flags & LAC_OPEN_CREATE) && (flags & LAC_OPEN_NOCOW))
		ask_nocow(fd);
	if (!(flags & LAC_OPEN_DIRECT) || fcntl(fd, F_SETFL, O_DIRECT) != 0)
		rc = fcntl(fd, F_SETFL, 0) != 0 ? -errno : 0;
	if (rc < 0)
		goto out;
	f->file.backend = be;
	f->fd = fd;
	*ret_file = &f->file;
	f = NULL;
	fd = -1;
	rc = 0;
out:
	if (fd >= 0)
		close(fd);
	free(f);
	return rc;
}

static int plain_close(struct lac_file *file)
{
	int rc = close(fd_of(file)) != 0 ? -errno : 0;

	free(file);
	return rc;
}

static ssize_t plain_pread(struct lac_file *file, void *buffer, size_t length, uint64_t offset)
{
	ssize_t n = pread(fd_of(file), buffer, length, (off_t)offset);

	return n < 0 ? -errno : n;
}

uint64_t lac__plain_size_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

/* Fails where the kernel would raise SIGXFSZ for making the file end at `end`. */
static int may_grow_to(struct lac_file *file, uint64_t end)
{
	struct stat st;

	if (end <= lac__plain_size_limit())
		return 0;
	if (fstat(fd_of(file), &st) != 0)
		return -errno;
	return end <= (uint64_t)st.st_size ? 0 : -EFBIG;
}

static ssize_t plain_pwrite(
	struct lac_file *file, const void *buffer, size_t length, uint64_t offset)
{
	/* A write that starts below the limit is cut there by the kernel, without the signal; one
	   that starts at or beyond it raises it, also inside the file. */
	if (length > 0 && offset >= lac__plain_size_limit())
		return -EFBIG;
	ssize_t n = pwrite(fd_of(file), buffer, length, (off_t)offset);
	return n < 0 ? -errno : n;
}

static int plain_sync(struct lac_file *file)
{
	/* Metadata that is needed to read the data back, size and extents, is part of fdatasync. */
	return fdatasync(fd_of(file)) != 0 ? -errno : 0;
}

/* One errno for "this filesystem does not do it". */
static int fallocate_result(int result)
{
	if (result == 0)
		return 0;
	return errno == ENOSYS || errno == ENOTSUP ? -EOPNOTSUPP : -errno;
}

static int plain_allocate(struct lac_file *file, uint64_t offset, uint64_t length)
{
	int rc = may_grow_to(file, offset + length);

	if (rc < 0)
		return rc;
	return fallocate_result(fallocate(fd_of(file), 0, (off_t)offset, (off_t)length));
}

static int plain_punch(struct lac_file *file, uint64_t offset, uint64_t length)
{
	return fallocate_result(fallocate(fd_of(file), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		(off_t)offset, (off_t)length));
}

static int plain_truncate(struct lac_file *file, uint64_t size)
{
	int rc = may_grow_to(file, size);

	if (rc < 0)
		return rc;
	return ftruncate(fd_of(file), (off_t)size) != 0 ? -errno : 0;
}

static int plain_file_info(struct lac_file *file, struct lac_file_info *ret_info)
{
	struct stat st;

	if (fstat(fd_of(file), &st) != 0)
		return -errno;
	lac__plain_stat(&st, ret_info);
	return 0;
}

static int plain_drop_cache(struct lac_file *file)
{
	int rc = posix_fadvise(fd_of(file), 0, 0, POSIX_FADV_DONTNEED);

	/* Not every filesystem has a cache to drop. */
	return rc == EINVAL || rc == ENOSYS || rc == EOPNOTSUPP ? 0 : -rc;
}

static const struct lac_backend_ops plain_ops = {
	.open = plain_open,
	.close = plain_close,
	.pread = plain_pread,
	.pwrite = plain_pwrite,
	.sync = plain_sync,
	.allocate = plain_allocate,
	.punch = plain_punch,
	.truncate = plain_truncate,
	.file_info = plain_file_info,
	.drop_cache = plain_drop_cache,
	.rename = lac__plain_rename,
	.unlink = lac__plain_unlink,
	.make_dir = lac__plain_make_dir,
	.remove_dir = lac__plain_remove_dir,
	.sync_dir = lac__plain_sync_dir,
	.list = lac__plain_list,
	.path_info = lac__plain_path_info,
	.place_info = lac__plain_place_info,
	.lock = lac__plain_lock,
	.unlock = lac__plain_unlock,
};

int lac__backend_plain_new(const char *root, struct lac_backend **ret, struct lac_error *err)
{
	struct lac__plain *plain = calloc(1, sizeof(*plain));

	if (!plain)
		return lac__error_nomem(err);
	int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = fd < 0 ? -errno : above_stdio(fd);
	if (fd < 0) {
		free(plain);
		return lac__error_sys(err, fd, "open %s", root);
	}
	plain->be.ops = &plain_ops;
	plain->root_fd = fd;
	*ret = &plain->be;
	return 0;
}

void lac__backend_plain_free(struct lac_backend *be)
{
	if (!be)
		return;
	close(lac__plain_of(be)->root_fd);
	free(be);
}
