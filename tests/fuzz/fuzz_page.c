/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz/fuzz_page.c - two slots of a page: the choice between them, and every entry of the winner.
 *
 * Input: mode, super's checkpoint, then for each slot its header of 64 bytes and, the same for
 * both, as much of the body as there is. Mode bits 1 and 2 leave slot 0 or 1 zero.
 */
#include "format/page.h"

#include "fuzz.h"

static void check_entries(struct lac__page *page)
{
	struct lac__table_entry t;
	struct lac__entry e;
	struct lac__page copy = *page;
	struct lac_error err;
	int rc;

	for (unsigned i = 0; i < LAC__INDEX_ENTRIES; i++) {
		rc = lac__entry_get(page, i, &e, &err);
		if (rc < 0) {
			fuzz_error(rc, &err);
			continue;
		}
		lac__entry_put(&copy, i, &e);
		MUST(memcmp(copy.body, page->body, sizeof(copy.body)) == 0);
	}
	for (unsigned i = 0; i < LAC__TABLE_ENTRIES; i++) {
		rc = lac__table_get(page, i, &t, &err);
		if (rc < 0) {
			fuzz_error(rc, &err);
			continue;
		}
		lac__table_put(&copy, i, &t);
		MUST(memcmp(copy.body, page->body, sizeof(copy.body)) == 0);
	}
}

/* The rule, said once more and differently. */
static void check_choice(const struct lac__slot_choice *c, uint64_t checkpoint)
{
	bool any_bad = c->state[0] == LAC__SLOT_BAD || c->state[1] == LAC__SLOT_BAD;

	MUST(c->base >= -1 && c->base <= 1 && (c->write == 0 || c->write == 1));
	MUST(c->write != c->base);
	MUST(c->lost == (c->base < 0 && any_bad));
	for (int s = 0; s < 2; s++) {
		if (c->state[s] != LAC__SLOT_OK || c->checkpoint[s] > checkpoint) {
			MUST(c->base != s);
			continue;
		}
		MUST(c->base >= 0 && c->checkpoint[c->base] >= c->checkpoint[s]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t slot[2][LAC__PAGE_BYTES], again[LAC__PAGE_BYTES];
	uint8_t mode = fuzz_mode(&data, &size);
	uint64_t checkpoint = fuzz_take64(&data, &size);
	struct lac__page_ref ref = {LAC__PAGE_INDEX + (mode >> 4 & 3), mode >> 6, 5};
	struct lac__slot_choice choice;
	struct lac_error err;
	struct lac__page page;
	int rc;

	fuzz_take(&data, &size, slot[0], LAC__PAGE_HEADER_BYTES);
	fuzz_take(&data, &size, slot[1], LAC__PAGE_HEADER_BYTES);
	fuzz_take(&data, &size, slot[0] + LAC__PAGE_HEADER_BYTES, LAC__PAGE_BODY_BYTES);
	memcpy(slot[1] + LAC__PAGE_HEADER_BYTES, slot[0] + LAC__PAGE_HEADER_BYTES,
		LAC__PAGE_BODY_BYTES);
	for (int s = 0; s < 2; s++) {
		if (mode & FUZZ_SEAL)
			fuzz_seal_page(slot[s], 4);
		if (mode & (2u << s))
			memset(slot[s], 0, LAC__PAGE_BYTES);
		rc = lac__page_decode(slot[s], &ref, &fuzz_uuid, &page, &err);
		if (rc < 0)
			fuzz_error(rc, &err);
	}
	lac__page_choose(slot[0], slot[1], &ref, &fuzz_uuid, checkpoint, &page, &choice);
	check_choice(&choice, checkpoint);
	MUST(page.ref.kind == ref.kind && page.ref.container == ref.container &&
		page.ref.no == ref.no);
	if (choice.base >= 0) {
		lac__page_encode(&page, &fuzz_uuid, page.checkpoint, again);
		MUST(memcmp(again, slot[choice.base], sizeof(again)) == 0);
	}
	check_entries(&page);
	return 0;
}
