/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/checkpoint.c - changed pages go to their other slot, then the super says so.
 *
 * The line: under the gate, R is the next LSN and every granule that could still take a block is
 * closed. Whatever has an LSN below R is then made durable in its place, in this order:
 *   1. the journal up to R (pages follow the journal, rule 4.4),
 *   2. the containers: payloads below R are in the journal only until here,
 *   3. the pages, in slots that the current super does not rely on (rule 4.5),
 *   4. the super, in the copy that is not current: from here redo begins at R,
 *   5. only then are the segments below R released.
 * A crash before 4 is durable finds the old super with all that it needs; after it, the new one.
 * Commits go on meanwhile; a page may be written with an LSN above R, which redo then skips.
 */
#include <errno.h>
#include <string.h>

#include "store/internal.h"

int lac__super_write(struct lac_store *s, const struct lac__super *super, struct lac_error *err)
{
	uint8_t page[LAC__PAGE_BYTES];
	struct lac__held *held;
	int rc = lac__files_hold(s->files, LAC__NAME_SUPER, LAC_OPEN_WRITE, &held, err);

	if (rc < 0)
		return rc;
	lac__super_encode(super, page);
	rc = lac__write_full(lac__held_file(held), page, sizeof page,
		(uint64_t)super->copy * LAC__SLOT_STRIDE_BYTES);
	if (rc < 0) {
		lac__error_sys(err, rc, "write super: copy %" PRIu32, super->copy);
	} else {
		lac__held_wrote(held);
		rc = lac__held_sync(held, err);
	}
	lac__files_release(held);
	return rc;
}

int lac__super_unclean(struct lac_store *s, struct lac_error *err)
{
	struct lac__super super;
	int rc = 0;

	pthread_mutex_lock(&s->upkeep_lock);
	super = s->super;
	if (super.flags & LAC__SUPER_CLEAN) {
		super.checkpoint++;
		super.copy = !super.copy;
		super.flags &= ~(uint32_t)LAC__SUPER_CLEAN;
		super.end_lsn = 0;
		rc = lac__super_write(s, &super, err);
		if (rc < 0) {
			lac__store_poison(s, rc, err);
		} else {
			s->super = super;
			lac__pages_checkpoint_done(s->pages, super.checkpoint);
		}
	}
	if (rc == 0)
		s->marked_clean = false;
	pthread_mutex_unlock(&s->upkeep_lock);
	return rc;
}

struct line {
	uint64_t redo_lsn, high_water;
	uint32_t next_container;
};

static void draw_line(struct lac_store *s, struct line *line)
{
	pthread_rwlock_wrlock(&s->gate);
	if (lac__rule(LAC__RULE_TEAR_UNIT))
		lac__containers_close_granules(s);
	pthread_mutex_lock(&s->seq_lock);
	line->redo_lsn = lac__journal_next_lsn(s->journal);
	line->high_water = s->sequenced_high_water;
	line->next_container = s->next_container;
	pthread_mutex_unlock(&s->seq_lock);
	pthread_rwlock_unlock(&s->gate);
}

static int wait_durable(void *arg, uint64_t lsn, struct lac_error *err)
{
	struct lac_store *s = arg;

	return lac__commit_wait(s, lsn, err);
}

static int write_checkpoint(
	struct lac_store *s, const struct line *line, bool clean, struct lac_error *err)
{
	struct lac__super super = s->super;
	uint64_t max_lsn = 0;
	int rc = 0;

	if (line->redo_lsn > 1 && lac__rule(LAC__RULE_PAGES_FOLLOW))
		rc = lac__commit_wait(s, line->redo_lsn - 1, err);
	if (rc == 0)
		rc = lac__files_sync(s->files, LAC__NAME_DATA "/", err);
	super.checkpoint++;
	super.copy = !super.copy;
	if (rc == 0)
		rc = lac__pages_checkpoint(
			s->pages, super.checkpoint, line->redo_lsn, wait_durable, s, &max_lsn, err);
	if (rc < 0)
		return rc;
	if (max_lsn > super.max_page_lsn)
		super.max_page_lsn = max_lsn;
	super.redo_lsn = line->redo_lsn;
	super.journal_seq = lac__journal_seq_of(s->journal, line->redo_lsn);
	super.id_high_water = line->high_water;
	super.next_container = line->next_container;
	pthread_mutex_lock(&s->ids_lock);
	super.next_id = s->next_id < line->high_water ? s->next_id : line->high_water;
	pthread_mutex_unlock(&s->ids_lock);
	super.flags = clean ? LAC__SUPER_CLEAN : 0;
	super.end_lsn = clean ? line->redo_lsn - 1 : 0;
	rc = lac__super_write(s, &super, err);
	if (rc < 0)
		return rc;
	s->super = super;
	lac__pages_checkpoint_done(s->pages, super.checkpoint);
	s->checkpoints++;
	return lac__journal_release(s->journal, super.redo_lsn, err);
}

static bool nothing_to_do(const struct lac_store *s, const struct line *line, bool clean)
{
	if (line->redo_lsn != s->super.redo_lsn)
		return false;
	return !clean || ((s->super.flags & LAC__SUPER_CLEAN) && s->super.next_id == s->next_id);
}

int lac__checkpoint(struct lac_store *s, bool clean, struct lac_error *err)
{
	struct line line;
	int rc = lac__journal_poisoned(s->journal, err);

	if (rc < 0)
		return rc;
	draw_line(s, &line);
	if (nothing_to_do(s, &line, clean))
		return 0;
	rc = write_checkpoint(s, &line, clean, err);
	if (rc < 0) {
		lac__error_prepend(err, "checkpoint %" PRIu64, s->super.checkpoint + 1);
		lac__store_poison(s, rc, err);
	}
	return rc;
}

bool lac__checkpoint_due(struct lac_store *s)
{
	struct lac__pages_stats stats;

	lac__pages_stats(s->pages, &stats);
	return stats.dirty > s->pages_budget / 2 || lac__journal_pressed(s->journal) ||
	       lac__journal_live_bytes(s->journal) > s->options.journal_bytes;
}

int lac__checkpoint_if_due(struct lac_store *s, struct lac_error *err)
{
	struct lac__pages_stats stats;
	int rc = 0;

	if (!lac__checkpoint_due(s))
		return 0;
	lac__pages_stats(s->pages, &stats);
	if (s->upkeep_running && stats.dirty <= s->pages_budget) {
		lac__upkeep_wake(s);
		return 0;
	}
	pthread_mutex_lock(&s->upkeep_lock);
	if (lac__checkpoint_due(s))
		rc = lac__checkpoint(s, false, err);
	pthread_mutex_unlock(&s->upkeep_lock);
	return rc;
}

bool lac__checkpoint_for_space(struct lac_store *s)
{
	uint64_t before;
	bool made;

	pthread_mutex_lock(&s->upkeep_lock);
	before = s->super.checkpoint;
	made = lac__checkpoint(s, false, NULL) == 0 && s->super.checkpoint > before;
	pthread_mutex_unlock(&s->upkeep_lock);
	return made;
}

LAC_PUBLIC int lac_store_checkpoint(struct lac_store *s, struct lac_error *err)
{
	int rc = lac__store_usable(s, err);

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&s->upkeep_lock);
	rc = lac__containers_tidy(s, err);
	if (rc == 0)
		rc = lac__checkpoint(s, false, err);
	pthread_mutex_unlock(&s->upkeep_lock);
	return rc;
}
