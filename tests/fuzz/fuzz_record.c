/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz/fuzz_record.c - a record, decoded, encoded again, and applied to a small store of pages.
 *
 * The pages start as those of a store with two active containers. What the operations say of
 * turned granules is replaced by what the pages say, as the sequencer would do; then, however
 * strange the operations, index, map and table must go on telling the same story.
 */
#include "format/container.h"
#include "format/record.h"

#include "fuzz.h"

#define GRANULE	  4096u
#define PAGES_MAX 24u

static struct lac__page pages[PAGES_MAX], before[PAGES_MAX];
static unsigned page_count;

static struct lac__page *page_of(const struct lac__page_ref *ref)
{
	struct lac__page *p;

	for (unsigned i = 0; i < page_count; i++) {
		p = &pages[i];
		if (p->ref.kind == ref->kind && p->ref.container == ref->container &&
			p->ref.no == ref->no)
			return p;
	}
	if (page_count == PAGES_MAX)
		return NULL;
	p = &pages[page_count++];
	memset(p, 0, sizeof(*p));
	p->ref = *ref;
	return p;
}

static void begin(void)
{
	struct lac__op op = {.type = LAC__OP_CONTAINER};
	struct lac__page *map, *table;

	page_count = 0;
	table = page_of(&(struct lac__page_ref){LAC__PAGE_TABLE, 0, 0});
	for (uint32_t c = 1; c <= 2; c++) {
		op.container = op.kind = c;
		map = page_of(&(struct lac__page_ref){LAC__PAGE_MAP, c, 0});
		op.state = LAC__CONTAINER_CREATING;
		MUST(lac__op_apply(&op, GRANULE, 1, map, NULL) == 0);
		MUST(lac__op_apply(&op, GRANULE, 1, table, NULL) == 0);
		op.state = LAC__CONTAINER_ACTIVE;
		MUST(lac__op_apply(&op, GRANULE, 2, map, NULL) == 0);
		MUST(lac__op_apply(&op, GRANULE, 2, table, NULL) == 0);
	}
}

struct visit {
	struct lac__op *op;
	struct lac__page_ref last;
	unsigned count;
	bool full;
};

/* Finds or makes the page, adds up what is turned. */
static int visit_turns(void *arg, const struct lac__page_ref *ref)
{
	struct visit *v = arg;
	struct lac__page *p = page_of(ref);

	/* Each page once, ascending within its kind. */
	MUST(v->count == 0 || v->last.kind != ref->kind || v->last.no < ref->no);
	v->last = *ref;
	v->count++;
	v->full = p == NULL;
	if (p)
		v->op->turned += lac__op_turns(v->op, GRANULE, p);
	return p == NULL;
}

static int visit_apply(void *arg, const struct lac__page_ref *ref)
{
	struct visit *v = arg;
	struct lac_error err;
	int rc = lac__op_apply(v->op, GRANULE, 7, page_of(ref), &err);

	if (rc < 0)
		fuzz_error(rc, &err);
	return rc;
}

static void apply(struct lac__op op)
{
	struct visit v = {.op = &op};
	unsigned count_before = page_count;
	int rc;

	op.turned = 0;
	if (lac__op_pages(&op, GRANULE, visit_turns, &v) != 0) {
		MUST(v.full);
		page_count = count_before;
		return;
	}
	memcpy(before, pages, page_count * sizeof(pages[0]));
	rc = lac__op_pages(&op, GRANULE, visit_apply, &v);
	if (rc < 0) {
		/* Half applied: as a transaction that was refused, it did not happen. */
		memcpy(pages, before, page_count * sizeof(pages[0]));
		return;
	}
	/* A page that is not touched stays as it is. */
	for (unsigned i = 0; i < page_count; i++) {
		bool touched = memcmp(pages[i].body, before[i].body, sizeof(pages[i].body)) != 0;

		MUST(!touched || pages[i].lsn == before[i].lsn);
	}
}

struct sums {
	uint64_t live_blocks, live_bytes, dead, references, granules;
};

/* What index and maps say of a container. */
static struct sums sums_of(uint32_t container)
{
	struct sums s = {0};
	uint64_t first, count, description;
	struct lac__entry e;

	for (unsigned i = 0; i < page_count; i++) {
		const struct lac__page *p = &pages[i];

		if (p->ref.kind == LAC__PAGE_MAP && p->ref.container == container) {
			for (unsigned g = 0; g < LAC__MAP_GRANULES; g++) {
				s.dead += p->body[g] == LAC__GRANULE_DEAD;
				if (p->body[g] <= LAC__GRANULE_LIVE_MAX)
					s.references += p->body[g];
			}
		}
		for (unsigned n = 0; p->ref.kind == LAC__PAGE_INDEX && n < LAC__INDEX_ENTRIES;
			n++) {
			MUST(lac__entry_get(p, n, &e, NULL) == 0);
			if (e.state != LAC__ENTRY_LIVE || e.container != container)
				continue;
			s.live_blocks++;
			s.live_bytes += e.length;
			lac__block_granules(e.offset, e.length, e.distance, GRANULE, &first, &count,
				&description);
			s.granules += count + (description != UINT64_MAX);
		}
	}
	return s;
}

static void check_story(void)
{
	struct lac__table_entry t;
	struct sums s;

	for (unsigned i = 0; i < page_count; i++) {
		if (pages[i].ref.kind != LAC__PAGE_TABLE)
			continue;
		for (unsigned n = 0; n < LAC__TABLE_ENTRIES; n++) {
			MUST(lac__table_get(&pages[i], n, &t, NULL) == 0);
			if (t.state == LAC__CONTAINER_NONE || t.state == LAC__CONTAINER_GONE)
				continue;
			s = sums_of((uint32_t)(pages[i].ref.no * LAC__TABLE_ENTRIES + n));
			MUST(s.live_blocks == t.live_blocks && s.live_bytes == t.live_bytes);
			MUST(s.dead == t.dead_granules && s.references == s.granules);
		}
	}
}

/* Header, pages and operations, encoded again, are the record. */
static void check_encoding(const struct lac__record *r)
{
	uint8_t *again = malloc(r->length);
	struct lac__record_page page;
	struct lac__op_cursor cursor;
	struct lac__op op;
	size_t at = LAC__RECORD_HEADER_BYTES;

	MUST(again != NULL);
	lac__record_header_encode(r->pages, r->ops, again);
	for (uint32_t n = 0; n < r->pages; n++, at += LAC__RECORD_PAGE_BYTES) {
		lac__record_page_at(r, n, &page);
		lac__record_page_encode(&page, again + at);
	}
	lac__op_cursor_start(r, &cursor);
	while (lac__op_next(&cursor, &op)) {
		MUST(lac__op_bytes(&op) <= r->length - at);
		at += lac__op_encode(&op, again + at);
	}
	MUST(at == r->length && memcmp(again, r->bytes, at) == 0);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lac__op_cursor cursor;
	struct lac__record record;
	struct lac_error err;
	struct lac__op op;
	uint32_t n = 0;
	int rc;

	rc = lac__record_decode(data, size, GRANULE, &record, &err);
	if (rc < 0) {
		fuzz_error(rc, &err);
		return 0;
	}
	check_encoding(&record);
	begin();
	lac__op_cursor_start(&record, &cursor);
	while (lac__op_next(&cursor, &op)) {
		apply(op);
		if (++n < 64)
			check_story();
	}
	check_story();
	return 0;
}
