/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs/create.c - making files and directories durable under their name (rule 4.17).
 *
 * A name is durable when its directory was synced after the name changed, and a file that appears
 * under its name must be whole. Hence always: content under a temporary name, sync of the content,
 * rename, sync of the directory. A name that already is as wanted is synced all the same, because
 * the attempt that made it may have been cut off between the two.
 */
#include "fs/create.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char temporary_suffix[] = ".tmp";

int lac__dir_of(const char *path, char *ret, size_t size)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;

	if (length >= size)
		return -ENAMETOOLONG;
	memcpy(ret, path, length);
	ret[length] = '\0';
	return 0;
}

int lac__sync_dir_of(struct lac_backend *be, const char *path, struct lac_error *err)
{
	char dir[PATH_MAX];
	int rc = lac__dir_of(path, dir, sizeof(dir));

	if (rc < 0)
		return lac__error_sys(err, rc, "sync directory of %s", path);
	do
		rc = be->ops->sync_dir(be, dir);
	while (rc == -EINTR);
	if (rc < 0)
		return lac__error_sys(err, rc, "sync directory %s", dir[0] ? dir : ".");
	return 0;
}

/* Content, size and allocation of the open file; durable on return. */
static int fill(struct lac_file *file, const char *path, const void *bytes, size_t length,
	uint64_t allocate_bytes, struct lac_error *err)
{
	int rc = lac__allocate(file, 0, allocate_bytes);

	if (rc < 0 && rc != -EOPNOTSUPP)
		return lac__error_sys(err, rc, "allocate %s", path);
	rc = lac__write_full(file, bytes, length, 0);
	if (rc < 0)
		return lac__error_sys(err, rc, "write %s", path);
	rc = lac__sync(file);
	if (rc < 0)
		return lac__error_sys(err, rc, "sync %s", path);
	return 0;
}

/* The whole file under its temporary name, closed. */
static int make_temporary(struct lac_backend *be, const char *temporary, unsigned open_flags,
	const void *bytes, size_t length, uint64_t allocate_bytes, struct lac_error *err)
{
	struct lac_file *file;
	int rc = be->ops->unlink(be, temporary);

	if (rc < 0 && rc != -ENOENT)
		return lac__error_sys(err, rc, "unlink %s", temporary);
	rc = lac__open(be, temporary,
		open_flags | LAC_OPEN_WRITE | LAC_OPEN_CREATE | LAC_OPEN_EXCLUSIVE, &file);
	if (rc < 0)
		return lac__error_sys(err, rc, "create %s", temporary);
	rc = fill(file, temporary, bytes, length, allocate_bytes, err);
	int closed = lac__close(file);
	if (rc == 0 && closed < 0)
		rc = lac__error_sys(err, closed, "close %s", temporary);
	if (rc < 0)
		be->ops->unlink(be, temporary);
	return rc;
}

int lac__create_file(struct lac_backend *be, const char *path, unsigned open_flags,
	const void *bytes, size_t length, uint64_t allocate_bytes, struct lac_error *err)
{
	char temporary[PATH_MAX];
	struct lac_file_info info;
	int n = snprintf(temporary, sizeof(temporary), "%s%s", path, temporary_suffix);

	assert((open_flags & ~(unsigned)LAC_OPEN_NOCOW) == 0);
	if (n < 0 || (size_t)n >= sizeof(temporary))
		return lac__error_sys(err, -ENAMETOOLONG, "create %s", path);
	int there = be->ops->path_info(be, path, &info);
	if (there < 0 && there != -ENOENT)
		return lac__error_sys(err, there, "look up %s", path);
	int rc = make_temporary(be, temporary, open_flags, bytes, length, allocate_bytes, err);
	if (rc < 0)
		return rc;
	rc = be->ops->rename(be, temporary, path);
	if (rc < 0) {
		be->ops->unlink(be, temporary);
		return lac__error_sys(err, rc, "rename %s to %s", temporary, path);
	}
	rc = lac__sync_dir_of(be, path, err);
	/* The name may or may not survive. A new one is taken back; one that replaced another file
	   stays, because then nothing would be left, and either file is whole. */
	if (rc < 0 && there == -ENOENT)
		be->ops->unlink(be, path);
	return rc;
}

int lac__create_dir(struct lac_backend *be, const char *path, struct lac_error *err)
{
	struct lac_file_info info;
	int rc = be->ops->make_dir(be, path);

	if (rc < 0 && rc != -EEXIST)
		return lac__error_sys(err, rc, "create directory %s", path);
	if (rc == -EEXIST) {
		rc = be->ops->path_info(be, path, &info);
		if (rc == 0 && !S_ISDIR(info.mode))
			rc = -ENOTDIR;
		if (rc < 0)
			return lac__error_sys(err, rc, "create directory %s", path);
	}
	return lac__sync_dir_of(be, path, err);
}

int lac__remove_file(struct lac_backend *be, const char *path, struct lac_error *err)
{
	int rc = be->ops->unlink(be, path);

	if (rc < 0 && rc != -ENOENT)
		return lac__error_sys(err, rc, "unlink %s", path);
	return lac__sync_dir_of(be, path, err);
}
