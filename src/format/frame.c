/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/frame.c - segment headers and frames of the journal.
 *
 * A frame's header is proved before its body is read: only then may its length be believed. Both
 * checksums begin with the log's uuid, and the header names segment, epoch and offset, so bytes
 * that an earlier use of the segment left behind are never a continuation of this one.
 */
#include "format/frame.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/checked.h"
#include "base/crc32c.h"
#include "format/internal.h"
#include "format/limits.h"

#define SEGMENT_MAGIC "LACJSEG1"
#define FRAME_MAGIC   UINT32_C(0x52464a4c) /* "LJFR" */
#define TEAR_MIN      512u
#define TEAR_MAX      65536u
#define RECORD_ALIGN  8u

struct disk_segment {
	struct lac__disk_prefix prefix;		/* 0..32 */
	lac_le64 seq;				/* 32..40 */
	lac_le32 epoch;				/* 40..44 */
	lac_le32 tear_bytes;			/* 44..48 */
	lac_le64 segment_bytes;			/* 48..56 */
	lac_le64 first_lsn;			/* 56..64 */
	lac_le64 prev_last_lsn;			/* 64..72 */
	uint8_t reserved[LAC__PAGE_BYTES - 72]; /* 72..4096 */
};
_Static_assert(sizeof(struct disk_segment) == LAC__PAGE_BYTES, "a segment header is a page");
_Static_assert(offsetof(struct disk_segment, prev_last_lsn) == 64, "layout of a segment header");

struct disk_frame {
	lac_le32 magic;	     /* 0..4 */
	lac_le32 header_crc; /* 4..8, of uuid and bytes 8..64 */
	lac_le32 body_crc;   /* 8..12, of uuid, bytes 16..56 and the body */
	lac_le32 body_bytes; /* 12..16 */
	lac_le64 seq;	     /* 16..24 */
	lac_le64 offset;     /* 24..32 */
	lac_le64 first_lsn;  /* 32..40 */
	lac_le64 watermark;  /* 40..48 */
	lac_le32 count;	     /* 48..52 */
	lac_le32 epoch;	     /* 52..56 */
	lac_le32 flags;	     /* 56..60 */
	lac_le32 reserved;   /* 60..64 */
};
_Static_assert(sizeof(struct disk_frame) == LAC__FRAME_HEADER_BYTES, "size of a frame header");
_Static_assert(offsetof(struct disk_frame, body_crc) == 8, "layout of a frame header");
_Static_assert(offsetof(struct disk_frame, seq) == 16, "layout of a frame header");
_Static_assert(offsetof(struct disk_frame, flags) == 56, "layout of a frame header");

struct disk_record_head {
	lac_le32 length;   /* 0..4 */
	lac_le32 reserved; /* 4..8 */
};
_Static_assert(sizeof(struct disk_record_head) == LAC__FRAME_RECORD_HEADER, "head of a record");

/* ---- segment header ---- */

void lac__segment_header_encode(const struct lac__segment_header *h, void *ret_page)
{
	struct disk_segment *d = ret_page;

	memset(d, 0, sizeof(*d));
	d->seq = lac__put64(h->seq);
	d->epoch = lac__put32(h->epoch);
	d->tear_bytes = lac__put32(h->tear_bytes);
	d->segment_bytes = lac__put64(h->segment_bytes);
	d->first_lsn = lac__put64(h->first_lsn);
	d->prev_last_lsn = lac__put64(h->prev_last_lsn);
	lac__disk_seal(d, SEGMENT_MAGIC, &h->uuid);
}

static int segment_check(
	const struct disk_segment *d, const struct lac__segment_header *h, struct lac_error *err)
{
	if (h->seq < 1 || h->seq >= LAC__SEQ_LIMIT)
		return LAC__BAD_FIELD(err, "segment %" PRIu64, h->seq);
	if (!lac__is_power_of_two(h->tear_bytes) || h->tear_bytes < TEAR_MIN ||
		h->tear_bytes > TEAR_MAX)
		return LAC__BAD_FIELD(err, "tear unit of %" PRIu32 " bytes", h->tear_bytes);
	if (h->segment_bytes % LAC__PAGE_BYTES != 0 || h->segment_bytes < LAC__SEGMENT_MIN_BYTES ||
		h->segment_bytes > LAC__SEGMENT_MAX_BYTES)
		return LAC__BAD_FIELD(err, "segment of %" PRIu64 " bytes", h->segment_bytes);
	if (h->first_lsn < 1 || h->first_lsn >= LAC__LSN_LIMIT || h->prev_last_lsn >= h->first_lsn)
		return LAC__BAD_FIELD(err, "first lsn %" PRIu64 " after %" PRIu64, h->first_lsn,
			h->prev_last_lsn);
	if (!lac__disk_is_zero(d->reserved, sizeof(d->reserved)))
		return LAC__BAD_FIELD(err, "reserved bytes are not zero");
	return 0;
}

int lac__segment_header_decode(const void *page, const struct lac__uuid *uuid, uint64_t seq,
	struct lac__segment_header *ret, struct lac_error *err)
{
	const struct disk_segment *d = page;
	struct lac__segment_header h;
	int rc;

	rc = lac__disk_verify(page, SEGMENT_MAGIC, err);
	if (rc < 0)
		return rc;
	h.uuid = d->prefix.uuid;
	h.seq = lac__get64(d->seq);
	h.epoch = lac__get32(d->epoch);
	h.tear_bytes = lac__get32(d->tear_bytes);
	h.segment_bytes = lac__get64(d->segment_bytes);
	h.first_lsn = lac__get64(d->first_lsn);
	h.prev_last_lsn = lac__get64(d->prev_last_lsn);
	if (!lac__uuid_equal(&h.uuid, uuid))
		return LAC__BAD_IDENTITY(err, "segment of another log");
	if (h.seq != seq)
		return LAC__BAD_IDENTITY(err, "segment %" PRIu64 ", want %" PRIu64, h.seq, seq);
	rc = segment_check(d, &h, err);
	if (rc == 0)
		*ret = h;
	return rc;
}

/* ---- frame ---- */

static uint32_t header_crc(const struct disk_frame *d, const struct lac__uuid *uuid)
{
	const size_t from = offsetof(struct disk_frame, body_crc);

	return lac__crc32c(lac__crc32c(0, uuid->b, sizeof(uuid->b)), (const uint8_t *)d + from,
		sizeof(*d) - from);
}

static uint32_t body_crc(const struct disk_frame *d, const struct lac__uuid *uuid, const void *body)
{
	const size_t from = offsetof(struct disk_frame, seq),
		     to = offsetof(struct disk_frame, flags);
	uint32_t crc;

	crc = lac__crc32c(0, uuid->b, sizeof(uuid->b));
	crc = lac__crc32c(crc, (const uint8_t *)d + from, to - from);
	return lac__crc32c(crc, body, lac__get32(d->body_bytes));
}

/* All but the checksums. */
static void frame_fill(const struct lac__frame_header *h, struct disk_frame *d)
{
	memset(d, 0, sizeof(*d));
	d->magic = lac__put32(FRAME_MAGIC);
	d->body_bytes = lac__put32(h->body_bytes);
	d->seq = lac__put64(h->seq);
	d->offset = lac__put64(h->offset);
	d->first_lsn = lac__put64(h->first_lsn);
	d->watermark = lac__put64(h->watermark);
	d->count = lac__put32(h->count);
	d->epoch = lac__put32(h->epoch);
	d->flags = lac__put32(h->flags);
}

void lac__frame_header_encode(const struct lac__frame_header *h, const struct lac__uuid *uuid,
	const void *body, void *ret_bytes)
{
	struct disk_frame *d = ret_bytes;

	frame_fill(h, d);
	d->body_crc = lac__put32(body_crc(d, uuid, body));
	d->header_crc = lac__put32(header_crc(d, uuid));
}

static int frame_check(const struct lac__frame_header *h, uint64_t segment_bytes, uint32_t reserved,
	struct lac_error *err)
{
	bool marker = h->flags & LAC__FRAME_MARKER;

	if ((h->flags & ~(uint32_t)LAC__FRAME_MARKER) || reserved != 0)
		return LAC__BAD_FIELD(err, "unknown frame flags %" PRIx32, h->flags);
	if (marker != (h->count == 0) || (marker && h->body_bytes != 0))
		return LAC__BAD_FIELD(
			err, "frame of %" PRIu32 " records, flags %" PRIx32, h->count, h->flags);
	if (h->body_bytes % RECORD_ALIGN != 0 ||
		h->body_bytes / LAC__FRAME_RECORD_HEADER < h->count ||
		!lac__range_ok(h->offset, LAC__FRAME_HEADER_BYTES + (uint64_t)h->body_bytes,
			segment_bytes))
		return LAC__BAD_FIELD(err,
			"frame of %" PRIu32 " records in %" PRIu32 " bytes, segment of %" PRIu64,
			h->count, h->body_bytes, segment_bytes);
	if (h->first_lsn < 1 || !lac__range_ok(h->first_lsn, h->count, LAC__LSN_LIMIT) ||
		h->watermark >= h->first_lsn)
		return LAC__BAD_FIELD(err, "first lsn %" PRIu64 ", watermark %" PRIu64,
			h->first_lsn, h->watermark);
	return 0;
}

static void frame_load(const struct disk_frame *d, struct lac__frame_header *ret)
{
	ret->seq = lac__get64(d->seq);
	ret->offset = lac__get64(d->offset);
	ret->epoch = lac__get32(d->epoch);
	ret->flags = lac__get32(d->flags);
	ret->first_lsn = lac__get64(d->first_lsn);
	ret->count = lac__get32(d->count);
	ret->watermark = lac__get64(d->watermark);
	ret->body_bytes = lac__get32(d->body_bytes);
	ret->body_crc = lac__get32(d->body_crc);
}

int lac__frame_header_decode(const void *bytes, const struct lac__uuid *uuid, uint64_t seq,
	uint32_t epoch, uint64_t offset, uint64_t segment_bytes, struct lac__frame_header *ret,
	struct lac_error *err)
{
	const struct disk_frame *d = bytes;
	struct lac__frame_header h;
	uint32_t got, want;
	int rc;

	if (lac__get32(d->magic) != FRAME_MAGIC)
		return lac__error_set(err, -EBADMSG, LAC_REASON_BAD_MAGIC, offset, sizeof(*d),
			"magic %08" PRIx32 ", want %08" PRIx32, lac__get32(d->magic), FRAME_MAGIC);
	want = lac__get32(d->header_crc);
	got = header_crc(d, uuid);
	if (got != want)
		return lac__error_set(err, -EBADMSG, LAC_REASON_BAD_CHECKSUM, offset, sizeof(*d),
			"header crc32c %08" PRIx32 ", want %08" PRIx32, got, want);
	frame_load(d, &h);
	if (h.seq != seq || h.epoch != epoch || h.offset != offset)
		return lac__error_set(err, -EUCLEAN, LAC_REASON_BAD_IDENTITY, offset, sizeof(*d),
			"frame of segment %" PRIu64 ", epoch %" PRIu32 ", offset %" PRIu64
			", want %" PRIu64 ", %" PRIu32 ", %" PRIu64,
			h.seq, h.epoch, h.offset, seq, epoch, offset);
	rc = frame_check(&h, segment_bytes, lac__get32(d->reserved), err);
	if (rc == 0)
		*ret = h;
	return rc;
}

/* The records, one after the other, must end exactly where the body does. */
static int body_walk(const struct lac__frame_header *h, const uint8_t *body, struct lac_error *err)
{
	size_t at = 0, left, length, taken;

	for (uint32_t n = 0; n < h->count; n++) {
		const struct disk_record_head *head = (const void *)(body + at);

		left = h->body_bytes - at;
		if (left < sizeof(*head))
			return LAC__BAD_FIELD(err,
				"record %" PRIu32 " of %" PRIu32 " begins at the end", n, h->count);
		length = lac__get32(head->length);
		if (length > left - sizeof(*head) || lac__get32(head->reserved) != 0)
			return LAC__BAD_FIELD(err, "record %" PRIu32 " at %zu: %zu bytes, %zu left",
				n, at, length, left - sizeof(*head));
		taken = lac__frame_record_bytes(length);
		if (!lac__disk_is_zero(
			    body + at + sizeof(*head) + length, taken - sizeof(*head) - length))
			return LAC__BAD_FIELD(
				err, "record %" PRIu32 " at %zu: padding is not zero", n, at);
		at += taken;
	}
	if (at != h->body_bytes)
		return LAC__BAD_FIELD(err, "%zu bytes after the last record", h->body_bytes - at);
	return 0;
}

int lac__frame_body_verify(const struct lac__frame_header *h, const struct lac__uuid *uuid,
	const void *body, struct lac_error *err)
{
	struct disk_frame d;
	uint32_t got;

	frame_fill(h, &d);
	got = body_crc(&d, uuid, body);
	if (got != h->body_crc)
		return lac__error_set(err, -EBADMSG, LAC_REASON_BAD_CHECKSUM,
			h->offset + LAC__FRAME_HEADER_BYTES, h->body_bytes,
			"body crc32c %08" PRIx32 ", want %08" PRIx32, got, h->body_crc);
	return body_walk(h, body, err);
}

size_t lac__frame_record_bytes(size_t length)
{
	return LAC__FRAME_RECORD_HEADER + lac__round_up(length, RECORD_ALIGN);
}

size_t lac__frame_record_encode(const void *payload, size_t length, void *ret_bytes)
{
	struct disk_record_head *head = ret_bytes;
	uint8_t *at = (uint8_t *)(head + 1);
	size_t taken = lac__frame_record_bytes(length);

	assert(length <= UINT32_MAX);
	head->length = lac__put32((uint32_t)length);
	head->reserved = lac__put32(0);
	if (length > 0)
		memcpy(at, payload, length);
	memset(at + length, 0, taken - sizeof(*head) - length);
	return taken;
}

bool lac__frame_record_next(const struct lac__frame_header *h, const void *body, size_t *position,
	const void **ret_payload, size_t *ret_length)
{
	const struct disk_record_head *head;

	if (*position >= h->body_bytes)
		return false;
	head = (const void *)((const uint8_t *)body + *position);
	*ret_payload = head + 1;
	*ret_length = lac__get32(head->length);
	*position += lac__frame_record_bytes(*ret_length);
	return true;
}
