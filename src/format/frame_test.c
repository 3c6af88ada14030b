/* SPDX-License-Identifier: Apache-2.0 */
/* format/frame_test.c - segment headers and frames: stale, foreign and damaged ones are refused. */
#include "format/frame.h"

#include "base/crc32c.h"
#include "format/format_test.h"

#define SEGMENT (UINT64_C(1) << 20)

static struct lac__segment_header segment;
static struct lac__frame_header frame;
static uint8_t page[LAC__PAGE_BYTES], head[LAC__FRAME_HEADER_BYTES], body[256];

static int setup(void **state)
{
	size_t at = 0;

	(void)state;
	segment = (struct lac__segment_header){test_uuid, 9, 2, 512, SEGMENT, 1000, 999};
	lac__segment_header_encode(&segment, page);
	memset(body, 0xee, sizeof(body));
	at += lac__frame_record_encode("first", 5, body + at);
	at += lac__frame_record_encode("", 0, body + at);
	at += lac__frame_record_encode("the third", 9, body + at);
	frame = (struct lac__frame_header){.seq = 9,
		.offset = 8192,
		.epoch = 2,
		.first_lsn = 1000,
		.count = 3,
		.watermark = 998,
		.body_bytes = (uint32_t)at};
	lac__frame_header_encode(&frame, &test_uuid, body, head);
	return 0;
}

static int decode_segment(const void *bytes, struct lac_error *err)
{
	struct lac__segment_header out;

	return lac__segment_header_decode(bytes, &test_uuid, 9, &out, err);
}

static int decode_frame(const void *bytes, struct lac_error *err)
{
	struct lac__frame_header out;

	return lac__frame_header_decode(bytes, &test_uuid, 9, 2, 8192, SEGMENT, &out, err);
}

static int verify_body(const void *bytes, struct lac_error *err)
{
	struct lac__frame_header out;

	assert_int_equal(
		lac__frame_header_decode(head, &test_uuid, 9, 2, 8192, SEGMENT, &out, err), 0);
	return lac__frame_body_verify(&out, &test_uuid, bytes, err);
}

static void test_segment(void **state)
{
	struct lac__segment_header out;
	struct lac_error err;

	(void)state;
	assert_int_equal(lac__segment_header_decode(page, &test_uuid, 9, &out, NULL), 0);
	assert_int_equal(out.seq, 9);
	assert_int_equal(out.epoch, 2);
	assert_int_equal(out.tear_bytes, 512);
	assert_int_equal(out.segment_bytes, SEGMENT);
	assert_int_equal(out.first_lsn, 1000);
	assert_int_equal(out.prev_last_lsn, 999);
	assert_memory_equal(page, "LACJSEG1", 8);
	assert_memory_equal(page + 32, "\x09\0\0\0\0\0\0\0\2\0\0\0\0\2\0\0\0\0\x10\0\0\0\0\0", 24);
	check_every_byte(page, sizeof(page), decode_segment);
	/* Recycled, or of another log. */
	assert_int_equal(lac__segment_header_decode(page, &test_uuid, 10, &out, &err), -EUCLEAN);
	assert_int_equal(err.reason, LAC_REASON_BAD_IDENTITY);
	assert_int_equal(lac__segment_header_decode(page, &other_uuid, 9, &out, &err), -EUCLEAN);
	assert_int_equal(err.reason, LAC_REASON_BAD_IDENTITY);
	memset(page, 0, sizeof(page));
	assert_int_equal(decode_segment(page, &err), -EBADMSG);
	assert_int_equal(err.reason, LAC_REASON_BAD_MAGIC);
}

static void refuse_segment(size_t at, uint64_t value, int bytes)
{
	struct lac_error err;

	lac__segment_header_encode(&segment, page);
	if (bytes == 4)
		store32(page, at, (uint32_t)value);
	else
		store64(page, at, value);
	reseal(page, 8);
	if (decode_segment(page, &err) != -EUCLEAN || err.reason != LAC_REASON_BAD_FIELD)
		fail_msg("field at %zu: %s", at, err.message);
}

static void test_segment_bounds(void **state)
{
	(void)state;
	refuse_segment(44, 256, 4);
	refuse_segment(44, 513, 4);
	refuse_segment(44, 131072, 4);
	refuse_segment(48, 4096, 8);
	refuse_segment(48, SEGMENT + 512, 8);
	refuse_segment(48, UINT64_MAX - 4095, 8);
	refuse_segment(56, 0, 8);
	refuse_segment(56, 999, 8);
	refuse_segment(56, UINT64_MAX, 8);
	refuse_segment(64, 1000, 8);
	refuse_segment(72, 1, 4);
	refuse_segment(4092, 1, 4);
	store32(page, 12, 2);
	reseal(page, 8);
	assert_int_equal(decode_segment(page, NULL), -EOPNOTSUPP);
	/* A number that is what was asked for, but no number of a segment. */
	segment.seq = 0;
	lac__segment_header_encode(&segment, page);
	assert_int_equal(lac__segment_header_decode(page, &test_uuid, 0, &segment, NULL), -EUCLEAN);
}

static void test_frame(void **state)
{
	static const char *const want[] = {"first", "", "the third"};
	struct lac__frame_header out;
	const void *payload;
	size_t at = 0, length;

	(void)state;
	assert_int_equal(
		lac__frame_header_decode(head, &test_uuid, 9, 2, 8192, SEGMENT, &out, NULL), 0);
	assert_int_equal(out.seq, 9);
	assert_int_equal(out.offset, 8192);
	assert_int_equal(out.epoch, 2);
	assert_int_equal(out.flags, 0);
	assert_int_equal(out.first_lsn, 1000);
	assert_int_equal(out.count, 3);
	assert_int_equal(out.watermark, 998);
	assert_int_equal(out.body_bytes, 16 + 8 + 24);
	assert_int_equal(lac__frame_body_verify(&out, &test_uuid, body, NULL), 0);
	for (int i = 0; i < 3; i++) {
		assert_true(lac__frame_record_next(&out, body, &at, &payload, &length));
		assert_int_equal(length, strlen(want[i]));
		assert_memory_equal(payload, want[i], length);
	}
	assert_false(lac__frame_record_next(&out, body, &at, &payload, &length));
	assert_int_equal(lac__frame_record_bytes(0), 8);
	assert_int_equal(lac__frame_record_bytes(1), 16);
	assert_int_equal(lac__frame_record_bytes(8), 16);
	assert_int_equal(lac__frame_record_bytes(9), 24);
	assert_memory_equal(head, "LJFR", 4);
	assert_memory_equal(head + 12, "\x30\0\0\0\x09\0\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\xe8\3", 22);
	assert_memory_equal(head + 48, "\3\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0", 16);
}

static void test_frame_every_byte(void **state)
{
	(void)state;
	check_every_byte(head, sizeof(head), decode_frame);
	check_every_byte(body, frame.body_bytes, verify_body);
}

/* A frame that is whole, but of another place, time or log. */
static void test_stale(void **state)
{
	struct lac__frame_header out;
	struct lac_error err;

	(void)state;
#define STALE(uuid, seq, epoch, offset, want)                                                      \
	assert_int_equal(                                                                          \
		lac__frame_header_decode(head, uuid, seq, epoch, offset, SEGMENT, &out, &err),     \
		want)
	STALE(&test_uuid, 10, 2, 8192, -EUCLEAN);
	assert_int_equal(err.reason, LAC_REASON_BAD_IDENTITY);
	STALE(&test_uuid, 9, 3, 8192, -EUCLEAN);
	assert_int_equal(err.reason, LAC_REASON_BAD_IDENTITY);
	STALE(&test_uuid, 9, 2, 8704, -EUCLEAN);
	assert_int_equal(err.reason, LAC_REASON_BAD_IDENTITY);
	STALE(&other_uuid, 9, 2, 8192, -EBADMSG);
#undef STALE
	/* A body does not pass under the header of another frame with the same records. */
	frame.first_lsn++;
	lac__frame_header_encode(&frame, &test_uuid, body, head);
	assert_int_equal(decode_frame(head, NULL), 0);
	out = frame;
	assert_int_equal(
		lac__frame_header_decode(head, &test_uuid, 9, 2, 8192, SEGMENT, &frame, NULL), 0);
	frame.first_lsn--;
	assert_int_equal(lac__frame_body_verify(&frame, &test_uuid, body, NULL), -EBADMSG);
	memset(head, 0, sizeof(head));
	assert_int_equal(decode_frame(head, &err), -EBADMSG);
	assert_int_equal(err.reason, LAC_REASON_BAD_MAGIC);
}

static void refuse_frame(const char *what, const struct lac__frame_header *h)
{
	struct lac_error err;

	/* The body's checksum is no matter of the header, and its length may be a lie. */
	struct lac__frame_header lie = *h;
	uint8_t none[8] = {0};
	lac_le32 crc;

	lie.body_bytes = 0;
	lac__frame_header_encode(&lie, &test_uuid, none, head);
	store32(head, 12, h->body_bytes);
	crc = lac__put32(lac__crc32c(
		lac__crc32c(0, test_uuid.b, sizeof(test_uuid.b)), head + 8, sizeof(head) - 8));
	memcpy(head + 4, &crc, sizeof(crc));
	if (decode_frame(head, &err) != -EUCLEAN || err.reason != LAC_REASON_BAD_FIELD)
		fail_msg("%s: %s", what, err.message);
}

static void test_frame_bounds(void **state)
{
	struct lac__frame_header h;

	(void)state;
#define REFUSE(field, value)                                                                       \
	h = frame;                                                                                 \
	h.field = (value);                                                                         \
	refuse_frame(#field " " #value, &h)
	REFUSE(flags, 2);
	REFUSE(flags, LAC__FRAME_MARKER);
	REFUSE(count, 0);
	REFUSE(count, 7);
	REFUSE(count, UINT32_MAX);
	REFUSE(body_bytes, 44);
	REFUSE(body_bytes, (uint32_t)SEGMENT - 8192);
	REFUSE(body_bytes, UINT32_MAX - 7);
	REFUSE(first_lsn, 0);
	REFUSE(first_lsn, UINT64_MAX);
	REFUSE(watermark, 1000);
	REFUSE(watermark, UINT64_MAX);
#undef REFUSE
}

static void test_marker(void **state)
{
	struct lac__frame_header h = {.seq = 9,
		.offset = 8192,
		.epoch = 2,
		.flags = LAC__FRAME_MARKER,
		.first_lsn = 1003,
		.watermark = 1002};
	const void *payload;
	size_t at = 0, length;

	(void)state;
	lac__frame_header_encode(&h, &test_uuid, NULL, head);
	assert_int_equal(
		lac__frame_header_decode(head, &test_uuid, 9, 2, 8192, SEGMENT, &h, NULL), 0);
	assert_int_equal(lac__frame_body_verify(&h, &test_uuid, NULL, NULL), 0);
	assert_false(lac__frame_record_next(&h, NULL, &at, &payload, &length));
	h.body_bytes = 8;
	refuse_frame("marker with a body", &h);
}

/* Records that do not fill the body exactly, with its checksum made right. */
static void refuse_body(const char *what, size_t at, uint8_t value)
{
	struct lac_error err;

	setup(NULL);
	body[at] = value;
	lac__frame_header_encode(&frame, &test_uuid, body, head);
	if (verify_body(body, &err) != -EUCLEAN)
		fail_msg("%s passes", what);
}

static void test_body_bounds(void **state)
{
	(void)state;
	refuse_body("length beyond the body", 3, 0xff);
	refuse_body("length that swallows the next record", 0, 9);
	refuse_body("reserved", 4, 1);
	refuse_body("padding", 15, 1);
	refuse_body("last record shorter", 24, 8);
	refuse_body("last record longer", 24, 17);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_segment, setup),
		cmocka_unit_test_setup(test_segment_bounds, setup),
		cmocka_unit_test_setup(test_frame, setup),
		cmocka_unit_test_setup(test_frame_every_byte, setup),
		cmocka_unit_test_setup(test_stale, setup),
		cmocka_unit_test_setup(test_frame_bounds, setup),
		cmocka_unit_test_setup(test_marker, setup),
		cmocka_unit_test_setup(test_body_bounds, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
