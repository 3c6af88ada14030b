/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/check_test.c - one small store made by hand; each test patches one thing and expects
 * exactly the finding that names it. Every check must leave every byte as it was (P6).
 */
#include "check/mini_test.h"

#include "lacuna/check.h"

#define SEEN_MAX 32

struct seen {
	int ids[SEEN_MAX];
	char path[SEEN_MAX][64], text[SEEN_MAX][300];
	uint64_t offset[SEEN_MAX];
	int count, stop_at, phases;
	struct lac_check_result result;
	struct lac_error err;
};

static int on_finding(void *arg, const struct lac_finding *f)
{
	struct seen *s = arg;

	if (s->count < SEEN_MAX) {
		s->ids[s->count] = f->id;
		snprintf(s->path[s->count], sizeof(s->path[0]), "%s", f->path);
		snprintf(s->text[s->count], sizeof(s->text[0]), "%s", f->text);
		s->offset[s->count] = f->offset;
	}
	s->count++;
	return s->count == s->stop_at;
}

static int on_phase(void *arg, const struct lac_phase *phase)
{
	struct seen *s = arg;

	s->phases += phase->end_ns != 0;
	return 0;
}

static int check(struct mini *m, struct seen *s)
{
	const struct lac_check_options options = {.size = sizeof(options),
		.data = true,
		.backend = m->be,
		.finding = on_finding,
		.phase = on_phase,
		.arg = s};
	const int stop_at = s->stop_at;
	uint64_t before = lac__sim_digest(m->be);
	int rc;

	memset(s, 0, sizeof(*s));
	s->stop_at = stop_at;
	rc = lac_check("store", &options, &s->result, &s->err);
	assert_true(lac__sim_digest(m->be) == before);
	assert_int_equal(lac__sim_open_files(m->be, NULL) <= 4, 1); /* the journal's own */
	return rc;
}

static void expect(struct mini *m, struct seen *s, int count, ...)
{
	bool right;
	va_list ap;

	if (check(m, s) != 0)
		fail_msg("%s", s->err.message);
	right = s->count == count;
	va_start(ap, count);
	for (int i = 0; i < count && right; i++)
		right = va_arg(ap, int) == s->ids[i];
	va_end(ap);
	if (right)
		return;
	for (int i = 0; i < s->count && i < SEEN_MAX; i++)
		print_message("%s %s %llu: %s\n", lac_finding_name(s->ids[i]), s->path[i],
			(unsigned long long)s->offset[i], s->text[i]);
	fail_msg("%d findings, want %d", s->count, count);
}

/* ---- the store ---- */

/* Packed blocks 1, 2 (empty), 3 in container 1; aligned 4, 5 (with a chunk table), 6 in
 * container 2. */
static struct lac__op blocks[6];

static struct mini *new_store(void)
{
	struct mini *m = mini_new();

	mini_high_water(m, 1, 300);
	mini_container(m, 1, LAC__CONTAINER_PACKED);
	mini_container(m, 2, LAC__CONTAINER_ALIGNED);
	m->super.id_high_water = 301;
	m->super.next_id = 7;
	m->super.next_container = 3;
	mini_checkpoint(m, false);
	blocks[0] = mini_block(m, 1, 1, 4160, 100, 0);
	blocks[1] = mini_block(m, 2, 1, 4352, 0, 0);
	blocks[2] = mini_block(m, 3, 1, 4416, 1000, 0);
	blocks[3] = mini_block(m, 4, 2, 8192, 5000, 1);
	blocks[4] = mini_block(m, 5, 2, 16384, 300000, 3);
	blocks[5] = mini_block(m, 6, 2, UINT64_C(80) * 4096, 4096, 79);
	mini_commit(m, blocks, 6);
	mini_checkpoint(m, false);
	return m;
}

static int setup(void **state)
{
	*state = new_store();
	return 0;
}

static int teardown(void **state)
{
	mini_free(*state);
	return 0;
}

static void page_place(const struct lac__page *page, unsigned slot, char *path, uint64_t *offset)
{
	mini_slot_place(&page->ref, slot, path, offset);
}

static unsigned base_of(const struct mini *m, const struct lac__page *page)
{
	return 1 - m->slot[page - m->pages];
}

static void flip_base(struct mini *m, const struct lac__page *page)
{
	char path[LAC__NAME_BYTES];
	uint64_t offset;

	page_place(page, base_of(m, page), path, &offset);
	mini_flip(m->be, path, offset + 2000);
}

static struct lac__page *index_page(struct mini *m, uint64_t no)
{
	return mini_get(m, LAC__PAGE_INDEX, 0, no);
}

static struct lac__page *map_page(struct mini *m, uint32_t container)
{
	return mini_get(m, LAC__PAGE_MAP, container, 0);
}

static struct lac__page *table_page(struct mini *m)
{
	return mini_get(m, LAC__PAGE_TABLE, 0, 0);
}

/* ---- nothing wrong ---- */

static void sound(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	expect(m, &s, 0);
	assert_int_equal(s.phases, 6);
	assert_int_equal(s.result.blocks, 6);
	assert_int_equal(s.result.live_bytes, 100 + 1000 + 5000 + 300000 + 4096);
	assert_int_equal(s.result.damages + s.result.fatals + s.result.notes, 0);
	assert_int_equal(s.result.head_lsn, m->lsn);
	assert_int_equal(s.result.max_lsn, m->lsn);
	mini_checkpoint(m, true); /* closed cleanly */
	expect(m, &s, 0);
	assert_int_equal(s.result.head_lsn, m->lsn);
}

static void sound_when_empty(void **state)
{
	struct mini *m = mini_new();
	struct seen s = {0};

	m->super.copy = 1;
	mini_checkpoint(m, true); /* copy 1 was never written */
	expect(m, &s, 0);
	mini_free(m);
}

static void sound_without_options(void **state)
{
	struct lac_error err = {0};

	assert_int_equal(lac_check("/nonexistent/store", NULL, NULL, &err), -ENOENT);
	assert_true(err.message[0] != 0);
}

static void redo_is_no_damage(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};
	struct lac__op op[3];
	uint8_t zeros[LAC__PAGE_BYTES] = {0}, payload[300];

	op[0] = mini_delete(&blocks[3]);
	op[1] = mini_block(m, 7, 1, 5504, sizeof(payload), 0);
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = mini_byte(7, i);
	op[1].has_payload = true;
	op[1].payload = payload;
	mini_commit(m, op, 2);
	/* What the container has is nobody's business before recovery. */
	mini_write(m->be, "data/00000001.lac", 5504, zeros, sizeof(payload));
	expect(m, &s, 2, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_SPACE_WAITS);
	assert_int_equal(s.result.blocks, 6);
	assert_int_equal(s.result.damages + s.result.fatals, 0);
	/* The same, with new index pages and a new container. */
	mini_high_water(m, 301, 300);
	mini_container(m, 3, LAC__CONTAINER_PACKED);
	op[0] = mini_block(m, 400, 3, 4160, 10, 0);
	mini_commit(m, op, 1);
	expect(m, &s, 2, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_SPACE_WAITS);
	assert_int_equal(s.result.blocks, 7);
	mini_checkpoint(m, false);
	m->super.id_high_water = 601;
	m->super.next_container = 4;
	mini_write_super(m);
	mini_write(m->be, "data/00000001.lac", 5504, payload, sizeof(payload));
	expect(m, &s, 1, LAC_FINDING_SPACE_WAITS);
}

/* ---- phase 1 ---- */

static void super_copy_bad(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_flip(m->be, "super", LAC__SLOT_STRIDE_BYTES * (1 - m->super.copy) + 30);
	expect(m, &s, 1, LAC_FINDING_SUPER_COPY_BAD);
	assert_string_equal(s.path[0], "super");
	assert_int_equal(s.offset[0], LAC__SLOT_STRIDE_BYTES * (1 - m->super.copy));
}

static void super_short(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_truncate(m->be, "super", LAC__SLOT_STRIDE_BYTES + 5000);
	expect(m, &s, 1, LAC_FINDING_FILE_SHORT);
}

static void super_lost(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_flip(m->be, "super", 30);
	mini_flip(m->be, "super", LAC__SLOT_STRIDE_BYTES + 30);
	expect(m, &s, 1, LAC_FINDING_SUPER_LOST);
	assert_int_equal(s.result.fatals, 1);
	assert_int_equal(m->be->ops->unlink(m->be, "super"), 0);
	expect(m, &s, 1, LAC_FINDING_SUPER_LOST);
}

static void super_format(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	m->super.incompat = UINT64_C(1) << 40;
	mini_write_super(m);
	expect(m, &s, 1, LAC_FINDING_SUPER_FORMAT);
}

static void super_mismatch(void **state)
{
	struct mini *m = *state;
	struct lac__super own = m->super;
	struct seen s = {0};

	m->super.copy = 1 - m->super.copy;
	m->super.checkpoint--;
	m->super.uuid.b[3] ^= 1;
	mini_write_super(m);
	m->super = own;
	expect(m, &s, 1, LAC_FINDING_SUPER_MISMATCH);
}

static void not_a_store(void **state)
{
	struct seen s = {0};
	struct mini m = {0};

	assert_int_equal(lac__sim_new(NULL, &m.be), 0);
	assert_int_equal(check(&m, &s), -ENOENT);
	assert_int_equal(s.err.reason, LAC_REASON_NOT_A_STORE);
	assert_int_equal(s.count, 0);
	lac__sim_free(m.be);
}

static void file_missing(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	assert_int_equal(m->be->ops->unlink(m->be, "data/00000002.lac"), 0);
	expect(m, &s, 1, LAC_FINDING_FILE_MISSING);
	assert_string_equal(s.path[0], "data/00000002.lac");
}

static void map_missing(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	assert_int_equal(m->be->ops->unlink(m->be, "space/00000001.map"), 0);
	expect(m, &s, 1, LAC_FINDING_FILE_MISSING);
	assert_string_equal(s.path[0], "space/00000001.map");
}

static void table_missing(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	assert_int_equal(m->be->ops->unlink(m->be, "space/table"), 0);
	check(m, &s);
	assert_true(s.result.damages > 0);
	assert_int_equal(s.ids[s.count - 1], LAC_FINDING_ENTRY_CONTAINER);
}

static void file_extra(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_write(m->be, "data/00000009.lac", 0, "x", 1);
	mini_write(m->be, "data/00000003.lac.tmp", 0, "x", 1);
	mini_write(m->be, "space/00000009.map", 0, "x", 1);
	mini_write(m->be, "super.tmp", 0, "x", 1);
	mini_write(m->be, "index/foo", 0, "x", 1);
	mini_write(m->be, "journal/foo", 0, "x", 1);
	mini_write(m->be, "lock", 0, "x", 1);
	expect(m, &s, 6, LAC_FINDING_FILE_EXTRA, LAC_FINDING_FILE_EXTRA, LAC_FINDING_FILE_EXTRA,
		LAC_FINDING_FILE_EXTRA, LAC_FINDING_FILE_EXTRA, LAC_FINDING_FILE_EXTRA);
	assert_int_equal(s.result.notes, 6);
}

static void file_short(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_truncate(m->be, "data/00000002.lac", UINT64_C(80) * 4096 + 4095);
	expect(m, &s, 1, LAC_FINDING_FILE_SHORT);
	mini_truncate(m->be, "data/00000002.lac", 100);
	expect(m, &s, 2, LAC_FINDING_FILE_SHORT, LAC_FINDING_FILE_SHORT);
}

static void file_unreadable(void **state)
{
	struct mini *m = *state;
	struct lac__page *index = index_page(m, 2);
	char path[LAC__NAME_BYTES];
	struct seen s = {0};
	uint64_t offset;

	page_place(index, base_of(m, index), path, &offset);
	assert_int_equal(lac__sim_unreadable(m->be, path, offset, 512), 0);
	expect(m, &s, 1, LAC_FINDING_FILE_UNREADABLE);
	assert_int_equal(s.offset[0], offset);
	assert_int_equal(lac__sim_unreadable(m->be, "data/00000002.lac", 20000, 512), 0);
	expect(m, &s, 2, LAC_FINDING_FILE_UNREADABLE, LAC_FINDING_FILE_UNREADABLE);
}

/* A lack of our own is no damage, at whatever call it strikes (P13). */
static void our_lack_is_no_damage(void **state)
{
	static const int64_t lacks[] = {EMFILE, ENOMEM, EACCES};
	static const enum lac__sim_op kinds[] = {LAC__SIM_OPEN, LAC__SIM_LIST, LAC__SIM_READ};
	struct mini *m = *state;

	for (unsigned k = 0; k < 3; k++) {
		for (uint64_t n = 0;; n++) {
			const uint64_t before = lac__sim_struck(m->be);
			struct seen s = {0};
			int rc;

			assert_true(lac__sim_arm(
				m->be, kinds[k], NULL, n, true, LAC__SIM_ERRNO, lacks[n % 3]));
			rc = check(m, &s);
			if (lac__sim_struck(m->be) == before) {
				assert_int_equal(rc, 0);
				lac__sim_heal(m->be);
				break;
			}
			if (rc != -lacks[n % 3])
				fail_msg("kind %u, call %u: %d", k, (unsigned)n, rc);
			assert_int_equal(s.count, 0);
			lac__sim_heal(m->be);
		}
	}
}

/* EIO at any read is a finding or two, never a crash, and never taken for damage. */
static void any_unreadable(void **state)
{
	struct mini *m = *state;

	for (uint64_t n = 0;; n++) {
		const uint64_t before = lac__sim_struck(m->be);
		struct seen s = {0};
		bool struck;
		int rc;

		assert_true(lac__sim_arm(m->be, LAC__SIM_READ, NULL, n, true, LAC__SIM_ERRNO, EIO));
		rc = check(m, &s);
		struck = lac__sim_struck(m->be) > before;
		lac__sim_heal(m->be);
		if (!struck)
			break;
		if (rc != 0 || s.count == 0)
			fail_msg("read %u: %d, %d findings", (unsigned)n, rc, s.count);
		for (int i = 0; i < s.count && i < SEEN_MAX; i++)
			assert_int_equal(s.ids[i], LAC_FINDING_FILE_UNREADABLE);
	}
}

/* ---- phase 2 ---- */

/* Flips a byte in the frame of record lsn. */
static void flip_record(struct mini *m, uint64_t lsn)
{
	const struct lac__jscan_options options = {.uuid = m->super.uuid,
		.from_lsn = 1,
		.from_seq = 1,
		.record_bytes_max = LAC__RECORD_BYTES_MAX};
	struct lac__jrecord record;
	char path[LAC__NAME_BYTES];
	struct lac__jscan *scan;

	assert_int_equal(lac__jscan_open(m->be, "journal", &options, &scan, NULL), 0);
	do
		assert_int_equal(lac__jscan_next(scan, &record, NULL), 0);
	while (record.lsn < lsn);
	snprintf(path, sizeof(path), "journal/%016" PRIx64 ".seg", record.seq);
	mini_flip(m->be, path, record.offset + 70);
	lac__jscan_close(scan);
}

static void journal_torn(void **state)
{
	struct mini *m = *state;
	struct lac__op op = mini_delete(&blocks[5]);
	struct seen s = {0};

	mini_commit(m, &op, 1);
	flip_record(m, m->lsn);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_TORN);
	assert_int_equal(s.result.head_lsn, m->lsn - 1);
	assert_int_equal(s.result.blocks, 6);
}

static void journal_corrupt(void **state)
{
	struct mini *m = *state;
	struct lac__op op = mini_delete(&blocks[5]);
	struct seen s = {0};

	mini_commit(m, &op, 1);
	op = mini_delete(&blocks[4]);
	mini_commit(m, &op, 1);
	op = mini_delete(&blocks[3]);
	mini_commit(m, &op, 1);
	flip_record(m, m->lsn - 2);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_CORRUPT);
	assert_int_equal(s.result.fatals, 1);
	assert_int_equal(s.result.blocks, 6);
}

static void journal_missing(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	assert_int_equal(m->be->ops->rename(m->be, "journal", "quarantine"), 0);
	expect(m, &s, 1, LAC_FINDING_FILE_MISSING);
	assert_int_equal(m->be->ops->rename(m->be, "quarantine", "journal"), 0);
}

static void record_bad(void **state)
{
	struct mini *m = *state;
	uint64_t lsn = 0;
	struct seen s = {0};

	assert_int_equal(lac__journal_append(m->journal, "not a record", 12, 0, &lsn, NULL), 0);
	assert_int_equal(lac__journal_wait(m->journal, lsn, NULL), 0);
	expect(m, &s, 1, LAC_FINDING_RECORD_BAD);
	assert_int_equal(s.result.blocks, 6);
}

/* A checkpoint may have written pages that know more than its redo LSN promises. */
static void redo_passes_over_what_is_there(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	m->super.redo_lsn = 1;
	m->super.journal_seq = 1;
	mini_write_super(m);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_REDO);
	assert_int_equal(s.result.blocks, 6);
}

static void journal_short(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	m->super.max_page_lsn += 3;
	mini_write_super(m);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_CORRUPT);
}

/* A record that decodes and contradicts the page. */
static void record_contradicts(void **state)
{
	struct mini *m = *state;
	struct lac__op op = mini_delete(&blocks[5]);
	struct lac__page *index = index_page(m, 0);
	struct lac__entry entry = {.state = LAC__ENTRY_DEAD};
	struct seen s = {0};

	mini_commit(m, &op, 1);
	index->lsn--; /* as it was before, but for the entry */
	index->checkpoint = m->super.checkpoint;
	lac__entry_put(index, 6, &entry);
	mini_rewrite(m, index);
	expect(m, &s, 3, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_RECORD_BAD, LAC_FINDING_SPACE_WAITS);
}

static void page_stale(void **state)
{
	struct mini *m = *state;
	struct lac__page *map = map_page(m, 2);
	struct lac__op op = mini_delete(&blocks[5]);
	struct lac__page old = *map;
	struct seen s = {0};

	mini_commit(m, &op, 1);
	old.lsn--; /* as if the last write had been lost */
	mini_write_slot(m, &old, base_of(m, map), m->super.checkpoint);
	expect(m, &s, 2, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_PAGE_STALE);
	assert_string_equal(s.path[1], "space/00000002.map");
}

/* Dropped containers: their files may be gone, and what redo would do to their maps is moot. */
static void dropped(void **state)
{
	struct lac__op op = {.type = LAC__OP_CONTAINER,
		.container = 2,
		.kind = LAC__CONTAINER_ALIGNED,
		.state = LAC__CONTAINER_DROPPING};
	struct lac__op deletes[3] = {
		mini_delete(&blocks[3]), mini_delete(&blocks[4]), mini_delete(&blocks[5])};
	struct mini *m = *state;
	struct seen s = {0};

	mini_commit(m, deletes, 3);
	mini_commit(m, &op, 1);
	expect(m, &s, 3, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_FILE_EXTRA, LAC_FINDING_FILE_EXTRA);
	assert_int_equal(m->be->ops->unlink(m->be, "space/00000002.map"), 0);
	assert_int_equal(m->be->ops->unlink(m->be, "data/00000002.lac"), 0);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_REDO);
	op.state = LAC__CONTAINER_GONE;
	mini_commit(m, &op, 1);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_REDO);
	mini_checkpoint(m, false);
	assert_int_equal(m->be->ops->unlink(m->be, "space/00000002.map"), 0);
	expect(m, &s, 0);
}

/* ---- pages ---- */

static void page_lost(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	flip_base(m, index_page(m, 1));
	expect(m, &s, 1, LAC_FINDING_PAGE_LOST);
	assert_string_equal(s.path[0], "index/00000000.idx");
	flip_base(m, index_page(m, 1));
	expect(m, &s, 0);
}

static void page_lost_of_each_kind(void **state)
{
	struct mini *m = *state;
	struct lac__page *pages[] = {index_page(m, 0), map_page(m, 1), table_page(m)};
	struct seen s = {0};

	for (size_t i = 0; i < 3; i++) {
		char path[LAC__NAME_BYTES];
		uint64_t offset;

		page_place(pages[i], 1 - base_of(m, pages[i]), path, &offset);
		mini_flip(m->be, path, offset + 100);
		flip_base(m, pages[i]);
		expect(m, &s, 1, LAC_FINDING_PAGE_LOST);
		mini_flip(m->be, path, offset + 100);
		flip_base(m, pages[i]);
	}
	expect(m, &s, 0);
}

static void page_slot_bad(void **state)
{
	struct mini *m = *state;
	struct lac__page *index = index_page(m, 0);
	struct lac__op op = mini_delete(&blocks[5]);
	char path[LAC__NAME_BYTES];
	uint64_t offset;
	struct seen s = {0};

	page_place(index, 1 - base_of(m, index), path, &offset);
	mini_flip(m->be, path, offset + 100);
	expect(m, &s, 1, LAC_FINDING_PAGE_ROTTEN);
	assert_int_equal(s.offset[0], offset);
	/* With a record for the page a checkpoint may have been writing it. */
	mini_commit(m, &op, 1);
	expect(m, &s, 3, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_PAGE_SLOT_BAD,
		LAC_FINDING_SPACE_WAITS);
	assert_int_equal(s.offset[1], offset);
	assert_int_equal(s.result.damages, 0);
}

/* A slot that a later, unfinished checkpoint wrote is not looked at; one of which it wrote a part
   only, for a page that no checkpoint wrote before, is made again by the journal. */
static void unfinished_checkpoint(void **state)
{
	struct mini *m = *state;
	struct lac__super own = m->super;
	struct lac__op op = mini_delete(&blocks[5]);
	struct seen s = {0};

	mini_commit(m, &op, 1);
	mini_high_water(m, 301, 300);
	mini_checkpoint(m, false);
	m->super = own;
	m->super.copy = 1 - own.copy;
	mini_write_super(m);
	m->super.copy = own.copy;
	mini_write_super(m);
	expect(m, &s, 2, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_SPACE_WAITS);
	flip_base(m, index_page(m, 4));
	expect(m, &s, 3, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_PAGE_SLOT_BAD,
		LAC_FINDING_SPACE_WAITS);
	assert_int_equal(s.result.damages, 0);
}

static void page_zero(void **state)
{
	static const uint8_t zeros[LAC__PAGE_BYTES];
	struct mini *m = *state;
	struct lac__op op = {.type = LAC__OP_RETIRE, .first = 1};
	char path[LAC__NAME_BYTES];
	uint64_t offset;
	struct seen s = {0};

	page_place(index_page(m, 1), 0, path, &offset);
	mini_write(m->be, path, offset, zeros, sizeof(zeros));
	expect(m, &s, 1, LAC_FINDING_PAGE_ZERO);
	assert_int_equal(s.offset[0], offset);
	mini_commit(m, &op, 1);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_REDO);
	mini_checkpoint(m, false);
	expect(m, &s, 0);
	/* A mark that no file could reach costs no time, and gives one finding a gap. */
	m->super.id_high_water = UINT64_C(1) << 53;
	mini_write_super(m);
	expect(m, &s, 1, LAC_FINDING_PAGE_ZERO);
	assert_int_equal(s.offset[0], lac__page_slot_offset(3, 0));
}

static void retired_page_may_hold_anything(void **state)
{
	struct mini *m = *state;
	struct lac__op op = {.type = LAC__OP_RETIRE, .first = 2};
	struct lac__page *index = index_page(m, 2);
	struct lac__entry entry = {
		.state = LAC__ENTRY_LIVE, .container = 99, .offset = 8192, .length = 1};
	struct seen s = {0};

	lac__entry_put(index, 5, &entry);
	mini_rewrite(m, index);
	expect(m, &s, 1, LAC_FINDING_ENTRY_CONTAINER);
	mini_commit(m, &op, 1);
	mini_checkpoint(m, false);
	expect(m, &s, 0);
}

/* The same where redo has touched the page, and where a slot has rotted. */
static void retired_in_redo(void **state)
{
	struct mini *m = *state;
	struct lac__op op = {.type = LAC__OP_RETIRE, .first = 2};
	struct lac__page *index = index_page(m, 2);
	struct lac__entry entry = {
		.state = LAC__ENTRY_LIVE, .container = 99, .offset = 8192, .length = 1};
	struct lac__op put = mini_block(m, 300, 1, 5504, 10, 0), gone = mini_delete(&put);
	struct seen s = {0};

	lac__entry_put(index, 5, &entry);
	mini_rewrite(m, index);
	mini_commit(m, &put, 1);
	mini_commit(m, &gone, 1);
	mini_commit(m, &op, 1);
	expect(m, &s, 1, LAC_FINDING_JOURNAL_REDO);
	mini_checkpoint(m, false);
	flip_base(m, index);
	expect(m, &s, 0);
}

/* ---- phase 3 ---- */

static void container_header(void **state)
{
	struct mini *m = *state;
	struct lac__container_header header = {.uuid = m->super.uuid,
		.container = 1,
		.kind = LAC__CONTAINER_PACKED,
		.granule_bytes = MINI_GRANULE,
		.birth_lsn = 77};
	uint8_t page[LAC__PAGE_BYTES];
	struct seen s = {0};

	mini_flip(m->be, "data/00000001.lac", 20);
	expect(m, &s, 1, LAC_FINDING_CONTAINER_HEADER);
	lac__container_header_encode(&header, page);
	mini_write(m->be, "data/00000001.lac", 0, page, sizeof(page));
	expect(m, &s, 1, LAC_FINDING_CONTAINER_HEADER);
}

/* ---- phase 4 ---- */

static void patch_entry(struct mini *m, uint64_t id, const struct lac__entry *entry)
{
	struct lac__page *index = index_page(m, id / LAC__INDEX_ENTRIES);

	lac__entry_put(index, id % LAC__INDEX_ENTRIES, entry);
	mini_rewrite(m, index);
}

static struct lac__entry entry_of(struct mini *m, uint64_t id)
{
	struct lac__entry entry;

	assert_int_equal(lac__entry_get(index_page(m, id / LAC__INDEX_ENTRIES),
				 id % LAC__INDEX_ENTRIES, &entry, NULL),
		0);
	return entry;
}

static void entry_bad(void **state)
{
	struct mini *m = *state;
	struct lac__page *index = index_page(m, 0);
	struct seen s = {0};

	index->body[6 * 32 + 8] |= 0x3f; /* a state that is none */
	mini_rewrite(m, index);
	expect(m, &s, 1, LAC_FINDING_ENTRY_BAD);
}

static void entry_overlap(void **state)
{
	struct mini *m = *state;
	struct lac__entry entry = entry_of(m, 3);
	struct seen s = {0};

	entry.offset = 4224; /* its description in block 1, its payload over block 2 */
	patch_entry(m, 3, &entry);
	expect(m, &s, 4, LAC_FINDING_BLOCK_DESCRIPTION, LAC_FINDING_BLOCK_PAYLOAD,
		LAC_FINDING_ENTRY_OVERLAP, LAC_FINDING_ENTRY_OVERLAP);
	assert_int_equal(s.offset[2], 4160);
}

/* Two whole records that claim the same bytes: the counts agree, only the overlap is wrong. */
static void overlap_of_records(void **state)
{
	struct mini *m = *state;
	struct lac__op op;
	struct seen s = {0};

	op = mini_block(m, 8, 2, UINT64_C(70) * 4096, 4096, 69);
	mini_commit(m, &op, 1);
	mini_checkpoint(m, false);
	check(m, &s);
	assert_int_equal(s.ids[s.count - 1], LAC_FINDING_ENTRY_OVERLAP);
	assert_int_equal(s.ids[s.count - 2], LAC_FINDING_BLOCK_PAYLOAD);
	assert_int_equal(s.count, 2);
}

/* A block over the descriptions of others. */
static void overlap_of_description(void **state)
{
	struct mini *m = *state;
	uint8_t was[MINI_GRANULE];
	struct lac__op op;
	struct seen s = {0};

	mini_read(m->be, "data/00000002.lac", 4096, was, sizeof(was));
	op = mini_block(
		m, 8, 2, UINT64_C(90) * 4096, 4096, 10); /* description in granule 80: block 6 */
	mini_commit(m, &op, 1);
	mini_checkpoint(m, false);
	check(m, &s);
	assert_int_equal(s.ids[s.count - 1], LAC_FINDING_ENTRY_OVERLAP);
}

static void entry_container(void **state)
{
	struct mini *m = *state;
	struct lac__entry was = entry_of(m, 3), entry = was;
	struct seen s = {0};

	entry.container = 9;
	patch_entry(m, 3, &entry);
	check(m, &s);
	assert_int_equal(s.ids[0], LAC_FINDING_ENTRY_CONTAINER);
	entry.container = 2; /* of the other kind */
	patch_entry(m, 3, &entry);
	check(m, &s);
	assert_int_equal(s.ids[0], LAC_FINDING_ENTRY_CONTAINER);
	patch_entry(m, 3, &was);
	expect(m, &s, 0);
}

static void entry_beyond_tail(void **state)
{
	struct mini *m = *state;
	struct lac__entry entry = entry_of(m, 3);
	struct seen s = {0};

	entry.offset = UINT64_C(1) << 40;
	patch_entry(m, 3, &entry);
	check(m, &s);
	assert_int_equal(s.ids[0], LAC_FINDING_ENTRY_BAD);
	assert_int_equal(s.ids[1], LAC_FINDING_FILE_SHORT);
}

static void entry_id(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	m->super.id_high_water = 6;
	m->super.next_id = 6;
	mini_write_super(m);
	expect(m, &s, 1, LAC_FINDING_ENTRY_ID);
}

static void block_description(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_flip(m->be, "data/00000001.lac", 4416 - 64 + 20);
	expect(m, &s, 1, LAC_FINDING_BLOCK_DESCRIPTION);
	mini_flip(m->be, "data/00000001.lac", 4416 - 64 + 20);
	mini_flip(m->be, "data/00000002.lac", 4096 + 5 * 64 + 20);
	expect(m, &s, 1, LAC_FINDING_BLOCK_DESCRIPTION);
	assert_string_equal(s.path[0], "data/00000002.lac");
}

/* Whole, and not of the block that the index has there. */
static void block_description_contradicts(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	for (uint64_t id = 3; id <= 4; id++) { /* packed, and aligned */
		struct lac__entry entry = entry_of(m, id), was = entry;

		entry.owner++;
		patch_entry(m, id, &entry);
		expect(m, &s, 1, LAC_FINDING_BLOCK_DESCRIPTION);
		patch_entry(m, id, &was);
	}
}

static void block_payload(void **state)
{
	static const uint8_t zeros[5000];
	struct mini *m = *state;
	struct seen s = {0};

	mini_flip(m->be, "data/00000001.lac", 4416 + 999);
	expect(m, &s, 1, LAC_FINDING_BLOCK_PAYLOAD);
	assert_null(strstr(s.text[0], "zeros"));
	mini_flip(m->be, "data/00000001.lac", 4416 + 999);
	mini_write(m->be, "data/00000002.lac", 8192, zeros, sizeof(zeros));
	expect(m, &s, 1, LAC_FINDING_BLOCK_PAYLOAD);
	assert_non_null(strstr(s.text[0], "zeros"));
}

static void block_chunks(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_flip(m->be, "data/00000002.lac", 16384 + 299999);
	expect(m, &s, 1, LAC_FINDING_BLOCK_PAYLOAD);
	assert_non_null(strstr(s.text[0], "chunk 4"));
	assert_int_equal(s.offset[0], 16384 + 4 * 65536);
	mini_flip(m->be, "data/00000002.lac", 16384 + 299999);
	mini_flip(m->be, "data/00000002.lac", 16384 + 300032 + 2);
	expect(m, &s, 1, LAC_FINDING_BLOCK_PAYLOAD);
	assert_non_null(strstr(s.text[0], "table"));
}

/* ---- phase 5 ---- */

static void map_wrong(void **state)
{
	static const uint8_t wrong[] = {LAC__GRANULE_HOLE, 2, LAC__GRANULE_DEAD,
		LAC__GRANULE_RESERVED, LAC__GRANULE_HEADER, 255};
	struct mini *m = *state;
	struct lac__page *map = map_page(m, 2);
	struct seen s = {0};

	for (size_t i = 0; i < sizeof(wrong); i++) {
		map->body[20] = wrong[i];
		mini_rewrite(m, map);
		check(m, &s);
		assert_int_equal(s.ids[0], LAC_FINDING_MAP_WRONG);
		assert_string_equal(s.path[0], "space/00000002.map");
		assert_non_null(strstr(s.text[0], "granule 20:"));
		assert_int_equal(s.count, 1 + 2 * (wrong[i] == LAC__GRANULE_DEAD));
	}
	map->body[20] = 1;
	map->body[0] = LAC__GRANULE_HOLE;
	mini_rewrite(m, map);
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
	map->body[0] = LAC__GRANULE_HEADER;
	map->body[90] = 1; /* beyond the tail */
	mini_rewrite(m, map);
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
	map->body[90] = LAC__GRANULE_RESERVED;
	mini_rewrite(m, map);
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
	map->body[90] = LAC__GRANULE_HOLE;
	map->body[1] = 2; /* three descriptions */
	mini_rewrite(m, map);
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
}

static void map_zero(void **state)
{
	static const uint8_t zeros[LAC__PAGE_BYTES];
	struct mini *m = *state;
	struct lac__page *map = map_page(m, 1);
	char path[LAC__NAME_BYTES];
	uint64_t offset;
	struct seen s = {0};

	for (unsigned slot = 0; slot < 2; slot++) {
		page_place(map, slot, path, &offset);
		mini_write(m->be, path, offset, zeros, sizeof(zeros));
	}
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
}

/* A block that reaches over the end of a map page. */
static void map_of_long_block(void **state)
{
	struct mini *m = *state;
	const uint64_t granule = LAC__MAP_GRANULES - 2;
	struct lac__page *second;
	struct lac__op op;
	struct seen s = {0};

	op = mini_block(m, 9, 2, granule * 4096, 5 * 4096, 1);
	mini_commit(m, &op, 1);
	mini_checkpoint(m, true);
	expect(m, &s, 0);
	second = mini_get(m, LAC__PAGE_MAP, 2, 1);
	assert_int_equal(second->body[2], 1);
	second->body[2] = 0;
	mini_rewrite(m, second);
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
	second->body[2] = 1;
	second->body[3] = 1;
	mini_rewrite(m, second);
	expect(m, &s, 1, LAC_FINDING_MAP_WRONG);
}

static void reserved_is_legal(void **state)
{
	struct mini *m = *state;
	struct lac__op op = {.type = LAC__OP_RESERVE, .container = 2, .first = 81, .count = 3};
	struct seen s = {0};

	mini_commit(m, &op, 1);
	mini_checkpoint(m, false);
	expect(m, &s, 0);
	op.type = LAC__OP_RELEASE;
	mini_commit(m, &op, 1);
	mini_checkpoint(m, false);
	expect(m, &s, 1, LAC_FINDING_SPACE_WAITS);
	op.type = LAC__OP_HOLE;
	mini_commit(m, &op, 1);
	mini_checkpoint(m, false);
	expect(m, &s, 0);
}

static void table_wrong(void **state)
{
	struct mini *m = *state;
	struct lac__page *table = table_page(m);
	struct lac__table_entry was, entry;
	struct seen s = {0};

	assert_int_equal(lac__table_get(table, 2, &was, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		entry = was;
		entry.live_blocks += i == 0;
		entry.live_bytes -= i == 1;
		entry.dead_granules += i == 2;
		lac__table_put(table, 2, &entry);
		if (i == 3)
			table->body[2 * 64 + 4] = 1; /* reserved */
		mini_rewrite(m, table);
		expect(m, &s, 1, LAC_FINDING_TABLE_WRONG);
		assert_string_equal(s.path[0], "space/table");
	}
}

static void table_beyond_the_last_container(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	m->super.next_container = 2;
	mini_write_super(m);
	expect(m, &s, 1, LAC_FINDING_TABLE_WRONG);
}

/* A page write that was lost, and left the older slot as the base, shows as a contradiction. */
static void lost_write(void **state)
{
	struct mini *m = *state;
	struct lac__page *pages[] = {index_page(m, 0), map_page(m, 1), table_page(m)};

	for (size_t i = 0; i < 3; i++) {
		uint8_t now[LAC__PAGE_BYTES], zeros[LAC__PAGE_BYTES] = {0};
		char path[LAC__NAME_BYTES];
		uint64_t offset;
		struct seen s = {0};

		page_place(pages[i], base_of(m, pages[i]), path, &offset);
		mini_read(m->be, path, offset, now, sizeof(now));
		mini_write(m->be, path, offset, zeros, sizeof(zeros));
		check(m, &s);
		assert_true(s.result.damages > 0);
		mini_write(m->be, path, offset, now, sizeof(now));
	}
}

/* ---- phase 7 ---- */

static void lsn_ahead(void **state)
{
	struct mini *m = *state;
	struct lac__page *index = index_page(m, 1);
	struct seen s = {0};

	index->lsn = m->lsn + 5;
	mini_rewrite(m, index);
	expect(m, &s, 1, LAC_FINDING_LSN_AHEAD);
	assert_int_equal(s.result.max_lsn, m->lsn + 5);
	assert_int_equal(s.result.head_lsn, m->lsn);
	/* The same number in a slot that does not verify counts for nothing. */
	flip_base(m, index);
	expect(m, &s, 1, LAC_FINDING_PAGE_LOST);
	assert_int_equal(s.result.max_lsn, m->lsn);
}

static void stopped(void **state)
{
	struct mini *m = *state;
	struct seen s = {.stop_at = 1};

	flip_base(m, index_page(m, 1));
	assert_int_equal(check(m, &s), -ECANCELED);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.err.reason, LAC_REASON_INTERRUPTED);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(sound),
		cmocka_unit_test(sound_when_empty),
		cmocka_unit_test(sound_without_options),
		T(redo_is_no_damage),
		T(super_copy_bad),
		T(super_lost),
		T(super_short),
		T(super_format),
		T(super_mismatch),
		cmocka_unit_test(not_a_store),
		T(file_missing),
		T(map_missing),
		T(table_missing),
		T(file_extra),
		T(file_short),
		T(file_unreadable),
		T(our_lack_is_no_damage),
		T(any_unreadable),
		T(journal_torn),
		T(journal_corrupt),
		T(journal_missing),
		T(journal_short),
		T(redo_passes_over_what_is_there),
		T(record_bad),
		T(record_contradicts),
		T(page_stale),
		T(dropped),
		T(page_lost),
		T(page_lost_of_each_kind),
		T(page_slot_bad),
		T(unfinished_checkpoint),
		T(page_zero),
		T(retired_page_may_hold_anything),
		T(retired_in_redo),
		T(container_header),
		T(entry_bad),
		T(entry_overlap),
		T(overlap_of_records),
		T(overlap_of_description),
		T(entry_container),
		T(entry_beyond_tail),
		T(entry_id),
		T(block_description),
		T(block_description_contradicts),
		T(block_payload),
		T(block_chunks),
		T(map_wrong),
		T(map_zero),
		T(map_of_long_block),
		T(reserved_is_legal),
		T(table_wrong),
		T(table_beyond_the_last_container),
		T(lost_write),
		T(lsn_ahead),
		T(stopped),
	};

	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
