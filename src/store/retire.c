/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/retire.c - index pages whose ids are all dead give their space back too.
 *
 * RETIRE is recorded first; the page is punched when redo begins after that record, because until
 * then redo may need the page as its base (rule 4.16). Of its two slots the older goes first,
 * durably: it may hold entries that lived then, and would be taken for the page if it outlived the
 * other. From then on a page of zeros with its bit set in the list is known to be one of dead ids,
 * and a page of zeros without it is damage.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/internal.h"

static int remember(struct lac_store *s, uint64_t page, uint64_t lsn)
{
	if (s->retired_count == s->retired_room) {
		size_t room = s->retired_room ? s->retired_room * 2 : 64;
		struct lac__retired *grown = realloc(s->retired, room * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		s->retired = grown;
		s->retired_room = room;
	}
	s->retired[s->retired_count++] = (struct lac__retired){.page = page, .lsn = lsn};
	return 0;
}

static int retire_one(struct lac_store *s, uint64_t page, struct lac_error *err)
{
	struct lac__page_ref ref = {.kind = LAC__PAGE_RETIRED, .no = page / LAC__RETIRED_BITS};
	struct lac__op op = {.type = LAC__OP_RETIRE, .first = page};
	uint64_t lsn = 0;
	int rc;

	if (lac__index_retired(s, page, &rc, err) || rc < 0)
		return rc;
	rc = lac__store_made(s, lac__pages_reserve(s->pages, &ref, err), err);
	if (rc == -ENOSPC)
		return 0; /* a page less retired is no failure */
	if (rc == 0)
		rc = lac__commit_sequence(s, &op, 1, LAC__COMMIT_RESERVE, &lsn, NULL, err);
	if (rc == 0)
		rc = lac__commit_wait(s, lsn, err);
	return rc < 0 ? rc : remember(s, page, lsn);
}

/* A failed punch costs the space of a page and nothing else. */
static int punch_slot(
	struct lac_store *s, uint64_t page, unsigned slot, bool *ret_done, struct lac_error *err)
{
	struct lac__page_ref ref = {.kind = LAC__PAGE_INDEX, .no = page};
	char path[LAC__NAME_BYTES];
	struct lac__held *held;
	uint64_t in_file;
	int rc;

	lac__name_page(&ref, path, &in_file);
	rc = lac__files_hold(s->files, path, LAC_OPEN_WRITE, &held, err);
	if (rc < 0)
		return rc;
	*ret_done = lac__punch(lac__held_file(held), lac__page_slot_offset(in_file, slot),
			    LAC__PAGE_BYTES) == 0;
	if (*ret_done)
		lac__held_wrote(held);
	lac__files_release(held);
	return 0;
}

static int punch_older(struct lac_store *s, struct lac__retired *r, struct lac_error *err)
{
	struct lac__page_ref ref = {.kind = LAC__PAGE_INDEX, .no = r->page};
	bool done = false;
	int rc = lac__pages_base(s->pages, &ref, &r->base, err);

	if (rc == 0 && r->base >= 0)
		rc = punch_slot(s, r->page, !r->base, &done, err);
	if (!done)
		r->base = -1;
	return rc;
}

/* The first `count` that are retired. */
static int punch_pages(struct lac_store *s, size_t count, struct lac_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = punch_older(s, &s->retired[i], err);
	if (rc == 0 && count > 0) {
		rc = lac__files_sync(s->files, LAC__NAME_INDEX "/", err);
		if (rc < 0)
			lac__store_poison(s, rc, err);
	}
	for (size_t i = 0; i < count && rc == 0; i++) {
		bool done;

		if (s->retired[i].base >= 0)
			rc = punch_slot(
				s, s->retired[i].page, (unsigned)s->retired[i].base, &done, err);
	}
	return rc;
}

int lac__retire_pages(struct lac_store *s, struct lac_error *err)
{
	size_t ripe = 0;
	int rc;

	/* They are in order of LSN. */
	while (ripe < s->retired_count && s->retired[ripe].lsn < s->super.redo_lsn)
		ripe++;
	rc = punch_pages(s, ripe, err);
	s->retired_count -= ripe;
	if (ripe > 0)
		memmove(s->retired, s->retired + ripe, s->retired_count * sizeof *s->retired);
	while (rc == 0) {
		uint64_t page;

		pthread_mutex_lock(&s->seq_lock);
		if (s->retirable_count == 0) {
			pthread_mutex_unlock(&s->seq_lock);
			break;
		}
		page = s->retirable[--s->retirable_count];
		pthread_mutex_unlock(&s->seq_lock);
		rc = retire_one(s, page, err);
	}
	return rc;
}
