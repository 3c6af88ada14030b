/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/io.c - whole operations over a backend's single calls.
 *
 * A backend passes short counts and EINTR up, because only here is it known that the caller wants
 * all or nothing. Everything above this file may believe that a read or a write is whole, and that
 * a signal is no failure.
 */
#include "io/io.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* What Linux transfers at most in one call; a multiple of the alignment of DIRECT files. */
static const size_t call_max_bytes = 0x7ffff000;
static const size_t direct_align_bytes = 4096;

/*
 * fallocate may be interrupted between two extents, and a timer that fires faster than one call
 * finishes would stop it for ever. Smaller pieces get through where larger ones do not; what is
 * still interrupted at the smallest size, this many times in a row, is given up.
 */
static const uint64_t allocate_piece_bytes = 64u << 20;
static const uint64_t allocate_piece_min_bytes = 1u << 20;
static const unsigned allocate_interrupts_max = 100;

/* off_t is signed, so no byte lies at or beyond 2^63. */
static bool reachable(uint64_t offset, uint64_t length)
{
	return lac__range_ok(offset, length, INT64_MAX);
}

static size_t cut(size_t length)
{
	return length < call_max_bytes ? length : call_max_bytes;
}

/* One call, and again when a signal came; 0 < count <= length, 0 at the end, or an errno. */
static ssize_t read_some(struct lac_file *file, char *buffer, size_t length, uint64_t offset)
{
	ssize_t n;

	do
		n = file->backend->ops->pread(file, buffer, cut(length), offset);
	while (n == -EINTR);
	/* The backend broke its word, perhaps the buffer too. */
	return n > 0 && (size_t)n > cut(length) ? -EIO : n;
}

static ssize_t write_some(struct lac_file *file, const char *buffer, size_t length, uint64_t offset)
{
	ssize_t n;

	do
		n = file->backend->ops->pwrite(file, buffer, cut(length), offset);
	while (n == -EINTR);
	return n == 0 || (n > 0 && (size_t)n > cut(length)) ? -EIO : n;
}

/*
 * A DIRECT file wants aligned calls, and a short count may leave off anywhere: at the end of the
 * file, most of all. Where going on from there is refused, the last part is done once more from
 * where it was aligned. Returns how far it came beyond `done`; less than that is no progress.
 */
static ssize_t read_on(
	struct lac_file *file, char *buffer, size_t length, uint64_t offset, size_t done)
{
	size_t again = done % direct_align_bytes;
	struct lac_file_info info;
	ssize_t n = read_some(file, buffer + done, length - done, offset + done);

	if (n != -EINVAL || again == 0)
		return n;
	int rc = file->backend->ops->file_info(file, &info);
	if (rc < 0)
		return rc;
	if (offset + done >= info.size_bytes)
		return 0;
	size_t from = done - again;
	n = read_some(file, buffer + from, length - from, offset + from);
	if (n < 0)
		return n;
	return (size_t)n > again ? n - (ssize_t)again : -EIO;
}

static ssize_t write_on(
	struct lac_file *file, const char *buffer, size_t length, uint64_t offset, size_t done)
{
	size_t again = done % direct_align_bytes;
	ssize_t n = write_some(file, buffer + done, length - done, offset + done);

	if (n != -EINVAL || again == 0)
		return n;
	size_t from = done - again;
	n = write_some(file, buffer + from, length - from, offset + from);
	if (n < 0)
		return n;
	return (size_t)n > again ? n - (ssize_t)again : -EIO;
}

ssize_t lac__read_up_to(struct lac_file *file, void *buffer, size_t length, uint64_t offset)
{
	size_t done = 0;

	if (!reachable(offset, length))
		return -EINVAL;
	while (done < length) {
		ssize_t n = read_on(file, buffer, length, offset, done);
		if (n < 0)
			return n;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int lac__read_full(struct lac_file *file, void *buffer, size_t length, uint64_t offset)
{
	ssize_t n = lac__read_up_to(file, buffer, length, offset);

	if (n < 0)
		return (int)n;
	return (size_t)n == length ? 0 : -ENODATA;
}

int lac__write_full(struct lac_file *file, const void *buffer, size_t length, uint64_t offset)
{
	size_t done = 0;

	if (!reachable(offset, length))
		return -EFBIG;
	while (done < length) {
		ssize_t n = write_on(file, buffer, length, offset, done);
		if (n < 0)
			return (int)n;
		done += (size_t)n;
	}
	return 0;
}

int lac__open(struct lac_backend *be, const char *path, unsigned flags, struct lac_file **ret)
{
	int rc;

	do
		rc = be->ops->open(be, path, flags, ret);
	while (rc == -EINTR);
	return rc;
}

int lac__close(struct lac_file *file)
{
	if (!file)
		return 0;
	int rc = file->backend->ops->close(file);
	/* The file is gone even so, and what mattered was synced before: nothing to repeat. */
	return rc == -EINTR ? 0 : rc;
}

int lac__sync(struct lac_file *file)
{
	int rc;

	do
		rc = file->backend->ops->sync(file);
	while (rc == -EINTR);
	return rc;
}

int lac__allocate(struct lac_file *file, uint64_t offset, uint64_t length)
{
	uint64_t piece = allocate_piece_bytes;
	unsigned interrupts = 0;

	if (length == 0)
		return 0;
	if (!reachable(offset, length))
		return -EFBIG;
	while (length > 0) {
		uint64_t now = length < piece ? length : piece;
		int rc = file->backend->ops->allocate(file, offset, now);
		if (rc == -EINTR && ++interrupts < allocate_interrupts_max) {
			if (piece > allocate_piece_min_bytes)
				piece /= 2;
			continue;
		}
		if (rc < 0)
			return rc;
		interrupts = 0;
		offset += now;
		length -= now;
	}
	return 0;
}

int lac__punch(struct lac_file *file, uint64_t offset, uint64_t length)
{
	int rc;

	if (length == 0)
		return 0;
	if (!reachable(offset, length))
		return -EINVAL;
	do
		rc = file->backend->ops->punch(file, offset, length);
	while (rc == -EINTR);
	return rc;
}

int lac__truncate(struct lac_file *file, uint64_t size)
{
	int rc;

	if (size > INT64_MAX)
		return -EFBIG;
	do
		rc = file->backend->ops->truncate(file, size);
	while (rc == -EINTR);
	return rc;
}

void *lac__aligned_alloc(size_t length)
{
	if (length > SIZE_MAX - direct_align_bytes)
		return NULL;
	/* aligned_alloc of nothing may give NULL, which means out of memory here. */
	size_t rounded = (size_t)lac__round_up(length ? length : 1, direct_align_bytes);
	return aligned_alloc(direct_align_bytes, rounded);
}
