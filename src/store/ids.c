/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/ids.c - ids and the index pages that they begin.
 *
 * An id is handed out only below a durable high-water mark (rule 4.15), so that recovery can go on
 * above it without knowing what was handed out. The record that raises the mark also begins the
 * index pages below it; therefore an index page below the mark that was never written is damage,
 * unless it was retired (rule 4.16).
 */
#include <errno.h>
#include <string.h>

#include "store/internal.h"

enum { HIGH_WATER_PAGES_MAX = 32 };

/* By a quarter of what there is, so that a small store stays small and a large one rarely waits. */
static uint64_t raise_by(uint64_t high_water)
{
	uint64_t pages = high_water / LAC__INDEX_ENTRIES / 4;

	if (pages < 1)
		pages = 1;
	if (pages > HIGH_WATER_PAGES_MAX)
		pages = HIGH_WATER_PAGES_MAX;
	return pages * LAC__INDEX_ENTRIES;
}

/* ids_lock held. */
static int raise_high_water(struct lac_store *s, struct lac_error *err)
{
	uint64_t from = s->id_high_water;
	struct lac__op op = {.type = LAC__OP_HIGH_WATER, .first = from, .count = raise_by(from)};
	struct lac__page_ref last = {
		.kind = LAC__PAGE_INDEX, .no = (from + op.count - 1) / LAC__INDEX_ENTRIES};
	struct lac__page_ref first = {.kind = LAC__PAGE_INDEX, .no = from / LAC__INDEX_ENTRIES};
	int rc;

	if (from > UINT64_MAX - op.count - LAC__INDEX_ENTRIES)
		return lac__error_set(
			err, -E2BIG, LAC_REASON_TOO_BIG, 0, 0, "take id: all 64-bit ids are used");
	/* The range may cross from one index file into the next. */
	rc = lac__pages_reserve(s->pages, &first, err);
	if (rc == 0)
		rc = lac__pages_reserve(s->pages, &last, err);
	rc = lac__store_made(s, rc, err);
	if (rc == 0)
		rc = lac__commit(s, &op, 1, 0, err);
	if (rc < 0) {
		lac__error_prepend(err, "raise id high-water mark");
		return rc;
	}
	s->id_high_water = from + op.count;
	return 0;
}

static int take(struct lac_store *s, uint64_t *ret_id, struct lac_error *err)
{
	int rc = 0;

	pthread_mutex_lock(&s->ids_lock);
	if (s->next_id >= s->id_high_water)
		rc = raise_high_water(s, err);
	if (rc == 0)
		*ret_id = s->next_id++;
	pthread_mutex_unlock(&s->ids_lock);
	return rc;
}

int lac__id_take(struct lac_store *s, uint64_t *ret_id, struct lac_error *err)
{
	int rc = 0;

	/* After a clean close ids go on exactly where they ended, by what the super says. It must
	   not say so any more when one is out of which no record may ever tell. */
	if (s->marked_clean && lac__rule(LAC__RULE_HIGH_WATER))
		rc = lac__super_unclean(s, err);
	if (rc == 0)
		rc = take(s, ret_id, err);
	if (rc == -ENOSPC && lac__checkpoint_for_space(s))
		rc = take(s, ret_id, err);
	return rc;
}

bool lac__index_retired(
	struct lac_store *s, uint64_t index_page, int *ret_rc, struct lac_error *err)
{
	struct lac__page_ref ref = {
		.kind = LAC__PAGE_RETIRED, .no = index_page / LAC__RETIRED_BITS};
	uint64_t bit = index_page % LAC__RETIRED_BITS;
	struct lac__cached *cached;
	bool retired;

	*ret_rc = lac__pages_get(s->pages, &ref, &cached, err);
	if (*ret_rc < 0)
		return false;
	lac__pages_lock(s->pages);
	retired = cached->page.body[bit / 8] >> (bit % 8) & 1;
	lac__pages_unlock(s->pages);
	lac__pages_put(s->pages, cached);
	return retired;
}

int lac__page_zero_check(
	struct lac_store *s, uint64_t index_page, struct lac__entry *ret, struct lac_error *err)
{
	int rc;

	if (!lac__rule(LAC__RULE_ZERO_PAGE) || lac__index_retired(s, index_page, &rc, err)) {
		memset(ret, 0, sizeof *ret);
		ret->state = LAC__ENTRY_DEAD;
		return 0;
	}
	if (rc < 0)
		return rc;
	return lac__error_set(err, -EBADMSG, LAC_REASON_PAGE_LOST, 0, LAC__PAGE_BYTES,
		"read index: page %" PRIu64 " was never written, though its ids were given out",
		index_page);
}
