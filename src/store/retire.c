/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/retire.c - index pages whose ids are all dead give their space back too.
 *
 * RETIRE is recorded first; the page is punched when redo begins after that record, because until
 * then redo may need the page as its base (rule 4.16). From then on a page of zeros with its bit
 * set in the list is known to be one of dead ids, and a page of zeros without it is damage.
 */
#include <errno.h>
#include <stdlib.h>

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
	rc = lac__pages_reserve(s->pages, &ref, err);
	if (rc == -ENOSPC)
		return 0; /* a page less retired is no failure */
	if (rc == 0)
		rc = lac__commit_sequence(s, &op, 1, LAC__COMMIT_RESERVE, &lsn, NULL, err);
	if (rc == 0)
		rc = lac__commit_wait(s, lsn, err);
	return rc < 0 ? rc : remember(s, page, lsn);
}

static int punch_one(struct lac_store *s, uint64_t page, struct lac_error *err)
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
	/* A failed punch costs a page of space and nothing else. */
	for (unsigned slot = 0; slot < 2; slot++)
		if (lac__punch(lac__held_file(held), lac__page_slot_offset(in_file, slot),
			    LAC__PAGE_BYTES) == 0)
			lac__held_wrote(held);
	lac__files_release(held);
	return 0;
}

int lac__retire_pages(struct lac_store *s, struct lac_error *err)
{
	size_t kept = 0;
	int rc = 0;

	for (size_t i = 0; i < s->retired_count; i++) {
		if (rc == 0 && s->retired[i].lsn < s->super.redo_lsn)
			rc = punch_one(s, s->retired[i].page, err);
		else
			s->retired[kept++] = s->retired[i];
	}
	s->retired_count = kept;
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
