/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/internal.h - the state of an open store, shared by the files of this layer.
 *
 * Locks, in order of acquisition (a later one may be taken while an earlier one is held):
 *   upkeep_lock      one checkpoint or reclaim at a time
 *   room_lock        one growing, making or sealing of containers at a time
 *   gate             read: from placing the payload of a small transaction until its record has
 *                    an LSN; write: the moment at which a checkpoint draws its line
 *   ids_lock         next_id, id_high_water
 *   containers_lock  containers in memory: tails, open granules, pending ranges
 *   seq_lock         the order of records: validate, append, apply
 *   pages' lock      contents of metadata pages (index/pages.h)
 *   readers_lock     who reads since which epoch
 * The journal's own lock is a leaf. Only upkeep_lock, room_lock and ids_lock are held over a wait
 * for durability.
 *
 * Invariants:
 *   S1 pages hold what is sequenced; a record is applied in the same seq_lock section in which it
 *      got its LSN, so pages change strictly in LSN order (rule 4.2).
 *   S2 an answer that depends on a page is given only when that page's LSN is durable, but for a
 *      live block that the caller could name.
 *   S3 a granule below a container's tail that a transaction has placed but not sequenced is
 *      pinned by a struct lac__pending of its container (rule 4.9).
 *   S4 ids below id_high_water are covered by a durable HIGH_WATER record; others are never
 *      handed out (rule 4.15).
 *   S5 the container file holds real space up to space_bytes, and its map file for those granules
 *      (rule 4.13).
 */
#ifndef LAC_STORE_INTERNAL_H
#define LAC_STORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/public.h"
#include "base/rules.h"
#include "format/container.h"
#include "format/names.h"
#include "format/record.h"
#include "format/super.h"
#include "index/pages.h"
#include "journal/journal.h"
#include "lacuna/lacuna.h"

/* Ranges that a transaction placed in a container and that have no LSN yet. */
struct lac__pending {
	struct lac__container *container;
	uint64_t first_granule;		   /* nothing at or above is reclaimed while this stands */
	struct lac__pending *next;	   /* of the same transaction */
	struct lac__pending *in_container; /* of the same container */
};

/* A container that is or was written in this session. Guarded by containers_lock. */
struct lac__container {
	uint32_t id, kind;
	bool full;		      /* takes no more ranges; waits to be sealed */
	bool swept;		      /* no RESERVED granule of an earlier session is left in it */
	uint64_t tail_bytes;	      /* where the next range begins */
	uint64_t swept_below;	      /* granules that an earlier session may have reserved */
	uint64_t space_bytes;	      /* S5 */
	unsigned open_blocks;	      /* packed: blocks in the granule that the tail is in */
	uint64_t description_granule; /* aligned: takes further descriptions; 0 = none open */
	unsigned descriptions;	      /* used in it */
	struct lac__pending *pending;
	struct lac__container *next;
};

/* An index page whose RETIRE record has this LSN. */
struct lac__retired {
	uint64_t page, lsn;
	int base; /* while it is punched: the slot that goes last, -1 = none may go any more */
};

struct lac__reader {
	uint64_t epoch;
	struct lac__reader *prev, *next;
};

struct lac_store {
	struct lac_backend *backend;
	bool own_backend;
	void *lock;
	pid_t pid;
	unsigned forks; /* of this process line when it was opened */
	struct lac_open_options options;
	struct lac__files *files;
	struct lac__pages *pages;
	struct lac__journal *journal;
	struct lac__uuid uuid;
	uint32_t granule_bytes, inline_max_bytes;
	uint64_t container_bytes, segment_bytes;
	uint64_t pages_budget;

	pthread_mutex_t upkeep_lock;
	struct lac__super super;      /* of the last checkpoint; upkeep_lock */
	struct lac__retired *retired; /* upkeep_lock: retired, not yet punched */
	size_t retired_count, retired_room;
	bool leftovers; /* room_lock: containers in CREATING or DROPPING to be finished */

	pthread_mutex_t room_lock;
	pthread_rwlock_t gate;

	pthread_mutex_t ids_lock;
	uint64_t next_id;
	_Atomic uint64_t id_high_water;
	_Atomic bool
		marked_clean; /* the super on disk says that the last session's next_id is exact */

	pthread_mutex_t containers_lock;
	struct lac__container *containers;
	struct lac__container *open_container[3]; /* by kind */

	pthread_mutex_t seq_lock;
	uint32_t next_container;       /* seq_lock */
	uint64_t sequenced_high_water; /* seq_lock: as of the last LSN */
	uint64_t *retirable;	       /* seq_lock: index pages that became all dead */
	size_t retirable_count, retirable_room;
	_Atomic uint64_t sequenced_lsn;

	pthread_mutex_t readers_lock;
	pthread_cond_t readers_gone;
	uint64_t epoch;
	struct lac__reader *oldest_reader, *newest_reader;

	pthread_t upkeep_thread;
	bool upkeep_running;
	pthread_mutex_t wake_lock;
	pthread_cond_t wake;
	_Atomic bool stop;
	bool woken;

	_Atomic uint64_t puts, deletes, commits, checkpoints, punches, punched_bytes;
	_Atomic uint64_t dead_hint;  /* granules that became dead since the last reclaim */
	bool punch_refused;	     /* upkeep_lock: said once */
	int punch_failed;	     /* upkeep_lock: why the reclaim at hand stops punching */
	bool reclaim_paced;	     /* upkeep_lock */
	bool place_changed;	     /* upkeep_lock: another filesystem than the one last probed */
	_Atomic bool whole_extents;  /* part of a preallocated extent can't be freed here */
	uint64_t reclaim_unit_bytes; /* upkeep_lock: what a punch must cover to free anything; 0 =
					none does */
};

/* store.c */
/* lac_store_create on a backend; tests use it. */
int lac__store_create_on(
	struct lac_backend *be, const struct lac_create_options *options, struct lac_error *err);
int lac__store_own_process(struct lac_store *s, struct lac_error *err);
int lac__store_usable(struct lac_store *s, struct lac_error *err);
void lac__store_log(struct lac_store *s, int level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Poisons with err's cause unless the error is one of a single transaction; returns code. */
int lac__store_poison(struct lac_store *s, int code, struct lac_error *err);
/* Returns rc, the result of making or extending a file, and poisons where that was a failed write
   or sync rather than a lack of space, memory or descriptors (P5). */
int lac__store_made(struct lac_store *s, int rc, struct lac_error *err);
int lac__super_write(struct lac_store *s, const struct lac__super *super, struct lac_error *err);
/* From here on a crash is a crash: the super no longer says that the store was closed cleanly. */
int lac__super_unclean(struct lac_store *s, struct lac_error *err);

/* commit.c */
enum lac__commit_flags {
	LAC__COMMIT_RESERVE = 1, /* may use the journal's reserve */
};
/*
 * Sequences ops as one record and applies it. DELETE ops need only their id; those of blocks that
 * are not live are left out and counted in *ret_missing. ops are changed (turned is filled in).
 * Nothing is durable yet: see lac__commit_wait. *ret_lsn is 0 when nothing was left to record.
 * -ENOSPC, -E2BIG, -ENOMEM, -EUCLEAN leave no trace.
 */
int lac__commit_sequence(struct lac_store *s, struct lac__op *ops, size_t count, unsigned flags,
	uint64_t *ret_lsn, uint64_t *ret_missing, struct lac_error *err);
int lac__commit_wait(struct lac_store *s, uint64_t lsn, struct lac_error *err);
/* Both. */
int lac__commit(struct lac_store *s, struct lac__op *ops, size_t count, unsigned flags,
	struct lac_error *err);
/* The entry of id as sequenced; *ret_page_lsn is its page's LSN. -ENOENT beyond the high water. */
int lac__entry_lookup(struct lac_store *s, uint64_t id, struct lac__entry *ret,
	uint64_t *ret_page_lsn, struct lac_error *err);

/* ids.c */
/* Called when the index page of an entry was never written: rule 4.16 says whether that is damage.
   Where the page is retired *ret becomes a dead entry. */
int lac__page_zero_check(
	struct lac_store *s, uint64_t index_page, struct lac__entry *ret, struct lac_error *err);
bool lac__index_retired(
	struct lac_store *s, uint64_t index_page, int *ret_rc, struct lac_error *err);
int lac__id_take(struct lac_store *s, uint64_t *ret_id, struct lac_error *err);

/* container.c */
/* Where one block goes. length and kind are given, the rest is found. */
struct lac__placing {
	uint64_t length;
	uint32_t kind;
	uint32_t container, distance;
	uint64_t description_offset, offset;
};
/*
 * Places all blocks of a small transaction, or none: -EAGAIN when the open containers have no room
 * and lac__container_make_room is needed first. Pins them with *pending. Gate held for reading.
 */
int lac__container_place(struct lac_store *s, struct lac__placing *placing, size_t count,
	struct lac__pending **pending, struct lac_error *err);
/* Bytes that a block may need at most in a container of its kind. */
uint64_t lac__container_need(const struct lac_store *s, uint32_t kind, uint64_t length);
/* A range of whole granules for a large transaction, reserved durably (rule 4.12). */
int lac__container_reserve(struct lac_store *s, uint32_t kind, uint64_t granules,
	struct lac__pending **pending, uint32_t *ret_container, uint64_t *ret_first_granule,
	struct lac_error *err);
/* Makes the open container of kind have real space for bytes more, beginning a new container where
 * it is full. */
int lac__container_make_room(
	struct lac_store *s, uint32_t kind, uint64_t bytes, struct lac_error *err);
void lac__pending_drop(struct lac_store *s, struct lac__pending *pending);
/* Granules at or above the result are pinned (S3); UINT64_MAX when the container isn't in use. */
uint64_t lac__container_pinned_from(struct lac_store *s, uint32_t id);
/* Closes every granule that is open for appending (rule 4.8). Gate held for writing. */
void lac__containers_close_granules(struct lac_store *s);
/* Seals containers that are full and have nothing pending; unlinks what was left half made or half
 * dropped. upkeep_lock held. */
int lac__containers_tidy(struct lac_store *s, struct lac_error *err);
/* At the end of a session: gives back what was allocated ahead and not used. */
void lac__containers_trim(struct lac_store *s);
int lac__containers_load(struct lac_store *s, struct lac_error *err);
void lac__containers_free(struct lac_store *s);
int lac__container_drop(struct lac_store *s, uint32_t id, struct lac_error *err);
/* Gives back what an earlier session allocated beyond the nominal end, for a long block that never
 * came. */
int lac__container_trim(struct lac_store *s, struct lac__container *c, struct lac_error *err);
int lac__table_entry_get(struct lac_store *s, uint32_t id, struct lac__table_entry *ret,
	uint64_t *ret_page_lsn, struct lac_error *err);
/* Writes at an offset of a container; not durable. */
int lac__container_write(struct lac_store *s, uint32_t container, const void *bytes, size_t length,
	uint64_t offset, struct lac_error *err);
int lac__container_hold(
	struct lac_store *s, uint32_t id, struct lac__held **ret, struct lac_error *err);

/* checkpoint.c */
int lac__checkpoint(struct lac_store *s, bool clean, struct lac_error *err); /* upkeep_lock held */
/* Begins one where dirty pages or the journal ask for it; called after commits. */
int lac__checkpoint_if_due(struct lac_store *s, struct lac_error *err);
bool lac__checkpoint_due(struct lac_store *s);
/* The journal may be full of what a checkpoint makes obsolete: true when one was made and a second
   try is worth it. No lock of the store held. */
bool lac__checkpoint_for_space(struct lac_store *s);

/* recover.c */
int lac__recover(struct lac_store *s, struct lac__jscan_end *ret_end, struct lac_error *err);
void lac__journal_options_of(struct lac_store *s, struct lac__journal_options *ret);

/* read.c */
void lac__reader_enter(struct lac_store *s, struct lac__reader *reader);
void lac__reader_leave(struct lac_store *s, struct lac__reader *reader);
void lac__readers_wait(struct lac_store *s); /* until all that are in now have left */

/* block.c: what stands beside a payload */
struct lac__op;
/* The description of the block that op puts, at own_offset of op->container. */
void lac__block_describe(const struct lac__uuid *uuid, const struct lac__op *op,
	uint64_t own_offset, void *ret_bytes);
/* Fills a zeroed chunk table. */
void lac__block_table_fill(const struct lac__uuid *uuid, uint64_t id, const uint8_t *payload,
	uint64_t length, void *table);
/* Block checksum of a whole payload; -ENOMEM. */
int lac__block_checksum_of(const struct lac__uuid *uuid, uint64_t id, const uint8_t *payload,
	uint64_t length, uint32_t *ret);

/* txn.c */
uint32_t lac__kind_for(const struct lac_store *s, uint64_t length);

/* retire.c: upkeep_lock held. Punches retired pages that redo is past, retires those that can be.
 */
int lac__retire_pages(struct lac_store *s, struct lac_error *err);

/* reclaim.c: upkeep_lock held */
/* Gives up what an earlier session had reserved and not used. */
int lac__containers_sweep(struct lac_store *s, struct lac_error *err);
int lac__reclaim(struct lac_store *s, struct lac_reclaim_result *result, struct lac_error *err);

/* upkeep.c */
int lac__upkeep_start(struct lac_store *s);
void lac__upkeep_stop(struct lac_store *s);
void lac__upkeep_wake(struct lac_store *s);

#endif
