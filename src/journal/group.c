/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/group.c - the buffer of a group, and the one write that puts it on disk.
 *
 * The buffer is the file's bytes from a page boundary on, so that a group is written as whole pages
 * (a partial page would make the kernel read it first, R18): in front of the frame stands the
 * segment's header page, or the part of the page that the former group already wrote and that is
 * written again with the same bytes (rule 4.8). Records are copied to their final place at once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "journal/journal_internal.h"

#define BUFFER_MIN_BYTES  (64u << 10)
#define BUFFER_KEEP_BYTES (4u << 20) /* a buffer that a large record needed is not kept */

static uint64_t write_from(const struct lac__group *g)
{
	return g->offset - g->lead_bytes;
}

/* Where the write ends: on a page and a tear unit, but inside the file. */
static uint64_t write_to(
	const struct lac__journal *j, const struct lac__group *g, size_t body_bytes)
{
	uint64_t unit = lac__segment_first_offset(j->options.tear_bytes);
	uint64_t end = g->offset + LAC__FRAME_HEADER_BYTES + body_bytes;

	end = lac__round_up(end, unit);
	return end < g->segment->size_bytes ? end : g->segment->size_bytes;
}

static int buffer_grow(struct lac__buffer *buffer, size_t used, size_t need)
{
	size_t capacity = buffer->capacity ? buffer->capacity : BUFFER_MIN_BYTES;
	uint8_t *bytes;

	while (capacity < need)
		capacity *= 2;
	bytes = lac__aligned_alloc(capacity);
	if (!bytes)
		return -ENOMEM;
	if (buffer->bytes) /* a new group's buffer holds nothing yet, and may be shorter than `used`
			    */
		memcpy(bytes, buffer->bytes, used < buffer->capacity ? used : buffer->capacity);
	free(buffer->bytes);
	buffer->bytes = bytes;
	buffer->capacity = capacity;
	return 0;
}

int lac__group_reserve(struct lac__journal *j, struct lac__group *g, size_t more_bytes)
{
	size_t used = g->lead_bytes + LAC__FRAME_HEADER_BYTES + g->body_bytes;
	size_t need = (size_t)(write_to(j, g, g->body_bytes + more_bytes) - write_from(g));

	return need <= g->buffer.capacity ? 0 : buffer_grow(&g->buffer, used, need);
}

int lac__group_new(struct lac__journal *j, struct lac__segment *segment, uint64_t offset,
	bool opens_segment, size_t body_bytes, struct lac__group **ret)
{
	struct lac__group *g = calloc(1, sizeof *g);
	struct lac__buffer *spare = j->spare[0].bytes ? &j->spare[0] : &j->spare[1];

	if (!g)
		return -ENOMEM;
	g->segment = segment;
	g->offset = offset;
	g->opens_segment = opens_segment;
	g->lead_bytes = opens_segment ? offset : offset % LAC__PAGE_BYTES;
	g->first_lsn = j->next_lsn;
	atomic_init(&g->state, LAC__GROUP_PENDING);
	atomic_init(&g->refs, 1);
	g->buffer = *spare;
	*spare = (struct lac__buffer){0};
	if (lac__group_reserve(j, g, body_bytes) < 0) {
		lac__group_retire_buffer(j, g);
		free(g);
		return -ENOMEM;
	}
	*ret = g;
	return 0;
}

void lac__group_add(struct lac__group *g, const void *record, size_t length)
{
	uint8_t *at = g->buffer.bytes + g->lead_bytes + LAC__FRAME_HEADER_BYTES + g->body_bytes;

	g->body_bytes += lac__frame_record_encode(record, length, at);
	g->count++;
}

void lac__group_retire_buffer(struct lac__journal *j, struct lac__group *g)
{
	struct lac__buffer *spare = j->spare[0].bytes ? &j->spare[1] : &j->spare[0];

	if (spare->bytes || g->buffer.capacity > BUFFER_KEEP_BYTES)
		free(g->buffer.bytes);
	else
		*spare = g->buffer;
	g->buffer = (struct lac__buffer){0};
}

void lac__group_unref(struct lac__group *g)
{
	if (atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) != 1)
		return;
	free(g->buffer.bytes);
	free(g);
}

static void encode_lead(struct lac__journal *j, struct lac__group *g)
{
	struct lac__segment_header h = {
		.uuid = j->options.uuid,
		.seq = g->segment->seq,
		.epoch = j->epoch,
		.tear_bytes = j->options.tear_bytes,
		.segment_bytes = g->segment->size_bytes,
		.first_lsn = g->first_lsn,
		.prev_last_lsn = g->first_lsn - 1,
	};

	if (g->opens_segment) {
		memset(g->buffer.bytes, 0, g->lead_bytes);
		lac__segment_header_encode(&h, g->buffer.bytes);
	} else if (g->lead_bytes) {
		memcpy(g->buffer.bytes, j->tail_page, g->lead_bytes);
	}
}

static void encode(struct lac__journal *j, struct lac__group *g, size_t length)
{
	struct lac__frame_header h = {
		.seq = g->segment->seq,
		.offset = g->offset,
		.epoch = j->epoch,
		.flags = g->count ? 0 : LAC__FRAME_MARKER,
		.first_lsn = g->first_lsn,
		.count = g->count,
		.watermark = g->watermark,
		.body_bytes = (uint32_t)g->body_bytes,
	};
	uint8_t *frame = g->buffer.bytes + g->lead_bytes;
	uint8_t *body = frame + LAC__FRAME_HEADER_BYTES;
	size_t used = g->lead_bytes + LAC__FRAME_HEADER_BYTES + g->body_bytes;

	encode_lead(j, g);
	lac__frame_header_encode(&h, &j->options.uuid, body, frame);
	memset(g->buffer.bytes + used, 0, length - used);
}

/* Makes g's segment the one that is written, and closes the former: its last sync has returned
   (rule 4.18), but a close may still report that a write was lost. */
static int switch_segment(struct lac__journal *j, struct lac__group *g, struct lac_error *err)
{
	struct lac__segment *former = j->written;
	int rc = lac__space_open(j, g->segment, err);

	if (rc < 0 || former == g->segment)
		return rc;
	j->written = g->segment;
	if (!former)
		return 0;
	rc = lac__space_close(j, former);
	return rc < 0 ? lac__error_sys(err, rc, "close segment %016" PRIx64 ".seg in %s",
				former->seq, j->dir)
		      : 0;
}

int lac__group_write(struct lac__journal *j, struct lac__group *g, struct lac_error *err)
{
	uint64_t from = write_from(g), to = write_to(j, g, g->body_bytes);
	uint64_t end = lac__space_group_end(j, g, 0), start_ns, sync_ns;
	size_t length = (size_t)(to - from);
	const char *verb = "write";
	int rc = switch_segment(j, g, err);

	if (rc < 0)
		return rc;
	encode(j, g, length);
	rc = lac__write_full(g->segment->file, g->buffer.bytes, length, from);
	start_ns = lac__clock_monotonic_ns();
	if (rc == 0) {
		/* The group's durability. What may be lost before: this group, whole or in part,
		   and nothing else. After: nothing. */
		verb = "sync";
		rc = lac__sync(g->segment->file);
	}
	sync_ns = lac__clock_monotonic_ns() - start_ns;
	if (rc < 0) {
		lac__error_sys(err, rc, "%s %s%s%016" PRIx64 ".seg: group at %" PRIu64, verb,
			j->dir, j->dir[0] ? "/" : "", g->segment->seq, g->offset);
		if (err) {
			err->offset = g->offset;
			err->length = length;
		}
		return rc;
	}
	if (end % LAC__PAGE_BYTES)
		memcpy(j->tail_page,
			g->buffer.bytes + (lac__round_down(end, LAC__PAGE_BYTES) - from),
			LAC__PAGE_BYTES);
	pthread_mutex_lock(&j->lock);
	j->stats.groups++;
	j->stats.syncs++;
	j->stats.sync_ns += sync_ns;
	j->stats.written_bytes += length;
	j->stats.frame_bytes += LAC__FRAME_HEADER_BYTES + g->body_bytes;
	if (g->count > j->stats.group_records_max)
		j->stats.group_records_max = g->count;
	pthread_mutex_unlock(&j->lock);
	return 0;
}
