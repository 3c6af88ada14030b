/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/start.c - from what a scan found to a journal that takes records, and back.
 *
 * Starting gives every file in the directory its role: needed for redo, ready, or left over. Left
 * over ones fill gaps among the ready numbers and then the end. No byte of a segment is written.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "journal/journal_internal.h"

/* Verifies what redo would read of a segment's header: its place in the order of LSNs. */
static int read_header(struct lac__journal *j, struct lac__segment *segment, const char *path,
	struct lac_error *err)
{
	struct lac__segment_header header;
	struct lac_file *file;
	uint8_t *page = lac__aligned_alloc(LAC__PAGE_BYTES);
	int rc;

	if (!page)
		return lac__error_nomem(err);
	rc = lac__open(j->be, path, 0, &file);
	if (rc < 0) {
		lac__error_sys(err, rc, "open %s", path);
		goto out;
	}
	rc = lac__read_full(file, page, LAC__PAGE_BYTES, 0);
	(void)lac__close(file);
	if (rc < 0) {
		lac__error_sys(err, rc, "read %s: header", path);
		goto out;
	}
	rc = lac__segment_header_decode(page, &j->options.uuid, segment->seq, &header, err);
	if (rc < 0) {
		lac__error_prepend(err, "read %s: header", path);
		goto out;
	}
	segment->first_lsn = header.first_lsn;
	segment->end_bytes = segment->size_bytes;
	segment->durable = true;
out:
	free(page);
	return rc;
}

/* A copy that left out zeros has no space for what will be written to it. What remains sparse after
   this, on a filesystem that can't allocate, was not ours to promise. */
static int fill_holes(struct lac__journal *j, const char *path, uint64_t size_bytes)
{
	struct lac_file *file;
	int rc = lac__open(j->be, path, LAC_OPEN_WRITE, &file), close_rc;

	if (rc < 0)
		return rc;
	rc = lac__allocate(file, 0, size_bytes);
	if (rc == 0)
		rc = lac__sync(file);
	close_rc = lac__close(file);
	if (rc == -EOPNOTSUPP)
		rc = 0;
	return rc < 0 ? rc : close_rc;
}

/* Whether the file can serve as a ready segment: 1, or 0 when it was cut short or is sparse on a
   full disk, where it is only in the way. */
static int check_ready(struct lac__journal *j, const struct lac__segment *segment, const char *path,
	const struct lac_file_info *info, struct lac_error *err)
{
	uint64_t first_offset = lac__segment_first_offset(j->options.tear_bytes);
	int rc = 0;

	if (info->size_bytes != segment->size_bytes ||
		!lac__space_fits(j, segment, first_offset, 0))
		return 0;
	if (info->allocated_bytes < info->size_bytes)
		rc = fill_holes(j, path, info->size_bytes);
	if (lac__is_space_error(rc))
		return 0;
	return rc < 0 ? lac__error_sys(err, rc, "allocate %s", path) : 1;
}

/* *ret is NULL for a file that can't be a ready segment. */
static int new_segment(struct lac__journal *j, uint64_t seq, bool used, struct lac__segment **ret,
	struct lac_error *err)
{
	struct lac__segment *segment = calloc(1, sizeof *segment);
	struct lac__segment_path path;
	struct lac_file_info info;
	int rc;

	if (!segment)
		return lac__error_nomem(err);
	segment->seq = seq;
	rc = lac__segment_path(j->dir, seq, &path);
	if (rc == 0)
		rc = j->be->ops->path_info(j->be, path.text, &info);
	if (rc < 0) {
		lac__error_sys(err, rc, "look at segment %016" PRIx64 ".seg of %s", seq, j->dir);
		goto out;
	}
	segment->size_bytes = lac__round_down(info.size_bytes, LAC__PAGE_BYTES);
	rc = used ? read_header(j, segment, path.text, err)
		  : check_ready(j, segment, path.text, &info, err);
	if (rc < 0)
		goto out;
	*ret = NULL;
	if (used || rc == 1) {
		*ret = segment;
		segment = NULL;
	}
	rc = 0;
out:
	free(segment);
	return rc;
}

/* The segments that redo still needs: keep_seq up to where appending goes on, none missing. */
static int adopt_used(struct lac__journal *j, const struct lac__segment_list *list,
	uint64_t keep_seq, const struct lac__jscan_end *end, struct lac_error *err)
{
	struct lac__segment *segment;
	int rc;

	for (uint64_t seq = keep_seq; seq < end->next_seq; seq++) {
		if (!lac__segment_list_has(list, seq))
			return lac__error_set(err, -EUCLEAN, LAC_REASON_JOURNAL_GAP, 0, 0,
				"segment %016" PRIx64 ".seg of %s is missing", seq, j->dir);
		rc = new_segment(j, seq, true, &segment, err);
		if (rc < 0)
			return rc;
		if (seq == end->seq)
			segment->end_bytes = end->offset;
		lac__space_append(j, segment);
		j->used_count++;
	}
	j->next_seq = end->next_seq;
	return 0;
}

/* Gives file `seq` the next free number, or removes it where it is useless or enough are there. */
static int adopt_ready(
	struct lac__journal *j, uint64_t seq, bool *ret_changed, struct lac_error *err)
{
	struct lac__segment_path from, to;
	struct lac__segment *segment = NULL;
	bool wanted = j->ready_count < lac__space_wanted(j);
	int rc = new_segment(j, seq, false, &segment, err);

	if (rc < 0)
		return rc;
	if (segment && wanted && seq == j->next_seq)
		goto add;
	*ret_changed = true;
	rc = lac__segment_path(j->dir, seq, &from);
	if (rc == 0)
		rc = lac__segment_path(j->dir, j->next_seq, &to);
	if (rc == 0 && segment && wanted)
		rc = j->be->ops->rename(j->be, from.text, to.text);
	else if (rc == 0)
		rc = j->be->ops->unlink(j->be, from.text);
	if (rc < 0 || !segment || !wanted) {
		free(segment);
		return rc < 0 ? lac__error_sys(err, rc, "adopt segment %016" PRIx64 ".seg of %s",
					seq, j->dir)
			      : 0;
	}
add:
	segment->seq = j->next_seq++;
	lac__space_append(j, segment);
	if (!j->ready)
		j->ready = segment;
	j->ready_count++;
	return 0;
}

/* Ready numbers become consecutive: a missing one is filled by a left-over file from below
   keep_seq, or else by the highest. */
static int adopt_rest(struct lac__journal *j, const struct lac__segment_list *list,
	uint64_t keep_seq, struct lac_error *err)
{
	size_t old = 0, olds = 0, at, end = list->count;
	bool changed = false;
	int rc = 0;

	while (olds < list->count && list->seqs[olds] < keep_seq)
		olds++;
	for (at = olds; at < end && list->seqs[at] < j->next_seq; at++)
		;
	while (rc == 0 && (old < olds || at < end)) {
		if (at < end && list->seqs[at] == j->next_seq)
			rc = adopt_ready(j, list->seqs[at++], &changed, err);
		else if (old < olds)
			rc = adopt_ready(j, list->seqs[old++], &changed, err);
		else
			rc = adopt_ready(j, list->seqs[--end], &changed, err);
	}
	if (rc == 0 && changed) {
		/* The new names must be there before anything is written under them. */
		rc = j->be->ops->sync_dir(j->be, j->dir);
		if (rc < 0)
			lac__error_sys(err, rc, "sync %s", j->dir);
	}
	return rc;
}

/* Makes what is missing. A full disk is no reason to refuse: deletes and a checkpoint can help. */
static int prepare_missing(struct lac__journal *j, struct lac_error *err)
{
	int rc = 0;

	pthread_mutex_lock(&j->lock);
	while (rc == 0 && j->ready_count < lac__space_wanted(j) &&
		(!j->options.background || j->ready_count == 0))
		rc = lac__space_prepare(j, false, err);
	if (lac__is_space_error(rc) && j->poison == 0)
		rc = 0;
	pthread_mutex_unlock(&j->lock);
	return rc;
}

static int adopt(struct lac__journal *j, const struct lac__jscan_end *end, uint64_t keep_seq,
	struct lac_error *err)
{
	struct lac__segment_list list = {0};
	struct lac__segment_path temp;
	int rc = lac__segment_list_read(j->be, j->dir, &list, err);

	if (rc < 0)
		return rc;
	if (keep_seq > end->next_seq)
		keep_seq = end->next_seq;
	if (list.temporary && lac__segment_temp_path(j->dir, &temp) == 0)
		(void)j->be->ops->unlink(j->be, temp.text);
	rc = adopt_used(j, &list, keep_seq, end, err);
	if (rc == 0)
		rc = adopt_rest(j, &list, keep_seq, err);
	if (rc == 0)
		rc = prepare_missing(j, err);
	lac__segment_list_free(&list);
	return rc;
}

static struct lac__journal *new_journal(struct lac_backend *be, const char *dir,
	const struct lac__journal_options *options, const struct lac__jscan_end *end)
{
	struct lac__journal *j = calloc(1, sizeof *j);

	if (!j)
		return NULL;
	j->be = be;
	j->options = *options;
	j->dir = strdup(dir);
	j->tail_page = lac__aligned_alloc(LAC__PAGE_BYTES);
	j->epoch = end->epoch + 1;
	j->next_lsn = end->last_lsn + 1;
	j->durable_lsn = end->last_lsn;
	j->confirmed_lsn = end->last_lsn;
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->changed, NULL);
	if (j->dir && j->tail_page)
		return j;
	(void)lac__journal_close(j);
	return NULL;
}

int lac__journal_start(struct lac_backend *be, const char *dir,
	const struct lac__journal_options *options, const struct lac__jscan_end *end,
	uint64_t keep_seq, lac__journal_durable_fn durable, void *arg, struct lac__journal **ret,
	struct lac_error *err)
{
	struct lac__journal *j;
	int rc = lac__journal_options_check(options, err);

	if (rc < 0)
		return rc;
	if (end->verdict == LAC__JOURNAL_CORRUPT || end->epoch == UINT32_MAX ||
		end->next_seq == 0 || end->last_lsn == UINT64_MAX || keep_seq == 0)
		return lac__error_set(err, -EINVAL, LAC_REASON_ARGUMENT, 0, 0,
			"start journal %s: the end given is corrupt or out of range", dir);
	j = new_journal(be, dir, options, end);
	if (!j)
		return lac__error_nomem(err);
	j->durable_fn = durable;
	j->arg = arg;
	rc = adopt(j, end, keep_seq, err);
	if (rc == 0) {
		rc = lac__space_thread_start(j);
		if (rc < 0)
			lac__error_sys(err, rc, "start a thread");
	}
	if (rc < 0) {
		lac__error_prepend(err, "start journal");
		(void)lac__journal_close(j);
		return rc;
	}
	*ret = j;
	return 0;
}

int lac__journal_close(struct lac__journal *j)
{
	struct lac__segment *segment;
	struct lac__group *group;
	int rc, close_rc;

	lac__space_thread_stop(j);
	rc = j->poison;
	while ((group = j->head)) {
		j->head = group->next;
		lac__group_unref(group);
	}
	while ((segment = j->oldest)) {
		j->oldest = segment->next;
		close_rc = lac__space_close(j, segment);
		if (rc == 0)
			rc = close_rc;
		free(segment);
	}
	free(j->spare[0].bytes);
	free(j->spare[1].bytes);
	free(j->tail_page);
	free(j->dir);
	pthread_cond_destroy(&j->changed);
	pthread_mutex_destroy(&j->lock);
	free(j);
	return rc;
}

/* ---- queries ---- */

uint64_t lac__journal_next_lsn(struct lac__journal *j)
{
	uint64_t lsn;

	pthread_mutex_lock(&j->lock);
	lsn = j->next_lsn;
	pthread_mutex_unlock(&j->lock);
	return lsn;
}

uint64_t lac__journal_durable_lsn(struct lac__journal *j)
{
	uint64_t lsn;

	pthread_mutex_lock(&j->lock);
	lsn = j->durable_lsn;
	pthread_mutex_unlock(&j->lock);
	return lsn;
}

/* Never a segment without a durable header: a scan from there could not tell the epoch (J7). */
uint64_t lac__journal_seq_of(struct lac__journal *j, uint64_t lsn)
{
	const struct lac__segment *s;
	uint64_t seq;

	pthread_mutex_lock(&j->lock);
	s = j->oldest;
	seq = s ? s->seq : j->next_seq;
	for (; s && s->durable && s->first_lsn <= lsn; s = s->next)
		seq = s->seq;
	pthread_mutex_unlock(&j->lock);
	return seq;
}

static uint64_t live_bytes(const struct lac__journal *j)
{
	uint64_t header_bytes = lac__segment_first_offset(j->options.tear_bytes), bytes = 0;

	for (const struct lac__segment *s = j->oldest; s && s != j->ready; s = s->next)
		if (s->end_bytes > header_bytes)
			bytes += s->end_bytes - header_bytes;
	if (j->open)
		bytes += lac__space_group_end(j, j->open, 0) - j->open->offset;
	return bytes;
}

uint64_t lac__journal_live_bytes(struct lac__journal *j)
{
	uint64_t bytes;

	pthread_mutex_lock(&j->lock);
	bytes = live_bytes(j);
	pthread_mutex_unlock(&j->lock);
	return bytes;
}

/* With one ready segment left, which ordinary appends may not take, there is still the rest of the
   active segment for whoever makes the checkpoint. */
bool lac__journal_pressed(struct lac__journal *j)
{
	bool pressed;

	pthread_mutex_lock(&j->lock);
	pressed = j->ready_count <= 1;
	pthread_mutex_unlock(&j->lock);
	return pressed;
}

void lac__journal_stats(struct lac__journal *j, struct lac__journal_stats *ret)
{
	pthread_mutex_lock(&j->lock);
	*ret = j->stats;
	for (const struct lac__segment *s = j->oldest; s; s = s->next) {
		ret->files++;
		ret->file_bytes += s->size_bytes;
	}
	pthread_mutex_unlock(&j->lock);
}
