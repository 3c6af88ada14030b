/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index/pages.h - the metadata pages in memory: a cache with a budget, dirty pages held until a
 * checkpoint, two slots on disk.
 *
 * Invariants (cited as I1.. in pages.c):
 *   I1 a page is in the cache at most once; while it is pinned, dirty or being written it stays.
 *   I2 the slot that a checkpoint writes is never the base slot (rule 4.5).
 *   I3 a page is written only when its LSN is durable (rule 4.4).
 *   I4 at most one checkpoint is under way.
 *   I5 only clean, unpinned pages are evicted; so a page is written once per checkpoint (4.5).
 *
 * Locks: one mutex guards table, list and the contents of all pages; it is never held over I/O.
 */
#ifndef LAC_INDEX_PAGES_H
#define LAC_INDEX_PAGES_H

#include "format/page.h"
#include "io/files.h"

struct lac__pages;

struct lac__cached {
	struct lac__page page; /* read and changed between lac__pages_lock and _unlock only */
	uint64_t rec_lsn;      /* first LSN that made it dirty; 0 = clean */
	uint64_t mark;	       /* free for the holder; recovery notes the record it is in */
	/* private to pages.c */
	unsigned pins;
	uint8_t state;
	int8_t base, write_slot;
	bool writing, zero_on_disk;
	int load_error;
	struct lac__cached *hash_next, *older, *newer, *dirty_prev, *dirty_next;
};

/* budget_pages is a bound for clean pages; dirty and pinned ones may exceed it. checkpoint is the
   super's number. */
int lac__pages_new(struct lac__files *files, const struct lac__uuid *uuid, uint64_t budget_pages,
	uint64_t checkpoint, struct lac__pages **ret);
void lac__pages_free(struct lac__pages *pages);

/*
 * Pins the page, loading it when needed. A page without any slot is the zero page (lsn 0). -EBADMSG
 * (PAGE_LOST) when one of its slots does not verify: after recovery both do or are zeros, so what
 * was in the bad one may be newer than what is in the other (P3). The errno of the read when it
 * can't be read (never taken for a missing page: P13).
 */
int lac__pages_get(struct lac__pages *pages, const struct lac__page_ref *ref,
	struct lac__cached **ret, struct lac_error *err);
/*
 * The same for redo. A checkpoint that a crash cut short leaves torn slots, only of pages that have
 * a record for redo; the chain of LSNs then proves the other slot. Where that record is the page's
 * first (its previous LSN is 0), there need be no valid slot at all, and the page is zero.
 */
int lac__pages_get_redo(struct lac__pages *pages, const struct lac__page_ref *ref, bool first,
	struct lac__cached **ret, struct lac_error *err);
void lac__pages_put(struct lac__pages *pages, struct lac__cached *cached);
/* The slot that stands for the page on disk as of the last checkpoint, -1 without one. What the
   other slot holds is older and of no use. */
int lac__pages_base(struct lac__pages *pages, const struct lac__page_ref *ref, int *ret_base,
	struct lac_error *err);

void lac__pages_lock(struct lac__pages *pages);
void lac__pages_unlock(struct lac__pages *pages);
/* The page must be written by the next checkpoint, since record lsn touches it; its LSN stays.
 * Under lock. */
void lac__pages_dirty(struct lac__pages *pages, struct lac__cached *cached, uint64_t lsn);
/* The content of a pinned page changes by record lsn; called under lock; sets page.lsn when lsn is
 * above it. */
void lac__pages_changed(struct lac__pages *pages, struct lac__cached *cached, uint64_t lsn);

/* Makes the file of the page exist, with real space for both slots of every page up to ref's,
   durably (rule 4.13). */
int lac__pages_reserve(
	struct lac__pages *pages, const struct lac__page_ref *ref, struct lac_error *err);
/* Drops every page of the maps of container from the cache, dirty or not: its file is going to be
 * unlinked. */
void lac__pages_drop_container(struct lac__pages *pages, uint32_t container);

/*
 * Writes every page that became dirty before before_lsn as checkpoint `number` and syncs their
 * files. durable(arg, lsn) is called before a page of that LSN is written and returns when the
 * journal is that far (I3). *ret_max_lsn gets the largest LSN written, 0 without one. The caller
 * then writes the super and calls _done. After a failure the cache is good for reading only.
 */
int lac__pages_checkpoint(struct lac__pages *pages, uint64_t number, uint64_t before_lsn,
	int (*durable)(void *arg, uint64_t lsn, struct lac_error *err), void *arg,
	uint64_t *ret_max_lsn, struct lac_error *err);
void lac__pages_checkpoint_done(struct lac__pages *pages, uint64_t number);

struct lac__pages_stats {
	uint64_t hits, misses, cached, dirty, dirty_peak, written;
};
void lac__pages_stats(struct lac__pages *pages, struct lac__pages_stats *ret);

#endif
