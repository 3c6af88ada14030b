/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/hostile_test.c - bytes that verify and mean nothing: random bodies, numbers and records
 * under good checksums. The check ends, without a crash and without asking for the moon (P12);
 * what it finds is not looked at.
 */
#include "check/expect_test.h"

#define ROUNDS 300

static uint64_t state_of_random = 7;

static uint64_t next_random(void)
{
	state_of_random = state_of_random * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return state_of_random >> 16;
}

/* Small, or anywhere up to the top: what bounds are made for. */
static uint64_t odd_number(void)
{
	return next_random() % 2 ? next_random() % 300 : next_random() >> next_random() % 48;
}

static void spoil_body(struct lac__page *page)
{
	const unsigned count = 1 + (unsigned)(next_random() % 40);

	for (unsigned i = 0; i < count; i++) {
		/* Mostly where the entries in use are. */
		size_t at = next_random() % (next_random() % 2 ? 256 : sizeof(page->body));

		page->body[at] = (uint8_t)(next_random() % 4 ? next_random() % 5 : next_random());
	}
}

static void hostile_pages(void **state)
{
	struct mini *m = *state;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct lac__page *page = &m->pages[next_random() % m->count], was = *page;
		struct seen s = {0};

		spoil_body(page);
		if (next_random() % 4 == 0)
			page->lsn = odd_number();
		mini_rewrite(m, page);
		assert_int_equal(check(m, &s), 0);
		*page = was;
		mini_rewrite(m, page);
	}
}

static void hostile_entries(void **state)
{
	struct mini *m = *state;

	for (unsigned round = 0; round < ROUNDS; round++) {
		const uint64_t id = 1 + next_random() % 6;
		struct lac__entry entry = entry_of(m, id), was = entry;
		struct seen s = {0};

		switch (next_random() % 4) {
		case 0: entry.container = (uint32_t)odd_number(); break;
		case 1: entry.offset = odd_number() % LAC__OFFSET_MAX_BYTES * 64; break;
		case 2: entry.length = odd_number() % LAC__LENGTH_MAX_BYTES; break;
		default: entry.distance = (uint32_t)(odd_number() % 65536); break;
		}
		patch_entry(m, id, &entry);
		assert_int_equal(check(m, &s), 0);
		patch_entry(m, id, &was);
	}
}

static void hostile_super(void **state)
{
	struct mini *m = *state;
	const struct lac__super was = m->super;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct seen s = {0};

		switch (next_random() % 7) {
		case 0: m->super.redo_lsn = odd_number(); break;
		case 1: m->super.max_page_lsn = odd_number(); break;
		case 2: m->super.id_high_water = odd_number(); break;
		case 3: m->super.next_container = (uint32_t)odd_number(); break;
		case 4: m->super.journal_seq = odd_number(); break;
		case 5: m->super.checkpoint = odd_number(); break;
		default: m->super.granule_bytes = 4096u << next_random() % 5; break;
		}
		mini_write_super(m);
		assert_int_equal(check(m, &s), 0);
		m->super = was;
	}
}

/* An operation of random numbers, in a record that lists the right pages, or some of them. */
static void hostile_records(void **state)
{
	struct mini *m;

	for (unsigned round = 0; round < ROUNDS / 3; round++) {
		struct lac__op op = {.type = 1 + (uint32_t)(next_random() % 8),
			.id = odd_number(),
			.length = odd_number() % 100000,
			.offset = odd_number() * 64,
			.container = (uint32_t)(next_random() % 5),
			.distance = (uint32_t)(next_random() % 4),
			.generation = 1,
			.first = odd_number(),
			.count = 1 + odd_number() % 5000,
			.state = (uint32_t)(next_random() % 7),
			.kind = (uint32_t)(1 + next_random() % 2)};
		uint8_t *bytes = calloc(1, 65536);
		struct lac__record_page page;
		struct seen s = {0};
		uint64_t lsn;
		size_t length = LAC__RECORD_HEADER_BYTES;
		unsigned pages = (unsigned)(next_random() % 4);

		m = new_store();
		for (unsigned i = 0; i < pages; i++) {
			page.ref = m->pages[next_random() % m->count].ref;
			if (next_random() % 4 == 0)
				page.ref.no = odd_number();
			page.prev_lsn = next_random() % (m->lsn + 1);
			lac__record_page_encode(&page, bytes + length);
			length += LAC__RECORD_PAGE_BYTES;
		}
		length += lac__op_encode(&op, bytes + length);
		lac__record_header_encode(pages, 1, bytes);
		assert_int_equal(lac__journal_append(m->journal, bytes, length, 0, &lsn, NULL), 0);
		assert_int_equal(lac__journal_wait(m->journal, lsn, NULL), 0);
		free(bytes);
		assert_int_equal(check(m, &s), 0);
		mini_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(hostile_pages),
		T(hostile_entries),
		T(hostile_super),
		cmocka_unit_test(hostile_records),
	};

	return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
