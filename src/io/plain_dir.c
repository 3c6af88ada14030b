/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/plain_dir.c - the plain backend: directories, and what the place of a path is like.
 */
#include "io/plain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/checked.h"

/* The tear unit of a device that does not say. Too large costs a little space, too small data. */
static const uint32_t sector_unknown_bytes = 4096;
static const uint32_t block_unknown_bytes = 4096;

static int result_of(int result)
{
	return result != 0 ? -errno : 0;
}

int lac__plain_rename(struct lac_backend *be, const char *from, const char *to)
{
	int root_fd = lac__plain_of(be)->root_fd;
	const char *from_at = lac__plain_path(from), *to_at = lac__plain_path(to);

	if (!from_at || !to_at)
		return -EINVAL;
	return result_of(renameat(root_fd, from_at, root_fd, to_at));
}

int lac__plain_unlink(struct lac_backend *be, const char *path)
{
	const char *at = lac__plain_path(path);

	return at ? result_of(unlinkat(lac__plain_of(be)->root_fd, at, 0)) : -EINVAL;
}

int lac__plain_make_dir(struct lac_backend *be, const char *path)
{
	const char *at = lac__plain_path(path);

	return at ? result_of(mkdirat(lac__plain_of(be)->root_fd, at, 0777)) : -EINVAL;
}

int lac__plain_remove_dir(struct lac_backend *be, const char *path)
{
	const char *at = lac__plain_path(path);

	return at ? result_of(unlinkat(lac__plain_of(be)->root_fd, at, AT_REMOVEDIR)) : -EINVAL;
}

int lac__plain_sync_dir(struct lac_backend *be, const char *path)
{
	int fd = lac__plain_openat(be, path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	int rc = result_of(fsync(fd));
	close(fd);
	return rc;
}

int lac__plain_list(struct lac_backend *be, const char *path,
	int (*visit)(void *arg, const char *name), void *arg)
{
	struct dirent *entry;
	int rc = 0;
	int fd = lac__plain_openat(be, path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	DIR *dir = fdopendir(fd);
	if (!dir) {
		rc = -errno;
		close(fd);
		return rc;
	}
	/* An error looks like the end but for errno, and visit may have set it. */
	while (rc == 0 && (errno = 0, entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = visit(arg, entry->d_name);
	}
	if (rc == 0)
		rc = -errno;
	closedir(dir);
	return rc;
}

int lac__plain_path_info(struct lac_backend *be, const char *path, struct lac_file_info *ret)
{
	const char *at = lac__plain_path(path);
	struct stat st;

	if (!at)
		return -EINVAL;
	if (fstatat(lac__plain_of(be)->root_fd, at, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return -errno;
	lac__plain_stat(&st, ret);
	return 0;
}

static uint32_t read_sector_size(const char *sys_path)
{
	char text[32];
	int fd = open(sys_path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	unsigned long value = strtoul(text, NULL, 10);
	return value >= 512 && value <= 1u << 20 && lac__is_power_of_two(value) ? (uint32_t)value
										: 0;
}

/* A partition has no queue of its own: its directory lies in the one of the whole disk. Filesystems
   over several devices, or none, have a device number that /sys does not know. */
static uint32_t sector_of_device(dev_t device)
{
	char path[96];
	uint32_t bytes = 0;

	for (int parent = 0; parent < 2 && bytes == 0; parent++) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%squeue/physical_block_size",
			major(device), minor(device), parent ? "../" : "");
		bytes = read_sector_size(path);
	}
	return bytes ? bytes : sector_unknown_bytes;
}

int lac__plain_place_info(struct lac_backend *be, const char *path, struct lac_place_info *ret)
{
	struct statfs fs;
	struct stat st;
	int rc = 0;
	int fd = lac__plain_openat(be, path, O_PATH);

	if (fd < 0)
		return fd;
	if (fstatfs(fd, &fs) != 0 || fstat(fd, &st) != 0) {
		rc = -errno;
		goto out;
	}
	/* f_frsize is the unit of space; f_bsize may be a preferred size of transfer only. */
	uint64_t block = fs.f_frsize > 0 ? (uint64_t)fs.f_frsize : (uint64_t)fs.f_bsize;
	uint64_t id = (uint64_t)(uint32_t)fs.f_fsid.__val[0] << 32 | (uint32_t)fs.f_fsid.__val[1];
	ret->filesystem_type = (uint32_t)fs.f_type;
	ret->filesystem_id = id ? id : st.st_dev;
	if (!lac__mul_ok(fs.f_bavail, block, &ret->free_bytes))
		ret->free_bytes = UINT64_MAX;
	if (!lac__is_power_of_two(block) || block < 512 || block > 1u << 30)
		block = block_unknown_bytes;
	ret->block_bytes = (uint32_t)block;
	ret->physical_sector_bytes = sector_of_device(st.st_dev);
out:
	close(fd);
	return rc;
}
