/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz/fuzz_frame.c - a segment: its header, then frames as long as they verify.
 *
 * Input: mode, bytes of the segment header page (72, the rest is zero), then what follows the page.
 */
#include "format/frame.h"

#include "base/checked.h"
#include "fuzz.h"

#define SEQ 4u

/* Makes both checksums of a frame right, if its body is there. */
static void seal_frame(uint8_t *at, size_t left)
{
	uint32_t crc = lac__crc32c(0, fuzz_uuid.b, sizeof(fuzz_uuid.b)), body_bytes;
	lac_le32 le;

	memcpy(&le, at + 12, sizeof(le));
	body_bytes = lac__get32(le);
	if (body_bytes <= left - LAC__FRAME_HEADER_BYTES)
		fuzz_store32(at, 8,
			lac__crc32c(lac__crc32c(crc, at + 16, 40), at + LAC__FRAME_HEADER_BYTES,
				body_bytes));
	fuzz_store32(at, 4, lac__crc32c(crc, at + 8, LAC__FRAME_HEADER_BYTES - 8));
}

/* The records of a body, encoded again, are the body. */
static void check_records(const struct lac__frame_header *h, const uint8_t *body)
{
	size_t position = 0, length, start;
	const void *payload;
	uint32_t count = 0;
	uint8_t *again;

	for (;;) {
		start = position;
		if (!lac__frame_record_next(h, body, &position, &payload, &length))
			break;
		count++;
		MUST(position <= h->body_bytes && position > start);
		again = malloc(position - start);
		MUST(again != NULL);
		MUST(lac__frame_record_encode(payload, length, again) == position - start);
		MUST(memcmp(again, body + start, position - start) == 0);
		free(again);
	}
	MUST(position == h->body_bytes && count == h->count);
}

static void walk(const struct lac__segment_header *segment, uint8_t *bytes, size_t size, bool seal)
{
	uint8_t again[LAC__FRAME_HEADER_BYTES];
	struct lac__frame_header h;
	struct lac_error err;
	size_t at = 0;
	int rc;

	while (size - at >= LAC__FRAME_HEADER_BYTES) {
		if (seal)
			seal_frame(bytes + at, size - at);
		rc = lac__frame_header_decode(bytes + at, &fuzz_uuid, SEQ, segment->epoch,
			LAC__PAGE_BYTES + at, segment->segment_bytes, &h, &err);
		if (rc < 0) {
			fuzz_error(rc, &err);
			return;
		}
		MUST(lac__range_ok(h.offset, LAC__FRAME_HEADER_BYTES + (uint64_t)h.body_bytes,
			segment->segment_bytes));
		if (h.body_bytes > size - at - LAC__FRAME_HEADER_BYTES)
			return;
		rc = lac__frame_body_verify(
			&h, &fuzz_uuid, bytes + at + LAC__FRAME_HEADER_BYTES, &err);
		if (rc < 0) {
			fuzz_error(rc, &err);
			return;
		}
		check_records(&h, bytes + at + LAC__FRAME_HEADER_BYTES);
		lac__frame_header_encode(
			&h, &fuzz_uuid, bytes + at + LAC__FRAME_HEADER_BYTES, again);
		MUST(memcmp(again, bytes + at, sizeof(again)) == 0);
		at = lac__round_up(
			at + LAC__FRAME_HEADER_BYTES + h.body_bytes, segment->tear_bytes);
		if (at > size)
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t mode = fuzz_mode(&data, &size), page[LAC__PAGE_BYTES] = {0}, again[LAC__PAGE_BYTES];
	struct lac__segment_header h;
	struct lac_error err;
	uint8_t *rest;
	int rc;

	fuzz_take(&data, &size, page, 72);
	if (mode & FUZZ_SEAL)
		fuzz_seal_page(page, 8);
	rc = lac__segment_header_decode(page, &fuzz_uuid, SEQ, &h, &err);
	if (rc < 0) {
		fuzz_error(rc, &err);
		return 0;
	}
	lac__segment_header_encode(&h, again);
	MUST(memcmp(page, again, sizeof(page)) == 0);
	rest = malloc(size + 1);
	MUST(rest != NULL);
	memcpy(rest, data, size);
	walk(&h, rest, size, mode & FUZZ_SEAL);
	free(rest);
	return 0;
}
