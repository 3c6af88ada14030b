/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim.h - the backend that lies: a filesystem in memory that keeps what was not synced apart,
 * and breaks in every way a disk, a kernel and a power cut can. Built into the tests only.
 *
 * Model. Each file has a durable image and an ordered list of unsynced atoms (writes cut into
 * 512-byte sectors, size changes, allocations, punches); each directory has durable entries and a
 * list of unsynced changes. A read sees all of it. sync moves a file's atoms into its image;
 * sync_dir does so for a directory. Creating a file makes its content syncable at once, but its
 * name needs sync_dir (a synced new file whose directory was not synced may be nameless after a
 * crash).
 *
 * A crash state is a choice for every unsynced atom: kept, dropped, torn at sector granularity, or
 * trashed (its sectors hold garbage); names likewise, in order or not. lac__sim_crash makes the
 * filesystem after the crash as a new, independent sim. Images share pages by reference count, so
 * that thousands of crash states of one moment are cheap.
 *
 * After a failed sync (fault LAC__SIM_SYNC_REVERT) reads go on showing the new bytes, the next sync
 * succeeds, and a crash, a restart or drop_cache brings the old bytes back: what XFS and ext4 do.
 */
#ifndef LAC_IO_SIM_H
#define LAC_IO_SIM_H

#include <stdbool.h>

#include "lacuna/backend.h"

struct lac__sim_options {
	uint64_t capacity_bytes;	/* space of the simulated disk; 0 = unlimited */
	uint32_t block_bytes;		/* filesystem block, default 4096 */
	uint32_t physical_sector_bytes; /* default 512: the tear unit that place_info reports */
	bool no_punch;			/* punch gives EOPNOTSUPP */
	bool useless_punch;		/* punch returns 0, zeroes the bytes, frees nothing */
	bool no_allocate;		/* allocate gives EOPNOTSUPP */
	bool copy_on_write;		/* overwriting needs new space, as on btrfs */
	uint64_t filesystem_id;		/* what place_info says */
};

int lac__sim_new(const struct lac__sim_options *options, struct lac_backend **ret);
void lac__sim_free(struct lac_backend *be);

/* Kinds of operation, for counting and for choosing where a fault strikes. */
enum lac__sim_op {
	LAC__SIM_OPEN,
	LAC__SIM_CLOSE,
	LAC__SIM_READ,
	LAC__SIM_WRITE,
	LAC__SIM_SYNC,
	LAC__SIM_ALLOCATE,
	LAC__SIM_PUNCH,
	LAC__SIM_TRUNCATE,
	LAC__SIM_RENAME,
	LAC__SIM_UNLINK,
	LAC__SIM_MKDIR,
	LAC__SIM_RMDIR,
	LAC__SIM_SYNC_DIR,
	LAC__SIM_LIST,
	LAC__SIM_INFO,
	LAC__SIM_LOCK,
	LAC__SIM_OPS
};

/* Operations done so far, of one kind, or of all when kind is LAC__SIM_OPS. */
uint64_t lac__sim_count(struct lac_backend *be, enum lac__sim_op kind);

/* Called before every operation that changes something (write, sync, allocate, punch, truncate,
   rename, unlink, mkdir, rmdir, sync_dir, open with CREATE); number counts them from 0. From here
   the test makes crash states. */
void lac__sim_on_change(
	struct lac_backend *be, void (*hook)(void *arg, uint64_t number), void *arg);

/* ---- crash ---- */

enum lac__sim_crash_mode {
	LAC__SIM_DROP_ALL, /* nothing unsynced survives */
	LAC__SIM_KEEP_ALL, /* everything does */
	LAC__SIM_SEEDED,   /* every atom by the seed: kept, dropped, torn or trashed */
	LAC__SIM_PREFIX,   /* the first `seed` atoms in order of issue survive, the rest not */
	LAC__SIM_MISS_ONE, /* all but atom number `seed` survive */
	LAC__SIM_ONLY_ONE, /* only atom number `seed` survives */
	LAC__SIM_KILL, /* the process dies, the machine does not: unsynced bytes stay cached (and
			  unsynced in the new sim), locks are gone */
};

/* Unsynced atoms at this moment, over all files and directories. */
uint64_t lac__sim_unsynced(struct lac_backend *be);
/* The filesystem after a crash now; the original goes on unharmed, with open files and all. Faults
   and hooks are not inherited. */
int lac__sim_crash(struct lac_backend *be, enum lac__sim_crash_mode mode, uint64_t seed,
	struct lac_backend **ret);

/* ---- faults ---- */

enum lac__sim_fault {
	LAC__SIM_ERRNO,	      /* the call fails with `value` (positive errno), nothing done */
	LAC__SIM_SHORT,	      /* read or write does `value` bytes only (at least 1), returns that */
	LAC__SIM_LOST,	      /* write returns success, changes nothing */
	LAC__SIM_MISDIRECT,   /* write goes to offset + value of the same file instead */
	LAC__SIM_STALE,	      /* read returns what was there before the last sync of those bytes */
	LAC__SIM_SYNC_REVERT, /* sync fails with EIO; see above */
	LAC__SIM_SYNC_LANDED, /* sync fails with EIO, though everything reached the disk */
	LAC__SIM_SYNC_HALF,   /* sync fails with EIO, every other atom reached the disk */
};

/* Fault strikes the n-th (from 0) coming operation of kind (LAC__SIM_OPS = any for which the fault
   makes sense); with forever also all later ones of that kind. path_prefix limits it, NULL = any.
   Up to 8 faults are armed at a time; lac__sim_heal disarms all. Returns false where 8 are. */
bool lac__sim_arm(struct lac_backend *be, enum lac__sim_op kind, const char *path_prefix,
	uint64_t n, bool forever, enum lac__sim_fault fault, int64_t value);
void lac__sim_heal(struct lac_backend *be);
/* Armed faults that have struck so far. */
uint64_t lac__sim_struck(struct lac_backend *be);

/* ---- direct access for damage and inspection: durable image and cache alike ---- */

int lac__sim_peek(
	struct lac_backend *be, const char *path, uint64_t offset, void *ret, size_t length);
int lac__sim_poke(struct lac_backend *be, const char *path, uint64_t offset, const void *bytes,
	size_t length);
/* Sticky unreadable range: reads that touch it give EIO, a write over it heals it. */
int lac__sim_unreadable(struct lac_backend *be, const char *path, uint64_t offset, uint64_t length);
/* Exact copy of everything, durable and not (locks and handles are not copied). */
int lac__sim_clone(struct lac_backend *be, struct lac_backend **ret);
/* A hash of every path and byte as a read would see it: equal hashes = nothing changed (P6). */
uint64_t lac__sim_digest(struct lac_backend *be);
uint64_t lac__sim_used_bytes(struct lac_backend *be);
void lac__sim_set_capacity(struct lac_backend *be, uint64_t capacity_bytes);
/* All coming changes fail with EROFS. */
void lac__sim_set_read_only(struct lac_backend *be, bool read_only);
/* Descriptors open now, and the most there ever were. */
unsigned lac__sim_open_files(struct lac_backend *be, unsigned *ret_most);

#endif
