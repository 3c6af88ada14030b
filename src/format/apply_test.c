/* SPDX-License-Identifier: Apache-2.0 */
/* format/apply_test.c - what each operation does to each kind of page, and what it refuses. */
#include "format/container.h"
#include "format/format_test.h"
#include "format/record.h"

#define GRANULE 4096u
#define C	3u /* the container */

static struct lac__page index_page, map, table, retired;

static void page_reset(struct lac__page *page, uint32_t kind, uint32_t container, uint64_t no)
{
	memset(page, 0, sizeof(*page));
	page->ref = (struct lac__page_ref){kind, container, no};
}

static int setup(void **state)
{
	struct lac__table_entry t = {.state = LAC__CONTAINER_ACTIVE,
		.kind = LAC__CONTAINER_ALIGNED,
		.tail_bytes = GRANULE,
		.birth_lsn = 1};

	(void)state;
	page_reset(&index_page, LAC__PAGE_INDEX, 0, 0);
	page_reset(&map, LAC__PAGE_MAP, C, 0);
	page_reset(&table, LAC__PAGE_TABLE, 0, 0);
	page_reset(&retired, LAC__PAGE_RETIRED, 0, 0);
	map.body[0] = LAC__GRANULE_HEADER;
	lac__table_put(&table, C, &t);
	return 0;
}

static int apply(const struct lac__op *op, struct lac__page *page)
{
	struct lac_error err = {0};
	int rc = lac__op_apply(op, GRANULE, 500, page, &err);

	if (rc < 0) {
		assert_int_equal(rc, -EUCLEAN);
		assert_true(err.message[0] != '\0');
	}
	return rc;
}

/* Description in granule 1, payload in granules 2 and 3. */
static struct lac__op block_op(uint32_t type)
{
	return (struct lac__op){.type = type,
		.id = 5,
		.owner = 8,
		.length = 5000,
		.offset = 2 * GRANULE,
		.container = C,
		.checksum = type == LAC__OP_PUT ? 77 : 0,
		.distance = 1,
		.generation = 1};
}

static struct lac__op range_op(uint32_t type, uint64_t first, uint64_t count)
{
	return (struct lac__op){.type = type, .container = C, .first = first, .count = count};
}

static struct lac__table_entry entry_of_table(void)
{
	struct lac__table_entry t;

	assert_int_equal(lac__table_get(&table, C, &t, NULL), 0);
	return t;
}

/* ---- index ---- */

static void test_index(void **state)
{
	struct lac__op put = block_op(LAC__OP_PUT), del = block_op(LAC__OP_DELETE), wrong;
	struct lac__entry e;

	(void)state;
	assert_int_equal(apply(&del, &index_page), -EUCLEAN); /* free */
	assert_int_equal(apply(&put, &index_page), 0);
	assert_int_equal(lac__entry_get(&index_page, 5, &e, NULL), 0);
	assert_int_equal(e.state, LAC__ENTRY_LIVE);
	assert_int_equal(e.container, C);
	assert_int_equal(e.offset, 2 * GRANULE);
	assert_int_equal(e.length, 5000);
	assert_int_equal(e.owner, 8);
	assert_int_equal(e.checksum, 77);
	assert_int_equal(e.distance, 1);
	assert_int_equal(apply(&put, &index_page), -EUCLEAN); /* live */
	for (int field = 0; field < 4; field++) {
		wrong = del;
		if (field == 0)
			wrong.container++;
		else if (field == 1)
			wrong.offset += GRANULE;
		else if (field == 2)
			wrong.length++;
		else
			wrong.distance++;
		assert_int_equal(apply(&wrong, &index_page), -EUCLEAN);
	}
	assert_int_equal(apply(&del, &index_page), 0);
	assert_int_equal(lac__entry_get(&index_page, 5, &e, NULL), 0);
	assert_int_equal(e.state, LAC__ENTRY_DEAD);
	assert_int_equal(apply(&del, &index_page), -EUCLEAN); /* dead */
	assert_int_equal(apply(&put, &index_page), -EUCLEAN); /* never again */
	assert_int_equal(index_page.lsn, 0);
}

static void test_index_elsewhere(void **state)
{
	struct lac__op put = block_op(LAC__OP_PUT);
	struct lac__op high = {.type = LAC__OP_HIGH_WATER, .first = 1, .count = 1000};

	(void)state;
	put.id = 126 + 5;
	assert_int_equal(apply(&put, &index_page), 0);
	assert_int_equal(apply(&high, &index_page), 0);
	assert_true(lac__disk_is_zero(index_page.body, sizeof(index_page.body)));
	/* Bytes that verify as a page but are no entry. */
	put.id = 5;
	index_page.body[5 * 32 + 8] = 5;
	assert_int_equal(apply(&put, &index_page), -EUCLEAN);
}

/* ---- space map: every state against every operation ---- */

enum { X = -1, SAME = -2, UP = -3, DOWN = -4 };

static void check_granule(const struct lac__op *op, uint8_t from, int want)
{
	int rc, to = want == SAME ? from : want == UP ? from + 1 : want == DOWN ? from - 1 : want;

	setup(NULL);
	memset(map.body + 1, from, 8);
	rc = apply(op, &map);
	if (rc != (want == X ? -EUCLEAN : 0) || (rc == 0 && map.body[2] != to))
		fail_msg("operation %u, granule %u: %d, now %u", op->type, from, rc, map.body[2]);
}

static void test_map_states(void **state)
{
	static const uint8_t from[] = {0, 1, 2, 249, 250, 251, 252, 253, 254, 255};
	static const struct {
		uint32_t type;
		int want[10];
	} rows[] = {
		/*                hole  1    2     249   250   resv  dead  head 254 255 */
		{LAC__OP_PUT, {1, UP, UP, UP, X, 1, 1, X, X, X}},
		{LAC__OP_DELETE, {X, 252, DOWN, DOWN, DOWN, X, X, X, X, X}},
		{LAC__OP_RESERVE, {251, X, X, X, X, X, X, X, X, X}},
		{LAC__OP_RELEASE, {252, SAME, SAME, SAME, SAME, 252, SAME, X, X, X}},
		{LAC__OP_HOLE, {X, X, X, X, X, X, 0, X, X, X}},
	};
	struct lac__op op;

	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		op = rows[r].type <= LAC__OP_DELETE ? block_op(rows[r].type)
						    : range_op(rows[r].type, 1, 3);
		for (size_t i = 0; i < sizeof(from); i++)
			check_granule(&op, from[i], rows[r].want[i]);
	}
}

/* Exactly the granules of description and payload, none beside them. */
static void test_map_extent(void **state)
{
	struct lac__op put = block_op(LAC__OP_PUT), packed = block_op(LAC__OP_PUT);
	uint8_t want[8] = {LAC__GRANULE_HEADER, 1, 1, 1};

	(void)state;
	assert_int_equal(apply(&put, &map), 0);
	assert_memory_equal(map.body, want, 8);
	put.offset = 6 * GRANULE;
	put.distance = 5; /* a second block in the same run of descriptions */
	put.length = 1;
	assert_int_equal(apply(&put, &map), 0);
	want[1] = 2;
	want[6] = 1;
	assert_memory_equal(map.body, want, 8);
	packed.distance = 0;
	packed.offset = 7 * GRANULE;
	packed.length = 1;
	assert_int_equal(apply(&packed, &map), 0);
	want[6] = 2;
	want[7] = 1;
	assert_memory_equal(map.body, want, 8);
	assert_int_equal(map.body[8], 0);
	/* Another container's page, or another operation's business. */
	map.ref.container = C + 1;
	assert_int_equal(apply(&packed, &map), 0);
	assert_memory_equal(map.body, want, 8);
}

/* A block across the border of two map pages, its description on the first. */
static void test_map_border(void **state)
{
	struct lac__op put = block_op(LAC__OP_PUT);
	struct lac__page second, third;

	(void)state;
	page_reset(&second, LAC__PAGE_MAP, C, 1);
	page_reset(&third, LAC__PAGE_MAP, C, 2);
	put.offset = (uint64_t)(LAC__MAP_GRANULES - 1) * GRANULE;
	put.distance = 30;
	put.length = 3 * GRANULE;
	memset(map.body + LAC__MAP_GRANULES - 31, LAC__GRANULE_DEAD, 1);
	second.body[1] = LAC__GRANULE_DEAD;
	assert_int_equal(lac__op_turns(&put, GRANULE, &map), 1);
	assert_int_equal(lac__op_turns(&put, GRANULE, &second), 1);
	assert_int_equal(lac__op_turns(&put, GRANULE, &third), 0);
	assert_int_equal(apply(&put, &map), 0);
	assert_int_equal(apply(&put, &second), 0);
	assert_int_equal(apply(&put, &third), 0);
	assert_int_equal(map.body[LAC__MAP_GRANULES - 31], 1);
	assert_int_equal(map.body[LAC__MAP_GRANULES - 30], 0);
	assert_int_equal(map.body[LAC__MAP_GRANULES - 1], 1);
	assert_memory_equal(second.body, "\1\1\0\0", 4);
	assert_true(lac__disk_is_zero(third.body, sizeof(third.body)));
}

static void test_description_offset(void **state)
{
	struct lac__op op = block_op(LAC__OP_PUT);

	(void)state;
	op.slot = 63;
	assert_int_equal(lac__op_description_offset(&op, GRANULE), 2 * GRANULE - 64);
	op.slot = 0;
	assert_int_equal(lac__op_description_offset(&op, GRANULE), GRANULE);
	op.distance = 0;
	assert_int_equal(lac__op_description_offset(&op, GRANULE), 2 * GRANULE - 64);
	op.offset = LAC__OFFSET_MAX_BYTES - 65536;
	op.distance = 1;
	op.slot = 1;
	assert_int_equal(
		lac__op_description_offset(&op, 65536), LAC__OFFSET_MAX_BYTES - 131072 + 64);
}

static void test_turns(void **state)
{
	struct lac__op put = block_op(LAC__OP_PUT), del = block_op(LAC__OP_DELETE);
	struct lac__op release = range_op(LAC__OP_RELEASE, 1, 6);
	static const uint8_t before[] = {LAC__GRANULE_HEADER, LAC__GRANULE_DEAD, 1, 2,
		LAC__GRANULE_DEAD, LAC__GRANULE_RESERVED, 0, 0};

	(void)state;
	memcpy(map.body, before, sizeof(before));
	assert_int_equal(lac__op_turns(&put, GRANULE, &map), 1);     /* granule 1 */
	assert_int_equal(lac__op_turns(&del, GRANULE, &map), 1);     /* granule 2 */
	assert_int_equal(lac__op_turns(&release, GRANULE, &map), 2); /* granules 5, 6 */
	release.count = 7;
	assert_int_equal(lac__op_turns(&release, GRANULE, &map), 3);
	release.type = LAC__OP_HOLE;
	assert_int_equal(lac__op_turns(&release, GRANULE, &map), 0);
	assert_int_equal(lac__op_turns(&put, GRANULE, &table), 0);
	map.ref.container++;
	assert_int_equal(lac__op_turns(&put, GRANULE, &map), 0);
}

static void test_creating_header(void **state)
{
	struct lac__op op = {.type = LAC__OP_CONTAINER,
		.container = C,
		.state = LAC__CONTAINER_CREATING,
		.kind = 1};

	(void)state;
	map.body[0] = 0;
	assert_int_equal(apply(&op, &map), 0);
	assert_int_equal(map.body[0], LAC__GRANULE_HEADER);
	assert_int_equal(map.body[1], 0);
	assert_int_equal(apply(&op, &map), -EUCLEAN);
	op.state = LAC__CONTAINER_ACTIVE;
	assert_int_equal(apply(&op, &map), 0);
	op.state = LAC__CONTAINER_CREATING;
	page_reset(&map, LAC__PAGE_MAP, C, 1);
	assert_int_equal(apply(&op, &map), 0);
	assert_int_equal(map.body[0], 0);
}

/* ---- container table ---- */

static void test_table_states(void **state)
{
	/* rows: from; columns: to CREATING.. GONE; live blocks 0 */
	static const uint8_t allowed[6][6] = {
		[LAC__CONTAINER_NONE] = {0, 1, 0, 0, 0, 0},
		[LAC__CONTAINER_CREATING] = {0, 0, 1, 0, 1, 1},
		[LAC__CONTAINER_ACTIVE] = {0, 0, 0, 1, 1, 0},
		[LAC__CONTAINER_SEALED] = {0, 0, 0, 0, 1, 0},
		[LAC__CONTAINER_DROPPING] = {0, 0, 0, 0, 0, 1},
		[LAC__CONTAINER_GONE] = {0, 0, 0, 0, 0, 0},
	};
	struct lac__op op = {.type = LAC__OP_CONTAINER, .container = C, .kind = 1};
	struct lac__table_entry t;

	(void)state;
	for (uint32_t from = 0; from < 6; from++) {
		for (uint32_t to = 1; to < 6; to++) {
			t = (struct lac__table_entry){.state = from};
			if (from != LAC__CONTAINER_NONE)
				t.kind = 1, t.birth_lsn = 9;
			lac__table_put(&table, C, &t);
			op.state = to;
			if (apply(&op, &table) != (allowed[from][to] ? 0 : -EUCLEAN))
				fail_msg("state %u to %u", from, to);
			if (allowed[from][to])
				assert_int_equal(entry_of_table().state, to);
		}
	}
}

static void test_table_life(void **state)
{
	struct lac__op op = {.type = LAC__OP_CONTAINER, .container = C, .kind = 2};
	struct lac__table_entry t = {0};

	(void)state;
	lac__table_put(&table, C, &t);
	op.state = LAC__CONTAINER_CREATING;
	assert_int_equal(apply(&op, &table), 0);
	t = entry_of_table();
	assert_int_equal(t.kind, 2);
	assert_int_equal(t.birth_lsn, 500);
	assert_int_equal(t.tail_bytes, GRANULE);
	op.state = LAC__CONTAINER_ACTIVE;
	op.kind = 1;
	assert_int_equal(apply(&op, &table), -EUCLEAN); /* the kind never changes */
	op.kind = 2;
	assert_int_equal(apply(&op, &table), 0);
	t = entry_of_table();
	t.live_blocks = 1;
	t.dead_granules = 4;
	lac__table_put(&table, C, &t);
	op.state = LAC__CONTAINER_DROPPING;
	assert_int_equal(apply(&op, &table), -EUCLEAN); /* a block is live */
	t.live_blocks = 0;
	lac__table_put(&table, C, &t);
	assert_int_equal(apply(&op, &table), 0);
	op.state = LAC__CONTAINER_GONE;
	assert_int_equal(apply(&op, &table), 0);
	t = entry_of_table();
	assert_int_equal(t.kind, 2);
	assert_int_equal(t.birth_lsn, 500);
	assert_int_equal(t.tail_bytes + t.dead_granules + t.live_blocks, 0);
	/* Neighbours stay what they were. */
	assert_int_equal(lac__table_get(&table, C + 1, &t, NULL), 0);
	assert_int_equal(t.state, LAC__CONTAINER_NONE);
}

static void test_table_counts(void **state)
{
	struct lac__op put = block_op(LAC__OP_PUT), del = block_op(LAC__OP_DELETE), op;
	struct lac__table_entry t;

	(void)state;
	assert_int_equal(apply(&put, &table), 0);
	t = entry_of_table();
	assert_int_equal(t.live_blocks, 1);
	assert_int_equal(t.live_bytes, 5000);
	assert_int_equal(t.tail_bytes, 4 * GRANULE);
	put.turned = 1;
	assert_int_equal(apply(&put, &table), -EUCLEAN); /* none is dead */
	op = range_op(LAC__OP_RESERVE, 4, 6);
	assert_int_equal(apply(&op, &table), 0);
	assert_int_equal(entry_of_table().tail_bytes, 10 * GRANULE);
	op = range_op(LAC__OP_RELEASE, 4, 6);
	op.turned = 6;
	assert_int_equal(apply(&op, &table), 0);
	assert_int_equal(entry_of_table().dead_granules, 6);
	del.turned = 3;
	assert_int_equal(apply(&del, &table), 0);
	t = entry_of_table();
	assert_int_equal(t.live_blocks + t.live_bytes, 0);
	assert_int_equal(t.dead_granules, 9);
	assert_int_equal(t.tail_bytes, 10 * GRANULE);
	assert_int_equal(apply(&del, &table), -EUCLEAN); /* none is live */
	op = range_op(LAC__OP_HOLE, 1, 9);
	assert_int_equal(apply(&op, &table), 0);
	t = entry_of_table();
	assert_int_equal(t.dead_granules, 0);
	assert_int_equal(t.hole_granules, 9);
	assert_int_equal(apply(&op, &table), -EUCLEAN);
}

static void test_table_packed_tail(void **state)
{
	struct lac__op put = block_op(LAC__OP_PUT);

	(void)state;
	put.distance = 0;
	put.offset = GRANULE + 64;
	put.length = 65;
	assert_int_equal(apply(&put, &table), 0);
	assert_int_equal(entry_of_table().tail_bytes, GRANULE + 64 + 128);
	/* A range below the tail, reserved before, leaves it where it is. */
	put.length = 1;
	assert_int_equal(apply(&put, &table), 0);
	assert_int_equal(entry_of_table().tail_bytes, GRANULE + 64 + 128);
}

static void test_table_permits(void **state)
{
	/* columns: state 0..5 */
	static const struct {
		uint32_t type;
		uint8_t allowed[6];
	} rows[] = {
		{LAC__OP_PUT, {0, 0, 1, 0, 0, 0}},
		{LAC__OP_DELETE, {0, 0, 1, 1, 0, 0}},
		{LAC__OP_RESERVE, {0, 0, 1, 0, 0, 0}},
		{LAC__OP_RELEASE, {0, 0, 1, 1, 1, 0}},
		{LAC__OP_HOLE, {0, 0, 1, 1, 1, 0}},
	};
	struct lac__table_entry t;
	struct lac__op op;

	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		for (uint32_t s = 0; s < 6; s++) {
			t = (struct lac__table_entry){.state = s};
			if (s != LAC__CONTAINER_NONE)
				t.kind = 1, t.birth_lsn = 9;
			if (s != LAC__CONTAINER_NONE && s != LAC__CONTAINER_GONE)
				t.live_bytes = 5000, t.live_blocks = 1, t.dead_granules = 3;
			lac__table_put(&table, C, &t);
			op = rows[r].type <= LAC__OP_DELETE ? block_op(rows[r].type)
							    : range_op(rows[r].type, 1, 3);
			if (apply(&op, &table) != (rows[r].allowed[s] ? 0 : -EUCLEAN))
				fail_msg("operation %u in state %u", op.type, s);
		}
	}
}

/* A page that verifies, but holds no entry, or is none of the four. */
static void test_strange_page(void **state)
{
	struct lac__op put = block_op(LAC__OP_PUT);

	(void)state;
	table.body[C * 64] = 99;
	assert_int_equal(apply(&put, &table), -EUCLEAN);
	map.ref.kind = 5;
	assert_int_equal(apply(&put, &map), -EUCLEAN);
}

static void test_table_overflow(void **state)
{
	struct lac__op put = block_op(LAC__OP_PUT), del = block_op(LAC__OP_DELETE);
	struct lac__table_entry t;

	(void)state;
	assert_int_equal(apply(&put, &table), 0);
	t = entry_of_table();
	t.live_bytes = LAC__OFFSET_MAX_BYTES - 100;
	lac__table_put(&table, C, &t);
	assert_int_equal(apply(&put, &table), -EUCLEAN);
	t.live_bytes = 4000;
	lac__table_put(&table, C, &t);
	assert_int_equal(apply(&del, &table), -EUCLEAN); /* bytes below zero */
	t.live_bytes = 5001;
	lac__table_put(&table, C, &t);
	assert_int_equal(apply(&del, &table), -EUCLEAN); /* bytes without a block */
}

/* ---- retired ---- */

static void test_retired(void **state)
{
	struct lac__op op = {.type = LAC__OP_RETIRE, .first = 11};

	(void)state;
	assert_int_equal(apply(&op, &retired), 0);
	assert_int_equal(retired.body[1], 8);
	assert_int_equal(apply(&op, &retired), -EUCLEAN);
	op.first = LAC__RETIRED_BITS + 12;
	assert_int_equal(apply(&op, &retired), 0);
	assert_int_equal(retired.body[1], 8);
	retired.ref.no = 1;
	assert_int_equal(apply(&op, &retired), 0);
	assert_int_equal(retired.body[1], 24);
	/* RETIRE touches nothing else. */
	op.first = 0;
	assert_int_equal(apply(&op, &index_page), 0);
	assert_int_equal(apply(&op, &map), 0);
	assert_int_equal(apply(&op, &table), 0);
}

/* ---- pages ---- */

struct visited {
	struct lac__page_ref refs[64];
	unsigned count, stop_at;
};

static int collect(void *arg, const struct lac__page_ref *ref)
{
	struct visited *v = arg;

	assert_true(v->count < 64);
	v->refs[v->count++] = *ref;
	return v->count == v->stop_at ? 42 : 0;
}

static void check_pages(const struct lac__op *op, unsigned count, const struct lac__page_ref *want)
{
	struct visited v = {.count = 0};

	assert_int_equal(lac__op_pages(op, GRANULE, collect, &v), 0);
	assert_int_equal(v.count, count);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(v.refs[i].kind, want[i].kind);
		assert_int_equal(v.refs[i].container, want[i].container);
		assert_int_equal(v.refs[i].no, want[i].no);
	}
	v = (struct visited){.stop_at = count};
	assert_int_equal(lac__op_pages(op, GRANULE, collect, &v), 42);
	v = (struct visited){.stop_at = 1};
	assert_int_equal(lac__op_pages(op, GRANULE, collect, &v), 42);
	assert_int_equal(v.count, 1);
}

#define INDEX(n)                                                                                   \
	{                                                                                          \
		LAC__PAGE_INDEX, 0, n                                                              \
	}
#define MAP(n)                                                                                     \
	{                                                                                          \
		LAC__PAGE_MAP, C, n                                                                \
	}
#define TABLE(n)                                                                                   \
	{                                                                                          \
		LAC__PAGE_TABLE, 0, n                                                              \
	}
#define RETIRED(n)                                                                                 \
	{                                                                                          \
		LAC__PAGE_RETIRED, 0, n                                                            \
	}
#define CHECK(op, ...)                                                                             \
	do {                                                                                       \
		const struct lac__page_ref want[] = {__VA_ARGS__};                                 \
		check_pages(&(op), sizeof(want) / sizeof(want[0]), want);                          \
	} while (0)

static void test_pages(void **state)
{
	struct lac__op op = block_op(LAC__OP_PUT);

	(void)state;
	CHECK(op, INDEX(0), MAP(0), TABLE(0));
	op.type = LAC__OP_DELETE;
	op.id = 126;
	op.offset = (uint64_t)(LAC__MAP_GRANULES - 1) * GRANULE;
	CHECK(op, INDEX(1), MAP(0), MAP(1), TABLE(0));
	/* The description alone on the page before. */
	op.offset = (uint64_t)LAC__MAP_GRANULES * GRANULE;
	CHECK(op, INDEX(1), MAP(0), MAP(1), TABLE(0));
	/* Sixteen pages before, and none of those between. */
	op.offset = (uint64_t)LAC__MAP_GRANULES * 20 * GRANULE;
	op.distance = 65535;
	CHECK(op, INDEX(1), MAP(3), MAP(20), TABLE(0));
	op.distance = 0;
	CHECK(op, INDEX(1), MAP(19), MAP(20), TABLE(0));
	op.container = 63;
	op.offset = 8192;
	CHECK(op, INDEX(1), {LAC__PAGE_MAP, 63, 0}, TABLE(1));
	op = range_op(LAC__OP_RESERVE, LAC__MAP_GRANULES - 1, 1);
	CHECK(op, MAP(0), TABLE(0));
	op.count = LAC__MAP_GRANULES + 2;
	CHECK(op, MAP(0), MAP(1), MAP(2), TABLE(0));
	op = (struct lac__op){.type = LAC__OP_CONTAINER, .container = C, .state = 1, .kind = 1};
	CHECK(op, MAP(0), TABLE(0));
	op.state = LAC__CONTAINER_GONE;
	CHECK(op, TABLE(0));
	op = (struct lac__op){.type = LAC__OP_HIGH_WATER, .first = 125, .count = 1};
	CHECK(op, INDEX(0));
	op.count = 2;
	CHECK(op, INDEX(0), INDEX(1));
	op.first = 126;
	op.count = 253;
	CHECK(op, INDEX(1), INDEX(2), INDEX(3));
	op = (struct lac__op){.type = LAC__OP_RETIRE, .first = LAC__RETIRED_BITS};
	CHECK(op, RETIRED(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_index, setup),
		cmocka_unit_test_setup(test_index_elsewhere, setup),
		cmocka_unit_test_setup(test_map_states, setup),
		cmocka_unit_test_setup(test_map_extent, setup),
		cmocka_unit_test_setup(test_map_border, setup),
		cmocka_unit_test_setup(test_description_offset, setup),
		cmocka_unit_test_setup(test_turns, setup),
		cmocka_unit_test_setup(test_creating_header, setup),
		cmocka_unit_test_setup(test_table_states, setup),
		cmocka_unit_test_setup(test_table_life, setup),
		cmocka_unit_test_setup(test_table_counts, setup),
		cmocka_unit_test_setup(test_table_packed_tail, setup),
		cmocka_unit_test_setup(test_table_permits, setup),
		cmocka_unit_test_setup(test_strange_page, setup),
		cmocka_unit_test_setup(test_table_overflow, setup),
		cmocka_unit_test_setup(test_retired, setup),
		cmocka_unit_test_setup(test_pages, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
