/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/mini_test.h - a store by hand, for tests: just enough of a writer to make records, apply
 * them to pages and write those, so that one thing can be patched and the rest stays right. It
 * uses the layers that check uses, and nothing of the store.
 *
 * A failure in here is a failed test.
 */
#ifndef LAC_CHECK_MINI_TEST_H
#define LAC_CHECK_MINI_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "format/container.h"
#include "format/names.h"
#include "format/record.h"
#include "format/super.h"
#include "io/sim.h"
#include "journal/journal.h"

#define MINI_PAGES   64
#define MINI_GRANULE 4096u

struct mini {
	struct lac_backend *be;
	struct lac__super super;
	struct lac__journal_options journal_options;
	struct lac__journal *journal;
	struct lac__page pages[MINI_PAGES];
	unsigned slot[MINI_PAGES]; /* that the next checkpoint writes */
	bool dirty[MINI_PAGES];
	unsigned count;
	uint64_t lsn;
	uint64_t prev[MINI_PAGES]; /* LSN before the record at hand; UINT64_MAX = not touched */
};

static inline void mini_write(
	struct lac_backend *be, const char *path, uint64_t offset, const void *bytes, size_t length)
{
	struct lac_file *file;

	assert_int_equal(lac__open(be, path, LAC_OPEN_WRITE | LAC_OPEN_CREATE, &file), 0);
	assert_int_equal(lac__write_full(file, bytes, length, offset), 0);
	assert_int_equal(lac__sync(file), 0);
	assert_int_equal(lac__close(file), 0);
}

static inline void mini_read(
	struct lac_backend *be, const char *path, uint64_t offset, void *bytes, size_t length)
{
	struct lac_file *file;

	assert_int_equal(lac__open(be, path, 0, &file), 0);
	assert_int_equal(lac__read_full(file, bytes, length, offset), 0);
	assert_int_equal(lac__close(file), 0);
}

static inline void mini_flip(struct lac_backend *be, const char *path, uint64_t offset)
{
	uint8_t byte;

	mini_read(be, path, offset, &byte, 1);
	byte ^= 0x40;
	mini_write(be, path, offset, &byte, 1);
}

static inline void mini_truncate(struct lac_backend *be, const char *path, uint64_t size)
{
	struct lac_file *file;

	assert_int_equal(lac__open(be, path, LAC_OPEN_WRITE, &file), 0);
	assert_int_equal(lac__truncate(file, size), 0);
	assert_int_equal(lac__close(file), 0);
}

static inline void mini_allocate(struct lac_backend *be, const char *path, uint64_t size)
{
	struct lac_file *file;

	assert_int_equal(lac__open(be, path, LAC_OPEN_WRITE, &file), 0);
	assert_int_equal(lac__allocate(file, 0, size), 0);
	assert_int_equal(lac__close(file), 0);
}

/* ---- pages ---- */

static inline unsigned mini_page(struct mini *m, const struct lac__page_ref *ref)
{
	for (unsigned i = 0; i < m->count; i++) {
		const struct lac__page_ref *r = &m->pages[i].ref;

		if (r->kind == ref->kind && r->container == ref->container && r->no == ref->no)
			return i;
	}
	assert_true(m->count < MINI_PAGES);
	memset(&m->pages[m->count], 0, sizeof(m->pages[0]));
	m->pages[m->count].ref = *ref;
	m->slot[m->count] = 0;
	m->dirty[m->count] = false;
	return m->count++;
}

static inline struct lac__page *mini_get(
	struct mini *m, uint32_t kind, uint32_t container, uint64_t no)
{
	const struct lac__page_ref ref = {.kind = kind, .container = container, .no = no};

	return &m->pages[mini_page(m, &ref)];
}

static inline void mini_slot_place(
	const struct lac__page_ref *ref, unsigned slot, char *path, uint64_t *ret_offset)
{
	uint64_t no;

	lac__name_page(ref, path, &no);
	*ret_offset = lac__page_slot_offset(no, slot);
}

static inline void mini_write_slot(
	struct mini *m, const struct lac__page *page, unsigned slot, uint64_t checkpoint)
{
	uint8_t bytes[LAC__PAGE_BYTES];
	char path[LAC__NAME_BYTES];
	uint64_t offset;

	mini_slot_place(&page->ref, slot, path, &offset);
	lac__page_encode(page, &m->super.uuid, checkpoint, bytes);
	mini_write(m->be, path, offset, bytes, sizeof(bytes));
}

/* The base slot written again after a patch of the page in memory. */
static inline void mini_rewrite(struct mini *m, const struct lac__page *page)
{
	unsigned i = (unsigned)(page - m->pages);

	mini_write_slot(m, page, 1 - m->slot[i], m->super.checkpoint);
}

/* ---- records ---- */

static inline int mini_touch(void *arg, const struct lac__page_ref *ref)
{
	struct mini *m = arg;
	unsigned i = mini_page(m, ref);

	if (m->prev[i] == UINT64_MAX)
		m->prev[i] = m->pages[i].lsn;
	return 0;
}

static inline size_t mini_encode(
	struct mini *m, const struct lac__op *ops, unsigned count, uint8_t *bytes)
{
	unsigned pages = 0;
	size_t at = LAC__RECORD_HEADER_BYTES;

	for (unsigned i = 0; i < m->count; i++) {
		struct lac__record_page page = {m->pages[i].ref, m->prev[i]};

		if (m->prev[i] == UINT64_MAX)
			continue;
		lac__record_page_encode(&page, bytes + at);
		at += LAC__RECORD_PAGE_BYTES;
		pages++;
	}
	for (unsigned i = 0; i < count; i++)
		at += lac__op_encode(&ops[i], bytes + at);
	lac__record_header_encode(pages, count, bytes);
	return at;
}

/* One transaction: to the journal, durable, and applied to the pages. */
static inline void mini_commit(struct mini *m, struct lac__op *ops, unsigned count)
{
	size_t length, room = 65536;
	uint8_t *bytes;

	for (unsigned i = 0; i < MINI_PAGES; i++)
		m->prev[i] = UINT64_MAX;
	m->lsn++;
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(lac__op_pages(&ops[i], MINI_GRANULE, mini_touch, m), 0);
		ops[i].turned = 0;
		for (unsigned p = 0; p < m->count; p++)
			ops[i].turned += lac__op_turns(&ops[i], MINI_GRANULE, &m->pages[p]);
		for (unsigned p = 0; p < m->count; p++) {
			struct lac_error why = {0};

			if (m->prev[p] != UINT64_MAX && lac__op_apply(&ops[i], MINI_GRANULE, m->lsn,
								&m->pages[p], &why) < 0)
				fail_msg("apply: %s", why.message);
		}
		room += lac__op_bytes(&ops[i]);
	}
	bytes = calloc(1, room);
	assert_non_null(bytes);
	length = mini_encode(m, ops, count, bytes);
	assert_int_equal(
		lac__journal_append(m->journal, bytes, length, 0, &(uint64_t){0}, NULL), 0);
	assert_int_equal(lac__journal_wait(m->journal, m->lsn, NULL), 0);
	free(bytes);
	for (unsigned i = 0; i < m->count; i++) {
		if (m->prev[i] == UINT64_MAX)
			continue;
		m->pages[i].lsn = m->lsn;
		m->dirty[i] = true;
	}
}

/* ---- checkpoints ---- */

static inline void mini_write_super(struct mini *m)
{
	uint8_t page[LAC__PAGE_BYTES];

	lac__super_encode(&m->super, page);
	mini_write(m->be, LAC__NAME_SUPER, (uint64_t)m->super.copy * LAC__SLOT_STRIDE_BYTES, page,
		sizeof(page));
	mini_allocate(m->be, LAC__NAME_SUPER, LAC__SUPER_FILE_BYTES);
}

static inline void mini_checkpoint(struct mini *m, bool clean)
{
	m->super.checkpoint++;
	for (unsigned i = 0; i < m->count; i++) {
		if (!m->dirty[i])
			continue;
		mini_write_slot(m, &m->pages[i], m->slot[i], m->super.checkpoint);
		m->slot[i] = 1 - m->slot[i];
		m->dirty[i] = false;
	}
	m->super.copy = 1 - m->super.copy;
	m->super.redo_lsn = m->lsn + 1;
	m->super.max_page_lsn = m->lsn;
	m->super.flags = clean ? LAC__SUPER_CLEAN : 0;
	m->super.end_lsn = clean ? m->lsn : 0;
	m->super.journal_seq = lac__journal_seq_of(m->journal, m->lsn + 1);
	mini_write_super(m);
}

/* ---- containers and blocks ---- */

static inline void mini_container(struct mini *m, uint32_t id, uint32_t kind)
{
	struct lac__op op = {.type = LAC__OP_CONTAINER,
		.container = id,
		.kind = kind,
		.state = LAC__CONTAINER_CREATING};
	struct lac__container_header header = {.uuid = m->super.uuid,
		.container = id,
		.kind = kind,
		.granule_bytes = MINI_GRANULE};
	uint8_t page[LAC__PAGE_BYTES];
	char path[LAC__NAME_BYTES];

	mini_commit(m, &op, 1);
	header.birth_lsn = m->lsn;
	lac__container_header_encode(&header, page);
	lac__name_container(id, path);
	mini_write(m->be, path, 0, page, sizeof(page));
	op.state = LAC__CONTAINER_ACTIVE;
	mini_commit(m, &op, 1);
}

static inline uint8_t mini_byte(uint64_t id, uint64_t at)
{
	return (uint8_t)(id * 131 + at * 7 + (at >> 8) + 1);
}

/* The operation that puts block id there; its bytes are written to the container. */
static inline struct lac__op mini_block(struct mini *m, uint64_t id, uint32_t container,
	uint64_t offset, uint64_t length, uint32_t distance)
{
	const uint32_t seed = lac__block_seed(&m->super.uuid, id);
	const uint64_t stored = lac__stored_bytes(length), chunks = lac__chunk_count(length);
	uint64_t own = distance ? offset - (uint64_t)distance * MINI_GRANULE : offset - 64;
	struct lac__description d = {.uuid = m->super.uuid,
		.id = id,
		.owner = 7,
		.length = length,
		.offset = offset,
		.generation = 1};
	uint8_t *bytes = calloc(1, stored + 1), description[64];
	char path[LAC__NAME_BYTES];

	for (uint64_t i = 0; i < length; i++)
		bytes[i] = mini_byte(id, i);
	for (uint64_t i = 0; i < chunks; i++) {
		uint64_t at = i * LAC__CHUNK_BYTES, left = length - at;

		lac__chunk_table_put(bytes + lac__chunk_table_offset(length), i,
			lac__chunk_checksum(seed, i, bytes + at,
				left < LAC__CHUNK_BYTES ? left : LAC__CHUNK_BYTES));
	}
	d.checksum =
		chunks ? lac__block_checksum(seed, length, bytes + lac__chunk_table_offset(length),
				 lac__chunk_table_bytes(length))
		       : lac__block_checksum(seed, length, bytes, length);
	if (distance) /* one slot for each id, so that some share a granule */
		own += id % (MINI_GRANULE / 64) * 64;
	lac__description_encode(&d, container, own, description);
	lac__name_container(container, path);
	mini_write(m->be, path, own, description, sizeof(description));
	if (stored)
		mini_write(m->be, path, offset, bytes, stored);
	free(bytes);
	return (struct lac__op){.type = LAC__OP_PUT,
		.id = id,
		.owner = 7,
		.length = length,
		.offset = offset,
		.container = container,
		.checksum = d.checksum,
		.distance = distance,
		.generation = 1};
}

static inline struct lac__op mini_delete(const struct lac__op *put)
{
	struct lac__op op = *put;

	op.type = LAC__OP_DELETE;
	op.has_payload = false;
	return op;
}

static inline void mini_high_water(struct mini *m, uint64_t first, uint64_t count)
{
	struct lac__op op = {.type = LAC__OP_HIGH_WATER, .first = first, .count = count};

	mini_commit(m, &op, 1);
}

/* ---- life ---- */

static inline struct mini *mini_new(void)
{
	static const char *const dirs[] = {
		LAC__NAME_JOURNAL, LAC__NAME_INDEX, LAC__NAME_SPACE, LAC__NAME_DATA};
	struct mini *m = calloc(1, sizeof(*m));
	struct lac__jscan_end end = {.next_seq = 1, .seq = 1};

	assert_non_null(m);
	assert_int_equal(lac__sim_new(NULL, &m->be), 0);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		assert_int_equal(m->be->ops->make_dir(m->be, dirs[i]), 0);
	memset(&m->super.uuid, 0x5a, sizeof(m->super.uuid));
	m->super.granule_bytes = MINI_GRANULE;
	m->super.id_high_water = 1;
	m->super.next_id = 1;
	m->super.next_container = 1;
	m->super.inline_max_bytes = 65536;
	m->super.container_bytes = UINT64_C(1) << 30;
	m->super.segment_bytes = 65536;
	m->super.journal_seq = 1;
	m->super.redo_lsn = 1;
	m->super.reclaim_unit_bytes = MINI_GRANULE;
	m->journal_options = (struct lac__journal_options){.uuid = m->super.uuid,
		.segment_bytes = 65536,
		.segments_min = 3,
		.ready_target = 1,
		.tear_bytes = 512,
		.record_bytes_max = LAC__RECORD_BYTES_MAX};
	assert_int_equal(
		lac__journal_create(m->be, LAC__NAME_JOURNAL, &m->journal_options, NULL), 0);
	assert_int_equal(lac__journal_start(m->be, LAC__NAME_JOURNAL, &m->journal_options, &end, 1,
				 NULL, NULL, &m->journal, NULL),
		0);
	return m;
}

static inline void mini_free(struct mini *m)
{
	lac__journal_close(m->journal);
	lac__sim_free(m->be);
	free(m);
}

#endif
