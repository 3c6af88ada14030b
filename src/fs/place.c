/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs/place.c - what the filesystem below a directory can do, found out by trying it there.
 *
 * What a filesystem does with fallocate depends on its kind, its format options, the kernel and
 * what lies below, so a table of names would be wrong somewhere: a call may succeed and reserve
 * nothing, a hole may be punched and free nothing, and the unit that is freed (a cluster, a
 * real-time extent, a page of another size) may be larger than the block that statfs reports. All
 * of this shows in the allocated size of a small file, once that was synced.
 *
 * One thing does not show: on a filesystem that copies on write, overwriting takes new space, and
 * a hole in part of an extent lowers the file's allocated size while the extent stays whole
 * until nothing refers to it. Those are known by their magic number, and nothing else is.
 */
#include "fs/place.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

static const char probe_name[] = "probe.tmp";

/*
 * The file is written in full, and the ranges [u, 2u) for u = smallest unit, twice that, ... are
 * punched: they are aligned, lie side by side, and leave the start of each larger unit in use. So
 * the first one that frees something is the unit. The large span is tried only if the small one
 * showed nothing.
 */
static const uint32_t spans_bytes[] = {512u << 10, 4u << 20};
static const uint32_t first_unit_max_bytes = 4096;

static bool copies_on_write(uint64_t filesystem_type)
{
	static const uint32_t magics[] = {
		0x9123683e, /* btrfs */
		0x2fc12fc1, /* zfs */
		0xca451a4e, /* bcachefs */
	};

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		if (filesystem_type == magics[i])
			return true;
	}
	return false;
}

int lac__place_assume(
	struct lac_backend *be, const char *dir, struct lac__place *ret, struct lac_error *err)
{
	struct lac_place_info info;
	int rc = be->ops->place_info(be, dir, &info);

	if (rc < 0)
		return lac__error_sys(err, rc, "ask about %s", dir[0] ? dir : ".");
	memset(ret, 0, sizeof(*ret));
	ret->filesystem_type = info.filesystem_type;
	ret->filesystem_id = info.filesystem_id;
	ret->block_bytes = info.block_bytes;
	ret->physical_sector_bytes = info.physical_sector_bytes;
	ret->reclaim_unit_bytes = info.block_bytes;
	ret->flags = LAC__PLACE_ALLOCATE | LAC__PLACE_PUNCH;
	if (copies_on_write(info.filesystem_type))
		ret->flags |= LAC__PLACE_COW;
	return 0;
}

/* What the filesystem holds for the file once it has decided: many do so only when they write. */
static int allocated_bytes(struct lac_file *file, uint64_t *ret)
{
	struct lac_file_info info;
	int rc = lac__sync(file);

	if (rc == 0)
		rc = file->backend->ops->file_info(file, &info);
	if (rc == 0)
		*ret = info.allocated_bytes;
	return rc;
}

/* +1 if punching the range freed something, 0 if not, or if punching does not exist here. */
static int punch_frees(struct lac_file *file, uint64_t offset, uint64_t length)
{
	uint64_t before = 0, after = 0;
	int rc = allocated_bytes(file, &before);

	if (rc < 0)
		return rc;
	rc = lac__punch(file, offset, length);
	if (rc == -EOPNOTSUPP)
		return 0;
	if (rc == 0)
		rc = allocated_bytes(file, &after);
	if (rc < 0)
		return rc;
	return after < before;
}

/* Does allocation reserve space, and can part of what was reserved be given back? */
static int try_allocation(struct lac_file *file, uint32_t span, uint32_t unit, uint32_t *flags)
{
	uint64_t allocated = 0;
	int rc = lac__allocate(file, 0, span);

	*flags &= ~(uint32_t)LAC__PLACE_ALLOCATE;
	if (rc == -EOPNOTSUPP)
		return 0;
	if (rc == 0)
		rc = allocated_bytes(file, &allocated);
	if (rc < 0)
		return rc;
	if (allocated < span)
		return 0;
	*flags |= LAC__PLACE_ALLOCATE;
	if (unit == 0 || (*flags & LAC__PLACE_COW))
		return 0;
	/* In the middle, so that no end of the extent helps. */
	rc = punch_frees(file, span / 2, unit);
	if (rc > 0)
		*flags |= LAC__PLACE_PARTIAL;
	return rc < 0 ? rc : 0;
}

/* Fills [0, span) with bytes that neither compress nor repeat. */
static int write_noise(struct lac_file *file, uint32_t span)
{
	uint64_t state = 0x9e3779b97f4a7c15u;
	uint64_t *words = malloc(span);

	if (!words)
		return -ENOMEM;
	for (uint32_t i = 0; i < span / sizeof(*words); i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		words[i] = state;
	}
	int rc = lac__write_full(file, words, span, 0);
	free(words);
	return rc;
}

/* The smallest range whose punch frees space, 0 if none does. +1 if the filesystem's numbers can't
   be relied on: it does not count what was written. */
static int find_unit(struct lac_file *file, uint32_t span, uint32_t first, uint32_t *ret)
{
	uint64_t allocated = 0;
	int rc = write_noise(file, span);

	if (rc == 0)
		rc = allocated_bytes(file, &allocated);
	if (rc < 0)
		return rc;
	if (allocated < span / 2)
		return 1;
	*ret = 0;
	for (uint32_t unit = first; unit <= span / 2; unit *= 2) {
		rc = punch_frees(file, unit, unit);
		if (rc < 0)
			return rc;
		if (rc > 0) {
			*ret = unit;
			break;
		}
	}
	return 0;
}

/* Measures in an empty file; *place is changed as a whole or not at all. +1: nothing was learnt. */
static int measure(struct lac_file *file, struct lac__place *place)
{
	struct lac__place found = *place;
	uint32_t first = found.block_bytes, span = 0;
	int rc;

	if (!lac__is_power_of_two(first) || first > first_unit_max_bytes)
		first = first_unit_max_bytes;
	found.reclaim_unit_bytes = 0;
	for (size_t i = 0; i < sizeof(spans_bytes) / sizeof(spans_bytes[0]); i++) {
		span = spans_bytes[i];
		rc = find_unit(file, span, first, &found.reclaim_unit_bytes);
		if (rc != 0)
			return rc;
		if (found.reclaim_unit_bytes != 0)
			break;
	}
	rc = lac__truncate(file, 0);
	if (rc == 0)
		rc = try_allocation(file, span, found.reclaim_unit_bytes, &found.flags);
	if (rc < 0)
		return rc;
	if (found.reclaim_unit_bytes == 0)
		found.flags &= ~(uint32_t)LAC__PLACE_PUNCH;
	found.flags |= LAC__PLACE_PROBED;
	*place = found;
	return 0;
}

/* Nothing can be tried here, and that is no failure of the place. */
static bool keeps_assumed(int rc)
{
	return rc == -ENOSPC || rc == -EDQUOT || rc == -EFBIG || rc == -EROFS;
}

static int probe_path(const char *dir, char *path, size_t size)
{
	int n = snprintf(path, size, "%s%s%s", dir, dir[0] ? "/" : "", probe_name);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int lac__place_probe(
	struct lac_backend *be, const char *dir, struct lac__place *ret, struct lac_error *err)
{
	char path[PATH_MAX];
	struct lac_file *file = NULL;
	struct lac__place place;
	int rc = lac__place_assume(be, dir, &place, err);

	if (rc < 0)
		return rc;
	rc = probe_path(dir, path, sizeof(path));
	if (rc < 0)
		return lac__error_sys(err, rc, "probe %s", dir);
	/* What an attempt before left behind. */
	rc = be->ops->unlink(be, path);
	if (rc == 0 || rc == -ENOENT)
		rc = lac__open(
			be, path, LAC_OPEN_WRITE | LAC_OPEN_CREATE | LAC_OPEN_EXCLUSIVE, &file);
	if (rc == 0) {
		rc = measure(file, &place);
		/* Nothing in it is to be kept, so a late write error is none. */
		lac__close(file);
		be->ops->unlink(be, path);
	}
	if (rc < 0 && !keeps_assumed(rc))
		return lac__error_sys(err, rc, "probe %s", path);
	*ret = place;
	return 0;
}
