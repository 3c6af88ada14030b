/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lacuna/lacuna.h - the block store.
 *
 * A store keeps immutable blocks, each with a 64-bit id, in a directory of its own. Blocks are
 * added and deleted by transactions that are all or nothing; deleting gives the space back to the
 * filesystem.
 *
 * Threads: a store may be used by any number of threads at once. A transaction and an iterator
 * belong to one thread at a time. One process has a store open for writing; a handle is of no use
 * in a forked child (calls there return -EINVAL, reason WRONG_PROCESS), close included.
 *
 * Durability: what lac_txn_commit returned 0 for survives a kill and a power cut, provided that
 * the device honours flushes. A commit that failed is indeterminate unless its error says
 * otherwise: after reopening it is there whole, or not at all.
 *
 * Poison: after the first failed write or sync of journal or metadata, the handle still reads; all
 * changes return the first cause (reason POISONED). Closing and opening again recovers.
 *
 * Option structures begin with their size: set it to sizeof, and every field you do not care for
 * to 0, which means the default. A NULL pointer means all defaults.
 */
#ifndef LACUNA_LACUNA_H
#define LACUNA_LACUNA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/backend.h"
#include "lacuna/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lac_store;
struct lac_txn;
struct lac_put;
struct lac_iter;

/* The release, "major.minor.patch". */
const char *lac_version(void);

/* ---- create, open, close ---- */

struct lac_create_options {
	size_t size;
	uint32_t granule_bytes;	   /* unit of space, 4096..65536, a power of two; default: what the
				      filesystem frees, at least 4096 */
	uint32_t inline_max_bytes; /* a transaction with at most this much payload goes through the
				      journal; 4096..1 MiB, default 64 KiB */
	uint64_t container_bytes;  /* nominal size of a container, 64 KiB..1 TiB, default 1 GiB */
	uint64_t segment_bytes; /* nominal size of a journal segment, 64 KiB..1 GiB, default 16 MiB
				 */
};

/*
 * Makes a store in the directory `path`, which is created when missing and must be empty otherwise
 * (-EEXIST, reason EXISTS). Durable on return. A store that was not finished (crash) is not
 * recognised as one; create again in it is -EEXIST, so remove the directory first.
 */
int lac_store_create(
	const char *path, const struct lac_create_options *options, struct lac_error *err);

enum lac_log_level { LAC_LOG_DEBUG, LAC_LOG_INFO, LAC_LOG_WARNING };

struct lac_open_options {
	size_t size;
	bool no_background; /* no threads of its own: reclaim and checkpoints only within calls */
	uint64_t memory_bytes;	/* budget for metadata pages, at least 1 MiB, default 64 MiB */
	uint64_t journal_bytes; /* a checkpoint begins when redo would read more; default 32 MiB, at
				   most what the segments hold */
	uint32_t open_files; /* descriptors for containers and metadata, at least 8, default 128 */
	bool journal_buffered;	  /* journal through the page cache rather than past it */
	bool journal_whole_pages; /* pad groups to 4096 bytes even where the device tears smaller
				     units */
	uint64_t reclaim_bytes_per_second; /* rate limit of background punching; 0 = none */
	void (*log)(void *arg, int level,
		const char *message); /* any thread; no locks held that a call needs */
	void *log_arg;
	struct lac_backend *backend; /* who brings a storage; NULL = plain files at `path` */
};

/*
 * Opens for writing; recovers first where it was not closed cleanly. Never waits for reclaim and
 * reads no container. -ENOENT (NOT_A_STORE) where there is none, -EBUSY (LOCKED) with the holder's
 * pid in the message, -EOPNOTSUPP for a newer format, -EUCLEAN or -EBADMSG where repair is needed,
 * -EROFS on a read-only filesystem.
 */
int lac_store_open(const char *path, const struct lac_open_options *options,
	struct lac_store **ret_store, struct lac_error *err);

/*
 * Stops background work, writes a checkpoint and seals the journal. The store handle is gone
 * afterwards, whatever is returned; an error means that the next open will recover. No transaction
 * or iterator may be left. NULL is fine.
 */
int lac_store_close(struct lac_store *store, struct lac_error *err);

/* ---- transactions ---- */

int lac_txn_begin(struct lac_store *store, struct lac_txn **ret_txn, struct lac_error *err);

/*
 * Adds a block of length bytes (0..2^47) to the transaction; its id is known at once and valid
 * once the commit returned 0. data is copied or written before return. owner is a tag of the
 * caller's choice. -ENOSPC leaves the transaction usable; the block is not in it.
 */
int lac_txn_put(struct lac_txn *txn, const void *data, size_t length, uint64_t owner,
	uint64_t *ret_id, struct lac_error *err);

/*
 * The same in pieces, for blocks that do not fit into memory: exactly length bytes must be written
 * before lac_put_finish, which adds the block to the transaction and frees put, whatever it
 * returns. lac_put_abort frees it without adding. Several may be open in one transaction.
 */
int lac_put_begin(struct lac_txn *txn, uint64_t length, uint64_t owner, struct lac_put **ret_put,
	struct lac_error *err);
int lac_put_write(struct lac_put *put, const void *data, size_t length, struct lac_error *err);
int lac_put_finish(struct lac_put *put, uint64_t *ret_id, struct lac_error *err);
void lac_put_abort(struct lac_put *put);

/*
 * Deletes block id when the transaction commits. -ENOENT (NO_BLOCK) when there is no such block
 * now; when another transaction deletes it first, the commit passes over it (see
 * ret_deleted of lac_txn_commit). Works on a full disk.
 */
int lac_txn_delete(struct lac_txn *txn, uint64_t id, struct lac_error *err);

/*
 * All or nothing. On 0 durable. -E2BIG, -ENOSPC, -ENOMEM: nothing happened. Any other error:
 * indeterminate, and the handle is poisoned. The transaction is gone in every case.
 */
int lac_txn_commit(struct lac_txn *txn, uint64_t *ret_deleted, struct lac_error *err);
void lac_txn_abort(struct lac_txn *txn); /* NULL is fine */

/* ---- reading ---- */

struct lac_block_info {
	uint64_t id, length, owner;
	uint32_t container; /* where it stands: container and byte offset of its payload */
	uint64_t offset;
	uint32_t checksum; /* CRC32C as stored, seeded with store and id */
	bool packed;
};

int lac_block_stat(struct lac_store *store, uint64_t id, struct lac_block_info *ret_info,
	struct lac_error *err);

/*
 * Reads up to length bytes of block id from offset on; returns the count, 0 at and beyond its end.
 * Verified: -EBADMSG (BLOCK_DAMAGED) and no promise about buffer when the bytes are not those that
 * were put; -ENOENT when there is no such block. A partial read of a block of more than 64 KiB
 * verifies the 64 KiB chunks that it touches, of a shorter one the whole.
 */
int64_t lac_block_read(struct lac_store *store, uint64_t id, void *buffer, size_t length,
	uint64_t offset, struct lac_error *err);

/* Iterates over the live blocks in order of id, from the first above after_id. What is committed or
   deleted meanwhile may or may not be seen. No payload is read. */
struct lac_iter_options {
	size_t size;
	uint64_t after_id;
	bool by_owner; /* only blocks of owner */
	uint64_t owner;
};
int lac_iter_open(struct lac_store *store, const struct lac_iter_options *options,
	struct lac_iter **ret_iter, struct lac_error *err);
/* 0 and a block, or 1 at the end. */
int lac_iter_next(struct lac_iter *iter, struct lac_block_info *ret_info, struct lac_error *err);
void lac_iter_close(struct lac_iter *iter); /* NULL is fine */

/* ---- upkeep ---- */

struct lac_reclaim_result {
	uint64_t punches, punched_bytes;   /* holes made, bytes given back by them */
	uint64_t unlinked, unlinked_bytes; /* whole containers */
	uint64_t truncated_bytes;
	uint64_t waiting_bytes; /* still dead: a reader is there, or too small to free */
};
/* Gives back all the space of deleted blocks that can be given back now; returns when it is done
   and durable. ret_result may be NULL. */
int lac_store_reclaim(
	struct lac_store *store, struct lac_reclaim_result *ret_result, struct lac_error *err);

/* Writes a checkpoint: after that redo has nothing to read of what was committed before. */
int lac_store_checkpoint(struct lac_store *store, struct lac_error *err);

struct lac_store_stats {
	size_t size; /* set by the caller to sizeof */
	uint8_t uuid[16];
	uint32_t format;
	uint32_t granule_bytes;
	uint64_t blocks;
	uint64_t live_bytes;	  /* payload of live blocks */
	uint64_t dead_bytes;	  /* granules waiting for reclaim */
	uint64_t hole_bytes;	  /* given back inside containers that are still there */
	uint64_t file_bytes;	  /* sizes of the container files */
	uint64_t allocated_bytes; /* what the filesystem holds for them (st_blocks * 512) */
	uint64_t containers;	  /* files there now */
	uint64_t next_id;
	uint64_t journal_bytes;	 /* of the journal's files */
	uint64_t metadata_bytes; /* allocated for index, space maps and tables */
	uint64_t lsn_head;	 /* last LSN given out */
	uint64_t checkpoint_lsn; /* redo begins here */
	/* since the store was opened: */
	uint64_t puts, deletes, commits, checkpoints;
	uint64_t punches, punched_bytes, relocated_bytes;
	uint64_t journal_syncs, journal_written_bytes;
	uint64_t page_hits, page_misses, pages_cached, pages_dirty;
};
int lac_store_stat(
	struct lac_store *store, struct lac_store_stats *ret_stats, struct lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
