/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim_internal.h - what the parts of the lying backend share; see io/sim.h for the model.
 *
 * Three images belong to each file: `view` is what reads see, `disk` is what is durable, `before`
 * is what was durable before the last sync of each page. Everything not yet durable is one list of
 * atoms for the whole filesystem, in order of issue; an atom never changes once it is made, so
 * copies of a filesystem share atoms as they share pages.
 *
 * Invariants
 *  S1 While `lost` is false, view == disk + the file's pending atoms, applied in order.
 *  S2 flow_size is the size of disk + the file's pending atoms, lost or not.
 *  S3 Bytes of an image at or beyond its size are zero.
 *  S4 An inode has at most one seen name and one durable name, and a name at most one inode (there
 *     are no hard links); refs counts its names, the names inside it, the pending name changes that
 *     mention it, and its handles. The root has one more.
 *  S5 A page, chunk, root, range list, name or atom with more than one reference is never written.
 */
#ifndef LAC_IO_SIM_INTERNAL_H
#define LAC_IO_SIM_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "io/sim.h"

#define SIM_PAGE	((uint64_t)4096)
#define SIM_CHUNK_PAGES ((uint64_t)64)
#define SIM_CHUNK_BYTES (SIM_PAGE * SIM_CHUNK_PAGES)
#define SIM_SECTOR	((uint64_t)512)
#define SIM_MAX_FILE	((uint64_t)16 << 30)
#define SIM_FAULTS	8
#define SIM_NONE	UINT32_MAX

/* ---- images (sim_image.c) ---- */

enum sim_block {
	SIM_HOLE,
	SIM_RESERVED, /* allocated, never written */
	SIM_WRITTEN,
	SIM_FRESH, /* written since the last sync; told apart under copy_on_write only */
};

struct sim_page {
	atomic_uint refs;
	_Atomic uint64_t hash; /* of the bytes; 0 = not known */
	uint8_t bytes[SIM_PAGE];
};

struct sim_chunk {
	atomic_uint refs;
	struct sim_page *pages[SIM_CHUNK_PAGES];      /* NULL reads as zeros */
	uint8_t blocks[SIM_CHUNK_BYTES / SIM_SECTOR]; /* enum sim_block, by filesystem block */
};

struct sim_root {
	atomic_uint refs;
	size_t count;
	struct sim_chunk *chunks[];
};

struct sim_range {
	uint64_t start, end;
};

struct sim_ranges {
	atomic_uint refs;
	size_t count;
	struct sim_range ranges[];
};

struct sim_image {
	uint64_t size;
	uint64_t allocated_blocks;
	uint32_t block_bytes;
	struct sim_root *root;
	struct sim_ranges *unreadable; /* NULL = none */
};

void lac__sim_image_init(struct sim_image *img, uint32_t block_bytes);
/* *to holds nothing yet, or has been dropped. */
void lac__sim_image_share(struct sim_image *to, const struct sim_image *from);
void lac__sim_image_drop(struct sim_image *img);
void lac__sim_image_read(
	const struct sim_image *img, uint64_t offset, void *buffer, uint64_t length);
/* Bytes only: neither size nor blocks follow. All or nothing, like all below unless said. */
int lac__sim_image_write(
	struct sim_image *img, uint64_t offset, const void *bytes, uint64_t length);
struct sim_page *lac__sim_image_page(const struct sim_image *img, uint64_t index);
/* Puts a shared page (or NULL) in place. */
int lac__sim_image_put_page(struct sim_image *img, uint64_t index, struct sim_page *page);
/* Makes [offset, offset + length) safe to be written without a failure, but for whole pages, which
   are expected to be replaced. */
int lac__sim_image_own(struct sim_image *img, uint64_t offset, uint64_t length);
int lac__sim_image_zero(struct sim_image *img, uint64_t offset, uint64_t length);
/* Sets the size, cuts off bytes and blocks beyond it. */
int lac__sim_image_truncate(struct sim_image *img, uint64_t size);
/* Blocks from `from` to `to` become allocated. */
int lac__sim_image_reserve(struct sim_image *img, uint64_t from, uint64_t to);
/* Gives whole blocks inside [from, to) back. */
int lac__sim_image_release(struct sim_image *img, uint64_t from, uint64_t to);
/* Marks blocks as written in chunks that are owned already. With copies not NULL (copy on write)
   counts there the blocks that needed a new place. */
void lac__sim_image_written(struct sim_image *img, uint64_t from, uint64_t to, uint64_t *copies);
/* The end of the longest [from, x) inside [from, to) that needs at most `blocks` new blocks. */
uint64_t lac__sim_image_fit(const struct sim_image *img, uint64_t from, uint64_t to,
	uint64_t blocks, bool copy_on_write);
/* Ends the difference between fresh and written. */
int lac__sim_image_settle(struct sim_image *img, uint64_t from, uint64_t to);
bool lac__sim_image_unreadable(const struct sim_image *img, uint64_t from, uint64_t to);
int lac__sim_image_spoil(struct sim_image *img, uint64_t from, uint64_t to);
int lac__sim_image_heal(struct sim_image *img, uint64_t from, uint64_t to);
/* Of size and bytes. */
uint64_t lac__sim_image_hash(const struct sim_image *img);

struct sim_page *lac__sim_page_new(void); /* its bytes are not set */
void lac__sim_page_drop(struct sim_page *page);

/* ---- atoms (sim_atom.c) ---- */

enum sim_kind {
	SIM_DATA,     /* bytes, within the size that the image has when it is applied */
	SIM_SIZE,     /* size becomes at least offset */
	SIM_ALLOCATE, /* blocks of [offset, offset + length) */
	SIM_PUNCH,
	SIM_ZERO,     /* a punch that frees nothing */
	SIM_TRUNCATE, /* size becomes offset */
	SIM_RENAME,   /* inode goes from a name (or none) to a name (or none) */
};

struct sim_name {
	atomic_uint refs;
	uint32_t hash;
	size_t length;
	char text[];
};

struct sim_atom {
	atomic_uint refs;
	enum sim_kind kind;
	uint32_t inode;
	uint32_t from, to;		      /* directories; RENAME only, as the names */
	struct sim_name *from_name, *to_name; /* NULL = none */
	uint64_t offset, length;
	size_t page_count;
	struct sim_page *pages[]; /* DATA: the touched pages, bytes at their place in the page */
};

struct sim_random {
	uint64_t state;
};

uint64_t lac__sim_mix(uint64_t value);
uint64_t lac__sim_random(struct sim_random *r);

struct sim_name *lac__sim_name_new(const char *text, size_t length);
void lac__sim_name_drop(struct sim_name *name); /* NULL is fine */
struct sim_atom *lac__sim_atom_new(
	enum sim_kind kind, uint32_t inode, uint64_t offset, uint64_t length);
struct sim_atom *lac__sim_atom_data(
	uint32_t inode, uint64_t offset, const void *bytes, uint64_t length);
void lac__sim_atom_drop(struct sim_atom *atom); /* NULL is fine */
/* copies as for lac__sim_image_written. */
int lac__sim_atom_apply(struct sim_image *img, const struct sim_atom *atom, uint64_t *copies);
/* What a power cut may leave: some sectors of it, or some of its sectors as garbage. */
int lac__sim_atom_tear(struct sim_image *img, const struct sim_atom *atom, struct sim_random *r);
int lac__sim_atom_trash(struct sim_image *img, const struct sim_atom *atom, uint32_t sector_bytes,
	struct sim_random *r);

/* ---- the filesystem ---- */

struct sim_link {
	uint32_t parent;
	struct sim_name *name; /* NULL = has no name */
};

struct sim_inode {
	bool directory;
	bool in_place; /* copy_on_write does not concern it */
	bool lost;     /* view holds bytes that will never reach disk */
	unsigned handles;
	unsigned refs; /* S4 */
	struct sim_link seen, durable;
	struct sim_image view, disk, before;
	uint64_t flow_size; /* S2 */
	uint64_t copies;    /* blocks that old versions still hold, until the next sync */
};

struct sim_file {
	struct lac_file base;
	uint32_t inode;
	unsigned flags;
};

struct sim_armed {
	bool on, forever;
	enum lac__sim_op kind;
	char *prefix;
	uint64_t countdown;
	enum lac__sim_fault fault;
	int64_t value;
};

struct sim {
	struct lac_backend base;
	pthread_mutex_t mutex; /* guards all below */
	struct lac__sim_options options;
	bool read_only, locked;
	bool numbering; /* pending atoms must keep their numbers: inodes are freed later */
	struct sim_inode **inodes; /* by number, NULL = free; 0 is the root */
	uint32_t inode_count;
	struct sim_atom **pending; /* in order of issue */
	size_t pending_count, pending_room;
	uint64_t counts[LAC__SIM_OPS], total, changes, struck;
	void (*hook)(void *arg, uint64_t number);
	void *hook_arg;
	struct sim_armed armed[SIM_FAULTS];
	unsigned open_now, open_most;
};

/* What an armed fault wants of the operation that it strikes. */
struct sim_strike {
	bool hit;
	enum lac__sim_fault fault;
	int64_t value;
};

/* What an operation is about; path NULL = the inode. */
struct sim_about {
	const char *path, *other;
	uint32_t inode;
};

static inline struct sim *sim_of(struct lac_backend *be)
{
	return (struct sim *)be;
}

/* sim.c. Every operation starts with begin, which always takes the mutex, and ends with end.
   Returns the errno of a fault, or EROFS. */
int lac__sim_begin(struct sim *s, enum lac__sim_op kind, bool change, struct sim_about about,
	struct sim_strike *ret_strike);
void lac__sim_end(struct sim *s);
int lac__sim_alloc(const struct lac__sim_options *options, struct sim **ret);
uint64_t lac__sim_free_blocks(struct sim *s);
void lac__sim_info(struct sim *s, uint32_t inode, struct lac_file_info *ret);

/* sim_fault.c */
struct sim_strike lac__sim_strike(
	struct sim *s, enum lac__sim_op kind, const struct sim_about *about);

/* sim_name.c */
int lac__sim_lookup(struct sim *s, const char *path, uint32_t *ret_inode);
/* The directory and the last part of path; *ret_inode is SIM_NONE where nothing has that name. */
int lac__sim_resolve(struct sim *s, const char *path, uint32_t *ret_parent, const char **ret_name,
	size_t *ret_length, uint32_t *ret_inode);
int lac__sim_inode_new(struct sim *s, bool directory, uint32_t *ret);
void lac__sim_inode_ref(struct sim *s, uint32_t inode);
void lac__sim_inode_unref(struct sim *s, uint32_t inode);
void lac__sim_inode_free(struct sim_inode *inode);
/* Ends numbering: frees what nothing refers to any more. */
void lac__sim_inode_sweep(struct sim *s);
/* Its way from the root in the seen names; false where it has none. */
bool lac__sim_path(struct sim *s, uint32_t inode, char *buffer, size_t size);
bool lac__sim_reachable(struct sim *s, uint32_t inode, bool durable);
int lac__sim_create(struct sim *s, uint32_t parent, const char *name, size_t length, bool directory,
	uint32_t *ret_inode);
void lac__sim_link_set(
	struct sim *s, uint32_t inode, bool durable, uint32_t parent, struct sim_name *name);
/* Applies a name change to the durable names. */
void lac__sim_name_apply(struct sim *s, const struct sim_atom *atom);
/* later makes no sense on disk without earlier. */
bool lac__sim_name_depends(const struct sim_atom *later, const struct sim_atom *earlier);
int lac__sim_op_rename(struct lac_backend *be, const char *from, const char *to);
int lac__sim_op_unlink(struct lac_backend *be, const char *path);
int lac__sim_op_make_dir(struct lac_backend *be, const char *path);
int lac__sim_op_remove_dir(struct lac_backend *be, const char *path);
int lac__sim_op_sync_dir(struct lac_backend *be, const char *path);
int lac__sim_op_list(struct lac_backend *be, const char *path,
	int (*visit)(void *arg, const char *name), void *arg);

/* sim_pending.c */
int lac__sim_pending_room(struct sim *s, size_t more);
/* Takes the atom; there is room. */
void lac__sim_pending_add(struct sim *s, struct sim_atom *atom);
/* Forgets those whose mark is set; marks has one entry for each. */
void lac__sim_pending_remove(struct sim *s, const uint8_t *marks);
void lac__sim_pending_forget(struct sim *s, uint32_t inode);
/* What a sync does to the atoms: all, none or every other one reach the disk. */
enum sim_landing {
	SIM_LAND_ALL,
	SIM_LAND_NONE,
	SIM_LAND_HALF,
};
int lac__sim_sync_inode(struct sim *s, uint32_t inode, enum sim_landing landing);
int lac__sim_sync_names(struct sim *s, uint32_t directory, enum sim_landing landing);
/* A sync of a file or directory, or of what a close leaves, as an armed fault wants it. */
int lac__sim_sync_struck(struct sim *s, uint32_t inode, struct sim_strike strike);
/* disk + pending atoms; the caller drops it. */
int lac__sim_flow(struct sim *s, uint32_t inode, struct sim_image *ret);

/* sim_file.c */
int lac__sim_op_open(
	struct lac_backend *be, const char *path, unsigned flags, struct lac_file **ret_file);
int lac__sim_op_close(struct lac_file *file);
ssize_t lac__sim_op_pread(struct lac_file *file, void *buffer, size_t length, uint64_t offset);
ssize_t lac__sim_op_pwrite(
	struct lac_file *file, const void *buffer, size_t length, uint64_t offset);
int lac__sim_op_sync(struct lac_file *file);
int lac__sim_op_allocate(struct lac_file *file, uint64_t offset, uint64_t length);
int lac__sim_op_punch(struct lac_file *file, uint64_t offset, uint64_t length);
int lac__sim_op_truncate(struct lac_file *file, uint64_t size);
int lac__sim_op_file_info(struct lac_file *file, struct lac_file_info *ret_info);
int lac__sim_op_drop_cache(struct lac_file *file);

#endif
