/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/checker.h - what the phases of one check share.
 *
 * Two kinds of result must never be mixed. What is wrong with the store is a finding, and the
 * phase goes on; what keeps us from looking (no memory, no descriptors, no permission) ends the
 * check with a negative errno, because nothing may be concluded from it (P13).
 *
 * One damage gives one finding where that can be told: what can't be known because of a page that
 * was reported already is called unknown, and what depends on it is not held against others.
 */
#ifndef LAC_CHECK_CHECKER_H
#define LAC_CHECK_CHECKER_H

#include "check/extents.h"
#include "check/overlay.h"
#include "format/container.h"
#include "format/names.h"
#include "format/super.h"
#include "io/files.h"
#include "report/report.h"

#define LAC__CHECK_PATH_BYTES 300 /* a directory's longest name, and the directory */

struct lac__retired;

/* A container as the table says, and what the phases found out about it. */
struct lac__check_container {
	uint32_t id;
	bool unknown;	     /* the entry does not decode: reported */
	bool map_missing;    /* reported */
	bool overlapped;     /* reported */
	bool blocks_unknown; /* an entry that names it does not count: reported */
	struct lac__table_entry entry;
	uint64_t file_bytes;		  /* UINT64_MAX = missing or unreadable: reported */
	uint64_t live_blocks, live_bytes; /* by the index */
	uint64_t need_bytes, need_id;	  /* the block that ends last in the file */
};

struct lac__page_range {
	uint64_t no, count;
};

/* Pages of one kind about which nothing is known, in ascending order. */
struct lac__page_ranges {
	struct lac__page_range *at;
	size_t count, room;
};

struct lac__checker {
	struct lac_backend *be;
	struct lac__files *files;
	struct lac__report report;
	struct lac_error *err;
	bool data;

	struct lac__super super;
	bool journal_missing, index_missing, space_missing, data_missing; /* directories */
	bool hopeless; /* what the later phases would say means nothing */

	struct lac__overlay overlay;  /* pages as redo leaves them */
	struct lac__u64_set replayed; /* blocks whose payload recovery writes from the journal */
	uint64_t high_water, next_container; /* the super's, raised by redo */
	uint64_t max_lsn, head_lsn;

	struct lac__check_container *containers; /* by id; those that are NONE are left out */
	size_t container_count, container_room;
	struct lac__page_ranges table_unknown;

	const struct lac__retired *retired; /* index pages, while they are visited; else NULL */
	bool blocks_unknown;		    /* there may be live blocks that no entry told us of */
	struct lac__extents extents;
	uint8_t *piece; /* of a payload, for lac__check_block_data; freed at the end */
	uint64_t blocks, live_bytes;
};

/* The phases, in their order. Each returns 0 whatever it found, or why the check has to end. */
int lac__check_superblock(struct lac__checker *c);
int lac__check_journal(struct lac__checker *c);
int lac__check_containers(struct lac__checker *c);
int lac__check_index(struct lac__checker *c);
int lac__check_space(struct lac__checker *c);

/* The container's row, or NULL; *ret_unknown says that the table's page is not known. */
struct lac__check_container *lac__check_container_find(
	struct lac__checker *c, uint32_t id, bool *ret_unknown);

/*
 * Verifies description and payload of a live block against the container's file. Called for blocks
 * that lie inside the file only.
 */
int lac__check_block_data(struct lac__checker *c, const struct lac__check_container *container,
	uint64_t id, const struct lac__entry *entry);

/* ---- helpers of the phases ---- */

/* rc came from a call on path: reports FILE_UNREADABLE and returns 0 when the file is at fault, and
   fills c->err and returns rc when we are. */
int lac__check_failed(struct lac__checker *c, const char *path, uint64_t offset, int rc);

/* Opens for reading; *ret_held is NULL when it is not there. -errno as from the backend, not yet
 * reported. */
int lac__check_hold(struct lac__checker *c, const char *path, struct lac__held **ret_held,
	uint64_t *ret_size_bytes);

/* The names in a directory, in ascending order. */
struct lac__names {
	char **at;
	size_t count, room;
	bool unknown; /* the directory can't be read: reported */
};
int lac__check_list(struct lac__checker *c, const char *path, struct lac__names *ret);
void lac__names_free(struct lac__names *names);
/* True when name is 8 lower-case hex digits and suffix. */
bool lac__check_name_parse(const char *name, const char *suffix, uint32_t *ret_number);
int lac__check_extra(struct lac__checker *c, const char *dir, const char *name, const char *why);

int lac__page_ranges_add(struct lac__page_ranges *ranges, uint64_t no, uint64_t count);
bool lac__page_ranges_has(const struct lac__page_ranges *ranges, uint64_t no);

/* at grown to hold one more of item_bytes; false when out of memory. */
bool lac__check_grow(void **at, size_t *room, size_t count, size_t item_bytes);

#endif
