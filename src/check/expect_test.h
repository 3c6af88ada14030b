/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/expect_test.h - for the tests of check: one small store made by hand, and what check says
 * of it. Each test patches one thing and expects exactly the finding that names it. Every check
 * must leave every byte as it was (P6).
 */
#ifndef LAC_CHECK_EXPECT_TEST_H
#define LAC_CHECK_EXPECT_TEST_H

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

static inline int on_finding(void *arg, const struct lac_finding *f)
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

static inline int on_phase(void *arg, const struct lac_phase *phase)
{
	struct seen *s = arg;

	s->phases += phase->end_ns != 0;
	return 0;
}

static inline int check(struct mini *m, struct seen *s)
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

static inline void expect(struct mini *m, struct seen *s, int count, ...)
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
static struct lac__op blocks[6] __attribute__((unused));

static inline struct mini *new_store(void)
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

static inline int setup(void **state)
{
	*state = new_store();
	return 0;
}

static inline int teardown(void **state)
{
	mini_free(*state);
	return 0;
}

static inline void page_place(
	const struct lac__page *page, unsigned slot, char *path, uint64_t *offset)
{
	mini_slot_place(&page->ref, slot, path, offset);
}

static inline unsigned base_of(const struct mini *m, const struct lac__page *page)
{
	return 1 - m->slot[page - m->pages];
}

static inline void flip_base(struct mini *m, const struct lac__page *page)
{
	char path[LAC__NAME_BYTES];
	uint64_t offset;

	page_place(page, base_of(m, page), path, &offset);
	mini_flip(m->be, path, offset + 2000);
}

static inline struct lac__page *index_page(struct mini *m, uint64_t no)
{
	return mini_get(m, LAC__PAGE_INDEX, 0, no);
}

static inline struct lac__page *map_page(struct mini *m, uint32_t container)
{
	return mini_get(m, LAC__PAGE_MAP, container, 0);
}

static inline struct lac__page *table_page(struct mini *m)
{
	return mini_get(m, LAC__PAGE_TABLE, 0, 0);
}

/* ---- entries ---- */

static inline void patch_entry(struct mini *m, uint64_t id, const struct lac__entry *entry)
{
	struct lac__page *index = index_page(m, id / LAC__INDEX_ENTRIES);

	lac__entry_put(index, id % LAC__INDEX_ENTRIES, entry);
	mini_rewrite(m, index);
}

static inline struct lac__entry entry_of(struct mini *m, uint64_t id)
{
	struct lac__entry entry;

	assert_int_equal(lac__entry_get(index_page(m, id / LAC__INDEX_ENTRIES),
				 id % LAC__INDEX_ENTRIES, &entry, NULL),
		0);
	return entry;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
