/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz/seed.c - writes the seeds: `seed FOLDER` fills FOLDER/super, FOLDER/container, ... They are
 * committed; run it again when the format changes.
 */
#include <stdio.h>

#include "format/block.h"
#include "format/container.h"
#include "format/frame.h"
#include "format/record.h"
#include "format/super.h"
#include "fuzz.h"

static const char *folder;
static uint8_t out[65536];
static size_t used;

static void begin(uint8_t mode)
{
	memset(out, 0, sizeof(out));
	out[0] = mode;
	used = 1;
}

/* Trailing zeros are left out: targets put them back, where a structure has a fixed size. */
static int finish(const char *target, const char *name, int trim)
{
	char path[4096];
	FILE *file;
	int rc = 0;

	while (trim && used > 1 && out[used - 1] == 0)
		used--;
	snprintf(path, sizeof(path), "%s/%s/%s", folder, target, name);
	file = fopen(path, "wb");
	if (!file || fwrite(out, 1, used, file) != used)
		rc = -1;
	if (file && fclose(file) != 0)
		rc = -1;
	if (rc < 0)
		fprintf(stderr, "seed %s: can't be written\n", path);
	return rc;
}

static int seed_super(const char *name, uint32_t flags)
{
	struct lac__super s = {.uuid = fuzz_uuid,
		.granule_bytes = 4096,
		.copy = 1,
		.flags = flags,
		.checkpoint = 3,
		.redo_lsn = 100,
		.max_page_lsn = 99,
		.end_lsn = flags ? 99 : 0,
		.next_id = 50,
		.id_high_water = 1024,
		.next_container = 3,
		.inline_max_bytes = 65536,
		.container_bytes = 1 << 20,
		.segment_bytes = 1 << 20,
		.journal_seq = 2,
		.created_ns = 1,
		.reclaim_unit_bytes = 4096};

	begin(FUZZ_SEAL | 2);
	lac__super_encode(&s, out + used);
	used += LAC__PAGE_BYTES;
	return finish("super", name, 1);
}

static int seed_container(void)
{
	struct lac__container_header h = {fuzz_uuid, 1, LAC__CONTAINER_PACKED, 4096, 7};

	begin(FUZZ_SEAL);
	lac__container_header_encode(&h, out + used);
	used += LAC__PAGE_BYTES;
	return finish("container", "packed", 1);
}

static int seed_block(const char *name, uint64_t own_offset, uint64_t offset, uint64_t length)
{
	struct lac__description d = {fuzz_uuid, 5, 6, length, offset, 0x1234, 1};
	lac_le64 own = lac__put64(own_offset);

	begin(FUZZ_SEAL);
	memcpy(out + used, &own, sizeof(own));
	used += sizeof(own);
	lac__description_encode(&d, 3, own_offset, out + used);
	used += LAC__DESCRIPTION_BYTES;
	memcpy(out + used, "payload", 7);
	used += 7;
	return finish("block", name, 0);
}

static int seed_page(const char *name, uint32_t kind, uint64_t checkpoint0, uint64_t checkpoint1)
{
	static uint8_t bytes[LAC__PAGE_BYTES];
	struct lac__page page = {.ref = {kind, kind == LAC__PAGE_MAP, 5}, .lsn = 10};
	lac_le64 super = lac__put64(9);

	if (kind == LAC__PAGE_INDEX)
		lac__entry_put(&page, 1,
			&(struct lac__entry){LAC__ENTRY_LIVE, 1, 8192, 5000, 6, 0x1234, 1});
	if (kind == LAC__PAGE_TABLE)
		lac__table_put(&page, 1,
			&(struct lac__table_entry){LAC__CONTAINER_ACTIVE, 1, 8192, 50, 1, 2, 3, 4});
	begin((uint8_t)(FUZZ_SEAL | (kind - 1) << 4 | (kind == LAC__PAGE_MAP) << 6));
	memcpy(out + used, &super, sizeof(super));
	used += sizeof(super);
	for (int s = 0; s < 2; s++) {
		lac__page_encode(&page, &fuzz_uuid, s ? checkpoint1 : checkpoint0, bytes);
		memcpy(out + used, bytes, LAC__PAGE_HEADER_BYTES);
		used += LAC__PAGE_HEADER_BYTES;
	}
	memcpy(out + used, page.body, sizeof(page.body));
	used += sizeof(page.body);
	return finish("page", name, 1);
}

/* One frame of two records, padded to the tear unit, then a marker. */
static int seed_frame(void)
{
	struct lac__segment_header s = {fuzz_uuid, 4, 1, 512, 1 << 20, 10, 9};
	struct lac__frame_header h = {
		.seq = 4, .offset = LAC__PAGE_BYTES, .epoch = 1, .first_lsn = 10, .watermark = 9};
	uint8_t page[LAC__PAGE_BYTES], *body;

	begin(FUZZ_SEAL);
	lac__segment_header_encode(&s, page);
	memcpy(out + used, page, 72);
	used += 72;
	body = out + used + LAC__FRAME_HEADER_BYTES;
	h.body_bytes = (uint32_t)lac__frame_record_encode("one", 3, body);
	h.body_bytes += (uint32_t)lac__frame_record_encode("number two", 10, body + h.body_bytes);
	h.count = 2;
	lac__frame_header_encode(&h, &fuzz_uuid, body, out + used);
	used += 512;
	h = (struct lac__frame_header){.seq = 4,
		.offset = LAC__PAGE_BYTES + 512,
		.epoch = 1,
		.flags = LAC__FRAME_MARKER,
		.first_lsn = 12,
		.watermark = 11};
	lac__frame_header_encode(&h, &fuzz_uuid, NULL, out + used);
	used += LAC__FRAME_HEADER_BYTES;
	return finish("frame", "two", 0);
}

/* Records have no mode: they begin with their own header. */
static int seed_record(const char *name, const struct lac__op *ops, uint32_t count)
{
	static const struct lac__page_ref refs[] = {
		{LAC__PAGE_INDEX, 0, 0}, {LAC__PAGE_MAP, 1, 0}, {LAC__PAGE_TABLE, 0, 0}};
	struct lac__record_page page = {.prev_lsn = 2};

	begin(0);
	lac__record_header_encode(3, count, out);
	used = LAC__RECORD_HEADER_BYTES;
	for (int i = 0; i < 3; i++) {
		page.ref = refs[i];
		lac__record_page_encode(&page, out + used);
		used += LAC__RECORD_PAGE_BYTES;
	}
	for (uint32_t i = 0; i < count; i++)
		used += lac__op_encode(&ops[i], out + used);
	return finish("record", name, 0);
}

#define PLACE .id = 5, .owner = 1, .length = 5000, .offset = 8192, .container = 1, .distance = 1
#define SMALL .id = 6, .owner = 1, .length = 3, .offset = 4160, .container = 2

static int seed_records(void)
{
	static const struct lac__op life[] = {
		{.type = LAC__OP_HIGH_WATER, .first = 1, .count = 100},
		{.type = LAC__OP_RESERVE, .container = 1, .first = 1, .count = 5},
		{.type = LAC__OP_PUT, PLACE, .generation = 1, .slot = 3},
		{.type = LAC__OP_PUT,
			SMALL,
			.generation = 1,
			.has_payload = true,
			.payload = "abc"},
		{.type = LAC__OP_RELEASE, .container = 1, .first = 4, .count = 2},
		{.type = LAC__OP_DELETE, PLACE},
		{.type = LAC__OP_DELETE, SMALL},
		{.type = LAC__OP_HOLE, .container = 1, .first = 1, .count = 5},
		{.type = LAC__OP_RETIRE, .first = 0},
	};
	static const struct lac__op states[] = {
		{.type = LAC__OP_CONTAINER, .container = 3, .state = 1, .kind = 1},
		{.type = LAC__OP_CONTAINER, .container = 3, .state = 2, .kind = 1},
		{.type = LAC__OP_CONTAINER, .container = 3, .state = 3, .kind = 1},
		{.type = LAC__OP_CONTAINER, .container = 3, .state = 4, .kind = 1},
		{.type = LAC__OP_CONTAINER, .container = 3, .state = 5, .kind = 1},
	};

	if (seed_record("life", life, sizeof(life) / sizeof(life[0])) < 0)
		return -1;
	return seed_record("states", states, sizeof(states) / sizeof(states[0]));
}

int main(int argc, char **argv)
{
	int rc = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: seed FOLDER\n");
		return 1;
	}
	folder = argv[1];
	rc |= seed_super("clean", LAC__SUPER_CLEAN);
	rc |= seed_super("running", 0);
	rc |= seed_container();
	rc |= seed_block("packed", 8192, 8256, 300);
	rc |= seed_block("aligned", 4096, 8192, 5000);
	rc |= seed_block("chunks", 4096, 65536, 200000);
	rc |= seed_page("index", LAC__PAGE_INDEX, 8, 9);
	rc |= seed_page("map", LAC__PAGE_MAP, 9, 10);
	rc |= seed_page("table", LAC__PAGE_TABLE, 10, 11);
	rc |= seed_frame();
	rc |= seed_records();
	return rc ? 1 : 0;
}
