/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/segment.c - one segment file before it belongs to a running journal.
 *
 * A segment is allocated and then fully written, because only blocks that were written before can
 * be overwritten without a change of metadata in each sync, and because a disk that is full must
 * say so here, not in the middle of a commit (R1, R2, R4). It is made under a temporary name, so
 * that a name SEQ.seg always stands for a complete file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "journal/journal_internal.h"

#define FILL_CHUNK_BYTES    (1u << 20)
#define PACED_CHUNK_BYTES   (128u << 10)
#define PACED_SYNC_BYTES    (2u << 20)
#define PACE_NS		    2000000 /* a chunk: at most 64 MB/s */
#define SEGMENT_NAME_LENGTH 20	    /* 16 digits and ".seg" */
#define SEGMENT_TEMP_NAME   "prepare.tmp"
#define SEGMENT_LIMIT_BYTES (UINT64_C(1) << 40)

static int join(const char *dir, const char *name, struct lac__segment_path *ret)
{
	int n = snprintf(ret->text, sizeof ret->text, "%s%s%s", dir, dir[0] ? "/" : "", name);

	return n < 0 || (size_t)n >= sizeof ret->text ? -ENAMETOOLONG : 0;
}

int lac__segment_path(const char *dir, uint64_t seq, struct lac__segment_path *ret)
{
	char name[SEGMENT_NAME_LENGTH + 1];

	snprintf(name, sizeof name, "%016" PRIx64 ".seg", seq);
	return join(dir, name, ret);
}

int lac__segment_temp_path(const char *dir, struct lac__segment_path *ret)
{
	return join(dir, SEGMENT_TEMP_NAME, ret);
}

/* The number in a name, 0 for a name that is none. */
static uint64_t parse_name(const char *name)
{
	uint64_t seq = 0;

	if (strlen(name) != SEGMENT_NAME_LENGTH || strcmp(name + 16, ".seg") != 0)
		return 0;
	for (int i = 0; i < 16; i++) {
		char c = name[i];

		if (c >= '0' && c <= '9')
			seq = seq << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			seq = seq << 4 | (uint64_t)(c - 'a' + 10);
		else
			return 0;
	}
	return seq;
}

static int visit_name(void *arg, const char *name)
{
	struct lac__segment_list *list = arg;
	uint64_t seq = parse_name(name);

	if (seq == 0) {
		list->temporary |= strcmp(name, SEGMENT_TEMP_NAME) == 0;
		return 0;
	}
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 16;
		uint64_t *seqs = realloc(list->seqs, capacity * sizeof *seqs);

		if (!seqs)
			return -ENOMEM;
		list->seqs = seqs;
		list->capacity = capacity;
	}
	list->seqs[list->count++] = seq;
	return 0;
}

static int compare_seqs(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int lac__segment_list_read(struct lac_backend *be, const char *dir, struct lac__segment_list *ret,
	struct lac_error *err)
{
	struct lac__segment_list list = {0};
	int rc = be->ops->list(be, dir, visit_name, &list);

	if (rc < 0) {
		free(list.seqs);
		return lac__error_sys(err, rc, "list %s", dir);
	}
	if (list.count > 1)
		qsort(list.seqs, list.count, sizeof *list.seqs, compare_seqs);
	*ret = list;
	return 0;
}

void lac__segment_list_free(struct lac__segment_list *list)
{
	free(list->seqs);
	*list = (struct lac__segment_list){0};
}

bool lac__segment_list_has(const struct lac__segment_list *list, uint64_t seq)
{
	return list->count > 0 &&
	       bsearch(&seq, list->seqs, list->count, sizeof *list->seqs, compare_seqs);
}

uint64_t lac__segment_first_offset(uint32_t tear_bytes)
{
	return tear_bytes > LAC__PAGE_BYTES ? tear_bytes : LAC__PAGE_BYTES;
}

static bool tear_ok(const struct lac__journal_options *o)
{
	return lac__is_power_of_two(o->tear_bytes) && o->tear_bytes >= LAC__TEAR_MIN_BYTES &&
	       o->tear_bytes <= LAC__TEAR_MAX_BYTES;
}

int lac__journal_options_check(const struct lac__journal_options *o, struct lac_error *err)
{
	if (!tear_ok(o))
		return lac__error_set(err, -EINVAL, LAC_REASON_ARGUMENT, 0, 0,
			"journal options: tear_bytes %u, want a power of two from %u to %u",
			o->tear_bytes, LAC__TEAR_MIN_BYTES, LAC__TEAR_MAX_BYTES);
	/* Room for a header, one frame and a marker. */
	if (o->segment_bytes < LAC__JOURNAL_SEGMENT_MIN_BYTES ||
		o->segment_bytes % LAC__PAGE_BYTES || o->segment_bytes > SEGMENT_LIMIT_BYTES ||
		o->segment_bytes < lac__segment_first_offset(o->tear_bytes) + 3 * o->tear_bytes)
		return lac__error_set(err, -EINVAL, LAC_REASON_ARGUMENT, 0, 0,
			"journal options: segment_bytes %" PRIu64
			", want a multiple of 4096, at least 16 KiB and four tear units",
			o->segment_bytes);
	if (o->segments_min < 3 || o->ready_target < 1)
		return lac__error_set(err, -EINVAL, LAC_REASON_ARGUMENT, 0, 0,
			"journal options: segments_min %u and ready_target %u, want 3 and 1",
			o->segments_min, o->ready_target);
	if (o->record_bytes_max == 0 || o->record_bytes_max > LAC__RECORD_LIMIT_BYTES ||
		o->group_bytes_max > LAC__GROUP_LIMIT_BYTES)
		return lac__error_set(err, -EINVAL, LAC_REASON_ARGUMENT, 0, 0,
			"journal options: record_bytes_max %" PRIu64 ", group_bytes_max %" PRIu64
			", want at most 1 GiB and 16 MiB",
			o->record_bytes_max, o->group_bytes_max);
	return 0;
}

bool lac__is_space_error(int code)
{
	return code == -ENOSPC || code == -EDQUOT || code == -EFBIG;
}

/* In the background there is no hurry, but there are commits next to it, which a burst of writes or
   one long sync would hold up. */
static int pace(struct lac_file *file, uint64_t done, const _Atomic bool *hurry)
{
	const struct timespec wait = {.tv_nsec = PACE_NS};

	if (!hurry || atomic_load(hurry))
		return 0;
	nanosleep(&wait, NULL);
	return done % PACED_SYNC_BYTES ? 0 : lac__sync(file);
}

int lac__segment_fill(struct lac_file *file, uint64_t from, uint64_t to, const _Atomic bool *hurry)
{
	size_t chunk = hurry ? PACED_CHUNK_BYTES : FILL_CHUNK_BYTES;
	uint8_t *zeros;
	int rc = 0;

	if (to - from < chunk)
		chunk = (size_t)(to - from);
	zeros = lac__aligned_alloc(chunk);
	if (!zeros)
		return -ENOMEM;
	memset(zeros, 0, chunk);
	while (from < to && rc == 0) {
		size_t length = to - from < chunk ? (size_t)(to - from) : chunk;

		rc = lac__write_full(file, zeros, length, from);
		from += length;
		if (rc == 0 && from < to)
			rc = pace(file, from, hurry);
	}
	free(zeros);
	return rc;
}

static int allocate_and_fill(struct lac_file *file, uint64_t size_bytes, const _Atomic bool *hurry,
	bool *ret_sync_failed)
{
	int rc = lac__truncate(file, 0); /* an interrupted preparation may have left something */

	if (rc < 0)
		return rc;
	rc = lac__allocate(file, 0, size_bytes);
	if (rc < 0 && rc != -EOPNOTSUPP)
		return rc;
	rc = lac__segment_fill(file, 0, size_bytes, hurry);
	if (rc < 0) {
		/* A paced fill syncs in between, and does not say what it was that failed. */
		*ret_sync_failed = hurry && rc != -ENOMEM && !lac__is_space_error(rc);
		return rc;
	}
	/* Before this sync the file may hold anything; after it, every block is real. */
	rc = lac__sync(file);
	if (rc < 0)
		*ret_sync_failed = !lac__is_space_error(rc);
	return rc;
}

static int make_temporary(struct lac_backend *be, const char *path,
	const struct lac__journal_options *options, const _Atomic bool *hurry,
	bool *ret_sync_failed, struct lac_error *err)
{
	unsigned flags = LAC_OPEN_WRITE | LAC_OPEN_CREATE | LAC_OPEN_NOCOW;
	struct lac_file *file;
	int rc, close_rc;

	rc = lac__open(be, path, flags | (options->direct ? LAC_OPEN_DIRECT : 0), &file);
	if (rc < 0)
		return lac__error_sys(err, rc, "create %s", path);
	rc = allocate_and_fill(file, options->segment_bytes, hurry, ret_sync_failed);
	/* A failed allocation keeps what it got on some filesystems; give it back even if the
	   unlink should fail too. */
	if (rc < 0)
		(void)lac__truncate(file, 0);
	close_rc = lac__close(file);
	if (rc == 0 && close_rc < 0) {
		rc = close_rc;
		*ret_sync_failed = !lac__is_space_error(rc);
	}
	return rc < 0 ? lac__error_sys(err, rc, "prepare %s", path) : 0;
}

int lac__segment_prepare(struct lac_backend *be, const char *dir, uint64_t seq,
	const struct lac__journal_options *options, const _Atomic bool *hurry,
	bool *ret_sync_failed, struct lac_error *err)
{
	struct lac__segment_path temp, path;
	const char *left = temp.text; /* what a failure must remove */
	int rc;

	*ret_sync_failed = false;
	rc = lac__segment_temp_path(dir, &temp);
	if (rc == 0)
		rc = lac__segment_path(dir, seq, &path);
	if (rc < 0)
		return lac__error_sys(err, rc, "prepare a segment in %s", dir);
	rc = make_temporary(be, temp.text, options, hurry, ret_sync_failed, err);
	if (rc < 0)
		goto out;
	rc = be->ops->rename(be, temp.text, path.text);
	if (rc < 0) {
		lac__error_sys(err, rc, "rename %s to %s", temp.text, path.text);
		goto out;
	}
	left = path.text;
	/* Until this returns the segment may be nameless after a crash, so nothing may go into it.
	 */
	rc = be->ops->sync_dir(be, dir);
	if (rc < 0) {
		*ret_sync_failed = !lac__is_space_error(rc);
		lac__error_sys(err, rc, "sync %s", dir);
	}
out:
	if (rc < 0)
		(void)be->ops->unlink(be, left);
	return rc;
}

int lac__journal_create(struct lac_backend *be, const char *dir,
	const struct lac__journal_options *options, struct lac_error *err)
{
	struct lac__segment_path path;
	bool sync_failed;
	uint64_t seq = 1;
	int rc = lac__journal_options_check(options, err);

	while (rc == 0 && seq <= options->segments_min) {
		rc = lac__segment_prepare(be, dir, seq, options, NULL, &sync_failed, err);
		if (rc == 0)
			seq++;
	}
	if (rc < 0 && seq > 1) {
		while (--seq > 0)
			if (lac__segment_path(dir, seq, &path) == 0)
				(void)be->ops->unlink(be, path.text);
		lac__error_prepend(err, "create journal");
	}
	return rc;
}
