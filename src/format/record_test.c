/* SPDX-License-Identifier: Apache-2.0 */
/* format/record_test.c - records survive encoding, and nothing out of bounds passes the decoder. */
#include "format/record.h"

#include "format/container.h"
#include "format/format_test.h"
#include "format/limits.h"

#define GRANULE 4096u

static uint8_t bytes[16384];
static size_t length;
static uint32_t ops, pages;

static void begin(uint32_t page_count)
{
	struct lac__record_page page = {{LAC__PAGE_MAP, 3, 0}, 17};

	memset(bytes, 0xee, sizeof(bytes));
	length = LAC__RECORD_HEADER_BYTES;
	ops = 0;
	pages = page_count;
	for (uint32_t i = 0; i < page_count; i++) {
		page.ref.no = i;
		lac__record_page_encode(&page, bytes + length);
		length += LAC__RECORD_PAGE_BYTES;
	}
	lac__record_header_encode(pages, 0, bytes);
}

static void add(const struct lac__op *op)
{
	size_t taken = lac__op_encode(op, bytes + length);

	assert_int_equal(taken, lac__op_bytes(op));
	assert_int_equal(taken % 8, 0);
	length += taken;
	lac__record_header_encode(pages, ++ops, bytes);
}

static int decode(struct lac__record *ret, struct lac_error *err)
{
	/* An allocation of exactly this size lets the sanitizer see a read beyond it. */
	uint8_t *exact = malloc(length ? length : 1);
	int rc;

	assert_non_null(exact);
	memcpy(exact, bytes, length);
	rc = lac__record_decode(exact, length, GRANULE, ret, err);
	free(exact);
	if (rc == 0) {
		rc = lac__record_decode(bytes, length, GRANULE, ret, err);
		assert_int_equal(rc, 0);
	}
	return rc;
}

static struct lac__op put_op(void)
{
	return (struct lac__op){.type = LAC__OP_PUT,
		.id = 5,
		.owner = 99,
		.length = 13,
		.offset = 8192,
		.container = 3,
		.checksum = 0xabcd,
		.distance = 1,
		.generation = 2,
		.slot = 63,
		.turned = 1,
		.has_payload = true,
		.payload = "thirteen byte"};
}

static struct lac__op range_op(uint32_t type)
{
	return (struct lac__op){.type = type, .container = 3, .first = 10, .count = 5};
}

static struct lac__op state_op(uint32_t to)
{
	return (struct lac__op){.type = LAC__OP_CONTAINER, .container = 3, .state = to, .kind = 1};
}

static void same(const struct lac__op *a, const struct lac__op *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->owner, b->owner);
	assert_int_equal(a->length, b->length);
	assert_int_equal(a->offset, b->offset);
	assert_int_equal(a->container, b->container);
	assert_int_equal(a->checksum, b->checksum);
	assert_int_equal(a->distance, b->distance);
	assert_int_equal(a->generation, b->generation);
	assert_int_equal(a->slot, b->slot);
	assert_int_equal(a->turned, b->turned);
	assert_int_equal(a->first, b->first);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->has_payload, b->has_payload);
	if (a->has_payload)
		assert_memory_equal(a->payload, b->payload, a->length);
}

static void test_round_trip(void **state)
{
	struct lac__op in[12] = {put_op(), put_op(), put_op(), put_op()}, out;
	struct lac__record_page page;
	struct lac__op_cursor cursor;
	struct lac__record record;
	uint32_t n = 4;

	(void)state;
	in[1].has_payload = false;
	in[2].length = 0;
	in[2].distance = in[2].slot = 0;
	in[2].offset = 4160;
	in[3].type = LAC__OP_DELETE;
	in[3].checksum = in[3].generation = in[3].slot = 0;
	in[3].has_payload = false;
	in[n++] = range_op(LAC__OP_RESERVE);
	in[n] = range_op(LAC__OP_RELEASE);
	in[n++].turned = 5;
	in[n++] = range_op(LAC__OP_HOLE);
	in[n++] = state_op(LAC__CONTAINER_CREATING);
	in[n++] = (struct lac__op){.type = LAC__OP_HIGH_WATER, .first = 1, .count = 1024};
	in[n++] = (struct lac__op){.type = LAC__OP_RETIRE, .first = 70000};
	begin(2);
	for (uint32_t i = 0; i < n; i++)
		add(&in[i]);
	assert_int_equal(decode(&record, NULL), 0);
	assert_int_equal(record.pages, 2);
	assert_int_equal(record.ops, n);
	lac__record_page_at(&record, 1, &page);
	assert_int_equal(page.ref.kind, LAC__PAGE_MAP);
	assert_int_equal(page.ref.container, 3);
	assert_int_equal(page.ref.no, 1);
	assert_int_equal(page.prev_lsn, 17);
	lac__op_cursor_start(&record, &cursor);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(lac__op_next(&cursor, &out));
		same(&in[i], &out);
	}
	assert_false(lac__op_next(&cursor, &out));
}

static void test_layout(void **state)
{
	struct lac__op op = put_op();

	(void)state;
	begin(1);
	add(&op);
	assert_int_equal(length, 16 + 24 + 64 + 16);
	assert_memory_equal(bytes, "\1\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0", 16);
	assert_memory_equal(bytes + 16, "\2\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\x11\0\0\0", 20);
	assert_memory_equal(bytes + 40, "\1\0\1\0\x50\0\0\0\5\0\0\0\0\0\0\0\x63\0\0\0\0\0\0\0", 24);
	assert_memory_equal(bytes + 64, "\x0d\0\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\3\0\0\0\xcd\xab", 22);
	assert_memory_equal(
		bytes + 88, "\1\0\x3f\0\2\0\0\0\1\0\0\0\0\0\0\0thirteen byte\0\0\0", 32);
}

static void expect(const char *what, int want)
{
	struct lac__record record;
	struct lac_error err = {0};
	int rc = decode(&record, &err);

	if (rc != want)
		fail_msg("%s: %d, want %d: %s", what, rc, want, err.message);
	if (rc < 0)
		assert_true(err.message[0] != '\0' && err.code == rc);
}

/* One operation with one thing wrong. */
static void refuse(const char *what, const struct lac__op *op)
{
	begin(8);
	add(op);
	expect(what, -EUCLEAN);
}

static void test_block_bounds(void **state)
{
	(void)state;
#define WRONG(field, value)                                                                        \
	do {                                                                                       \
		struct lac__op op = put_op();                                                      \
		op.has_payload = false;                                                            \
		op.field = (value);                                                                \
		refuse(#field " " #value, &op);                                                    \
	} while (0)
	WRONG(id, 0);
	WRONG(id, LAC__ID_LIMIT);
	WRONG(length, 0); /* aligned */
	WRONG(length, LAC__LENGTH_MAX_BYTES + 1);
	WRONG(length, UINT64_MAX);
	WRONG(offset, 8192 + 64);
	WRONG(offset, 4096);
	WRONG(offset, LAC__OFFSET_MAX_BYTES);
	WRONG(offset, UINT64_MAX - 4095);
	WRONG(container, 0);
	WRONG(distance, 2);
	WRONG(distance, 0); /* packed at slot 63 */
	WRONG(slot, 64);
	WRONG(slot, 65535);
	WRONG(generation, 0);
	WRONG(turned, 3);
#undef WRONG
#define WRONG(offset_value, length_value)                                                          \
	do {                                                                                       \
		struct lac__op op = put_op();                                                      \
		op.has_payload = false;                                                            \
		op.distance = op.slot = 0;                                                         \
		op.offset = (offset_value);                                                        \
		op.length = (length_value);                                                        \
		refuse("packed " #offset_value ", " #length_value, &op);                           \
	} while (0)
	WRONG(4096, 13);
	WRONG(4161, 13);
	WRONG(0, 13);
	WRONG(LAC__OFFSET_MAX_BYTES - 64, 65);
#undef WRONG
	struct lac__op del = put_op();

	del.type = LAC__OP_DELETE;
	del.has_payload = false;
	del.distance = 65536;
	del.offset = 65537ull * GRANULE;
	refuse("delete at a distance that no entry holds", &del);
}

static void test_range_bounds(void **state)
{
	static const uint32_t types[] = {LAC__OP_RESERVE, LAC__OP_RELEASE, LAC__OP_HOLE};
	struct lac__op op;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		op = range_op(types[i]);
		op.first = 0;
		refuse("range from the header", &op);
		op = range_op(types[i]);
		op.count = 0;
		refuse("empty range", &op);
		op.count = UINT64_MAX;
		refuse("endless range", &op);
		op.first = LAC__OFFSET_MAX_BYTES / GRANULE;
		op.count = 1;
		refuse("range past the end", &op);
		op = range_op(types[i]);
		op.container = 0;
		refuse("range of no container", &op);
	}
	op = range_op(LAC__OP_RELEASE);
	op.turned = 6;
	refuse("release turns too many", &op);
	op = range_op(LAC__OP_HOLE);
	begin(1);
	add(&op);
	bytes[length - 8] = 1;
	expect("hole turns something", -EUCLEAN);
}

static void test_other_bounds(void **state)
{
	struct lac__op op;

	(void)state;
	op = state_op(LAC__CONTAINER_NONE);
	refuse("state none", &op);
	op = state_op(6);
	refuse("state 6", &op);
	op = state_op(LAC__CONTAINER_ACTIVE);
	op.kind = 0;
	refuse("kind 0", &op);
	op.kind = 3;
	refuse("kind 3", &op);
	op.kind = 1;
	op.container = 0;
	refuse("container 0", &op);
	op = (struct lac__op){.type = LAC__OP_HIGH_WATER, .first = 0, .count = 5};
	refuse("ids from 0", &op);
	op.first = 1;
	op.count = 0;
	refuse("no ids", &op);
	op.count = LAC__ID_LIMIT;
	refuse("too many ids", &op);
	op.count = UINT64_MAX;
	refuse("too many ids", &op);
	op = (struct lac__op){.type = LAC__OP_RETIRE, .first = UINT64_MAX};
	refuse("retire a page that can't be", &op);
}

/* More pages than the record lists: an applier would work on for ever. */
static void test_work_bound(void **state)
{
	struct lac__op op = {.type = LAC__OP_HIGH_WATER, .first = 1, .count = UINT64_C(1) << 40};

	(void)state;
	refuse("a record of a few bytes that touches millions of pages", &op);
	op.count = 126 * 8;
	begin(8);
	add(&op);
	expect("a high water of eight pages", 0);
}

/* A byte at `at` of a good record set to value. */
static void patch(const char *what, size_t at, uint8_t value, int want)
{
	struct lac__op op = put_op(), last = range_op(LAC__OP_RESERVE);

	begin(1);
	add(&op);
	add(&last);
	assert_int_equal(length, 160);
	bytes[at] = value;
	expect(what, want);
}

static void test_structure(void **state)
{
	struct lac__op empty = put_op();
	struct lac__record record;

	(void)state;
	patch("untouched", 0, 1, 0);
	patch("version", 0, 2, -EOPNOTSUPP);
	patch("flags", 2, 1, -EUCLEAN);
	patch("reserved", 12, 1, -EUCLEAN);
	patch("too many pages", 7, 0x80, -EUCLEAN);
	patch("one page more", 4, 2, -EUCLEAN);
	patch("too many operations", 11, 0x80, -EUCLEAN);
	patch("one operation more", 8, 3, -EUCLEAN);
	patch("one operation less", 8, 1, -EUCLEAN);
	patch("page kind 0", 16, 0, -EUCLEAN);
	patch("page kind 5", 16, 5, -EUCLEAN);
	patch("map of no container", 20, 0, -EUCLEAN);
	patch("index page of a container", 16, 1, -EUCLEAN);
	patch("page number", 31, 1, -EUCLEAN);
	patch("page lsn", 39, 0xff, -EUCLEAN);
	patch("type 0", 40, 0, -EUCLEAN);
	patch("type 9", 40, 9, -EUCLEAN);
	patch("flag 2", 42, 3, -EUCLEAN);
	patch("payload flag gone", 42, 0, -EUCLEAN);
	patch("size below", 44, 0x48, -EUCLEAN);
	patch("size above", 44, 0x58, -EUCLEAN);
	patch("size 0", 44, 0, -EUCLEAN);
	patch("size far above", 47, 0x80, -EUCLEAN);
	patch("length far above", 71, 0x80, -EUCLEAN);
	patch("length within the padding", 64, 14, 0);
	patch("length beyond the padding", 64, 17, -EUCLEAN);
	patch("padding", 119, 1, -EUCLEAN);
	patch("flags of a range", 122, 1, -EUCLEAN);
	patch("reserved of a range", 132, 1, -EUCLEAN);
	for (size_t cut = 0; cut < 160; cut++) {
		patch("untouched", 0, 1, 0);
		length = cut;
		assert_true(decode(&record, NULL) < 0);
	}
	begin(0);
	expect("nothing in it", 0);
	/* A payload whose length, rounded up, comes round to zero. */
	begin(1);
	empty.distance = empty.slot = 0;
	empty.length = 0;
	add(&empty);
	expect("an empty payload", 0);
	memset(bytes + 64, 0xff, 8);
	expect("a payload of nearly 2^64 bytes", -EUCLEAN);
}

/* Nothing but an error or a record within its bounds, whatever single byte changes. */
static void test_any_byte(void **state)
{
	struct lac__op op = put_op(), last = state_op(LAC__CONTAINER_SEALED), out;
	struct lac__op_cursor cursor;
	struct lac__record record;

	(void)state;
	begin(1);
	add(&op);
	add(&last);
	for (size_t at = 0; at < length; at++) {
		for (unsigned mask = 1; mask < 256; mask++) {
			bytes[at] ^= (uint8_t)mask;
			if (decode(&record, NULL) == 0) {
				uint32_t n = 0;

				lac__op_cursor_start(&record, &cursor);
				while (lac__op_next(&cursor, &out))
					n++;
				assert_int_equal(n, record.ops);
			}
			bytes[at] ^= (uint8_t)mask;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_block_bounds),
		cmocka_unit_test(test_range_bounds),
		cmocka_unit_test(test_other_bounds),
		cmocka_unit_test(test_work_bound),
		cmocka_unit_test(test_structure),
		cmocka_unit_test(test_any_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
