/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim.c - the lying backend as a whole: its table, its counters, and the ways around its table.
 *
 *   sim_image.c    pages and blocks of one file, copied on write
 *   sim_atom.c     one unsynced change, and what a power cut makes of it
 *   sim_pending.c  the list of those, and sync
 *   sim_name.c     inodes, names, operations on them
 *   sim_file.c     operations on open files
 *   sim_crash.c    copies and crash states
 *   sim_fault.c    armed faults
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "io/sim_internal.h"

/* What place_info says: magics of XFS, and of btrfs where overwriting needs space. */
#define TYPE_XFS   0x58465342u
#define TYPE_BTRFS 0x9123683eu

static int op_path_info(struct lac_backend *be, const char *path, struct lac_file_info *ret_info)
{
	struct sim *s = sim_of(be);
	struct sim_strike strike;
	uint32_t inode;
	int rc = lac__sim_begin(s, LAC__SIM_INFO, false,
		(struct sim_about){.path = path, .inode = SIM_NONE}, &strike);

	if (rc == 0)
		rc = lac__sim_lookup(s, path, &inode);
	if (rc == 0)
		lac__sim_info(s, inode, ret_info);
	lac__sim_end(s);
	return rc;
}

static int op_place_info(struct lac_backend *be, const char *path, struct lac_place_info *ret_info)
{
	struct sim *s = sim_of(be);
	struct sim_strike strike;
	uint32_t inode;
	int rc = lac__sim_begin(s, LAC__SIM_INFO, false,
		(struct sim_about){.path = path, .inode = SIM_NONE}, &strike);

	if (rc == 0)
		rc = lac__sim_lookup(s, path, &inode);
	if (rc == 0)
		*ret_info = (struct lac_place_info){
			.filesystem_type = s->options.copy_on_write ? TYPE_BTRFS : TYPE_XFS,
			.filesystem_id = s->options.filesystem_id,
			.block_bytes = s->options.block_bytes,
			.physical_sector_bytes = s->options.physical_sector_bytes,
			.free_bytes = lac__sim_free_blocks(s) * s->options.block_bytes,
		};
	lac__sim_end(s);
	return rc;
}

static int op_lock(struct lac_backend *be, void **ret_lock, int64_t *ret_holder_pid)
{
	struct sim *s = sim_of(be);
	struct sim_strike strike;
	int rc = lac__sim_begin(s, LAC__SIM_LOCK, false,
		(struct sim_about){.path = "", .inode = SIM_NONE}, &strike);

	if (rc == 0 && s->locked) {
		*ret_holder_pid = getpid();
		rc = -EBUSY;
	}
	if (rc == 0) {
		s->locked = true;
		*ret_lock = &s->locked;
	}
	lac__sim_end(s);
	return rc;
}

static void op_unlock(struct lac_backend *be, void *lock)
{
	struct sim *s = sim_of(be);

	pthread_mutex_lock(&s->mutex);
	if (lock == &s->locked)
		s->locked = false;
	pthread_mutex_unlock(&s->mutex);
}

static const struct lac_backend_ops sim_ops = {
	.open = lac__sim_op_open,
	.close = lac__sim_op_close,
	.pread = lac__sim_op_pread,
	.pwrite = lac__sim_op_pwrite,
	.sync = lac__sim_op_sync,
	.allocate = lac__sim_op_allocate,
	.punch = lac__sim_op_punch,
	.truncate = lac__sim_op_truncate,
	.file_info = lac__sim_op_file_info,
	.drop_cache = lac__sim_op_drop_cache,
	.rename = lac__sim_op_rename,
	.unlink = lac__sim_op_unlink,
	.make_dir = lac__sim_op_make_dir,
	.remove_dir = lac__sim_op_remove_dir,
	.sync_dir = lac__sim_op_sync_dir,
	.list = lac__sim_op_list,
	.path_info = op_path_info,
	.place_info = op_place_info,
	.lock = op_lock,
	.unlock = op_unlock,
};

/* ---- begin and end of every operation ---- */

/* The hook runs without the mutex, since it will make crash states of this very filesystem. */
int lac__sim_begin(struct sim *s, enum lac__sim_op kind, bool change, struct sim_about about,
	struct sim_strike *ret_strike)
{
	pthread_mutex_lock(&s->mutex);
	if (change) {
		void (*hook)(void *arg, uint64_t number) = s->hook;
		void *arg = s->hook_arg;
		uint64_t number = s->changes++;

		if (hook) {
			pthread_mutex_unlock(&s->mutex);
			hook(arg, number);
			pthread_mutex_lock(&s->mutex);
		}
	}
	s->counts[kind]++;
	s->total++;
	*ret_strike = lac__sim_strike(s, kind, &about);
	if (ret_strike->hit && ret_strike->fault == LAC__SIM_ERRNO)
		return ret_strike->value > 0 ? -(int)ret_strike->value : -EIO;
	/* Opening and syncing are changes only where there is something to change. */
	if (change && s->read_only && kind != LAC__SIM_OPEN && kind != LAC__SIM_SYNC &&
		kind != LAC__SIM_SYNC_DIR)
		return -EROFS;
	return 0;
}

void lac__sim_end(struct sim *s)
{
	pthread_mutex_unlock(&s->mutex);
}

/* ---- life ---- */

int lac__sim_alloc(const struct lac__sim_options *options, struct sim **ret)
{
	struct sim *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->base.ops = &sim_ops;
	s->options = *options;
	pthread_mutex_init(&s->mutex, NULL);
	*ret = s;
	return 0;
}

/* Crash states come and go by the thousand; giving their pages back to the kernel each time and
   faulting them in again costs ten times as much as all the rest. */
static void keep_heap(void)
{
#ifdef M_TRIM_THRESHOLD
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	mallopt(M_TOP_PAD, 4 << 20);
#endif
}

int lac__sim_new(const struct lac__sim_options *options, struct lac_backend **ret)
{
	struct lac__sim_options o = options ? *options : (struct lac__sim_options){0};
	uint32_t root;
	struct sim *s;
	int rc;

	if (o.block_bytes == 0)
		o.block_bytes = 4096;
	if (o.physical_sector_bytes == 0)
		o.physical_sector_bytes = 512;
	if (!lac__is_power_of_two(o.block_bytes) || o.block_bytes < SIM_SECTOR ||
		o.block_bytes > SIM_CHUNK_BYTES || !lac__is_power_of_two(o.physical_sector_bytes) ||
		o.physical_sector_bytes < SIM_SECTOR)
		return -EINVAL;
	rc = lac__sim_alloc(&o, &s);
	if (rc < 0)
		return rc;
	rc = lac__sim_inode_new(s, true, &root);
	if (rc < 0) {
		lac__sim_free(&s->base);
		return rc;
	}
	lac__sim_inode_ref(s, root);
	keep_heap();
	*ret = &s->base;
	return 0;
}

void lac__sim_free(struct lac_backend *be)
{
	struct sim *s = be ? sim_of(be) : NULL;

	if (!s)
		return;
	for (size_t i = 0; i < s->pending_count; i++)
		lac__sim_atom_drop(s->pending[i]);
	free(s->pending);
	for (uint32_t i = 0; i < s->inode_count; i++)
		lac__sim_inode_free(s->inodes[i]);
	free(s->inodes);
	for (size_t i = 0; i < SIM_FAULTS; i++)
		free(s->armed[i].prefix);
	pthread_mutex_destroy(&s->mutex);
	free(s);
}

/* ---- counters and switches ---- */

uint64_t lac__sim_count(struct lac_backend *be, enum lac__sim_op kind)
{
	struct sim *s = sim_of(be);
	uint64_t count;

	pthread_mutex_lock(&s->mutex);
	count = kind == LAC__SIM_OPS ? s->total : s->counts[kind];
	pthread_mutex_unlock(&s->mutex);
	return count;
}

void lac__sim_on_change(struct lac_backend *be, void (*hook)(void *arg, uint64_t number), void *arg)
{
	struct sim *s = sim_of(be);

	pthread_mutex_lock(&s->mutex);
	s->hook = hook;
	s->hook_arg = arg;
	pthread_mutex_unlock(&s->mutex);
}

void lac__sim_set_capacity(struct lac_backend *be, uint64_t capacity_bytes)
{
	struct sim *s = sim_of(be);

	pthread_mutex_lock(&s->mutex);
	s->options.capacity_bytes = capacity_bytes;
	pthread_mutex_unlock(&s->mutex);
}

void lac__sim_set_read_only(struct lac_backend *be, bool read_only)
{
	struct sim *s = sim_of(be);

	pthread_mutex_lock(&s->mutex);
	s->read_only = read_only;
	pthread_mutex_unlock(&s->mutex);
}

unsigned lac__sim_open_files(struct lac_backend *be, unsigned *ret_most)
{
	struct sim *s = sim_of(be);
	unsigned now;

	pthread_mutex_lock(&s->mutex);
	now = s->open_now;
	if (ret_most)
		*ret_most = s->open_most;
	pthread_mutex_unlock(&s->mutex);
	return now;
}

/* ---- space ---- */

/* A file gives its space back when it has no name and no handle, as soon as that is seen. */
static uint64_t used_blocks(struct sim *s)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < s->inode_count; i++) {
		const struct sim_inode *inode = s->inodes[i];

		if (inode && (inode->seen.name || inode->handles > 0))
			used += inode->view.allocated_blocks + inode->copies;
	}
	return used;
}

uint64_t lac__sim_free_blocks(struct sim *s)
{
	uint64_t all = s->options.capacity_bytes / s->options.block_bytes, used = used_blocks(s);

	if (s->options.capacity_bytes == 0)
		all = ((uint64_t)1 << 40) / s->options.block_bytes;
	return used < all ? all - used : 0;
}

uint64_t lac__sim_used_bytes(struct lac_backend *be)
{
	struct sim *s = sim_of(be);
	uint64_t used;

	pthread_mutex_lock(&s->mutex);
	used = used_blocks(s) * s->options.block_bytes;
	pthread_mutex_unlock(&s->mutex);
	return used;
}

void lac__sim_info(struct sim *s, uint32_t inode, struct lac_file_info *ret)
{
	const struct sim_inode *in = s->inodes[inode];

	*ret = (struct lac_file_info){
		.size_bytes = in->view.size,
		.allocated_bytes = in->view.allocated_blocks * s->options.block_bytes,
		.mode = in->directory ? S_IFDIR | 0755 : S_IFREG | 0644,
	};
}

/* ---- damage and inspection ---- */

static int lookup_file(struct sim *s, const char *path, struct sim_inode **ret)
{
	uint32_t inode;
	int rc = lac__sim_lookup(s, path, &inode);

	if (rc == 0 && s->inodes[inode]->directory)
		rc = -EISDIR;
	if (rc == 0)
		*ret = s->inodes[inode];
	return rc;
}

int lac__sim_peek(
	struct lac_backend *be, const char *path, uint64_t offset, void *ret, size_t length)
{
	struct sim *s = sim_of(be);
	struct sim_inode *inode;
	int rc;

	pthread_mutex_lock(&s->mutex);
	rc = lookup_file(s, path, &inode);
	if (rc == 0 && !lac__range_ok(offset, length, inode->view.size))
		rc = -ENODATA;
	if (rc == 0)
		lac__sim_image_read(&inode->view, offset, ret, length);
	pthread_mutex_unlock(&s->mutex);
	return rc;
}

static int poke_image(struct sim_image *img, uint64_t offset, const void *bytes, size_t length)
{
	int rc = lac__sim_image_write(img, offset, bytes, length);

	if (rc < 0 || length == 0)
		return rc;
	lac__sim_image_written(img, offset, offset + length, NULL);
	if (img->size < offset + length)
		img->size = offset + length;
	return 0;
}

int lac__sim_poke(
	struct lac_backend *be, const char *path, uint64_t offset, const void *bytes, size_t length)
{
	struct sim *s = sim_of(be);
	struct sim_inode *inode;
	int rc;

	pthread_mutex_lock(&s->mutex);
	rc = lookup_file(s, path, &inode);
	if (rc == 0 && !lac__range_ok(offset, length, SIM_MAX_FILE))
		rc = -EFBIG;
	if (rc == 0)
		rc = poke_image(&inode->disk, offset, bytes, length);
	if (rc == 0)
		rc = poke_image(&inode->view, offset, bytes, length);
	if (rc == 0 && inode->flow_size < offset + length)
		inode->flow_size = offset + length;
	pthread_mutex_unlock(&s->mutex);
	return rc;
}

int lac__sim_unreadable(struct lac_backend *be, const char *path, uint64_t offset, uint64_t length)
{
	struct sim *s = sim_of(be);
	struct sim_inode *inode;
	uint64_t end;
	int rc;

	pthread_mutex_lock(&s->mutex);
	rc = lookup_file(s, path, &inode);
	if (!lac__add_ok(offset, length, &end))
		end = UINT64_MAX;
	if (rc == 0)
		rc = lac__sim_image_spoil(&inode->disk, offset, end);
	if (rc == 0)
		rc = lac__sim_image_spoil(&inode->view, offset, end);
	pthread_mutex_unlock(&s->mutex);
	return rc;
}

static uint64_t path_hash(struct sim *s, uint32_t inode)
{
	uint64_t hash = 0;

	for (; inode != 0; inode = s->inodes[inode]->seen.parent) {
		const struct sim_name *name = s->inodes[inode]->seen.name;

		for (size_t i = 0; i < name->length; i++)
			hash = lac__sim_mix(hash * 257 + (uint8_t)name->text[i] + 1);
		hash = lac__sim_mix(hash + '/');
	}
	return hash;
}

uint64_t lac__sim_digest(struct lac_backend *be)
{
	struct sim *s = sim_of(be);
	uint64_t sum = 0;

	pthread_mutex_lock(&s->mutex);
	for (uint32_t i = 1; i < s->inode_count; i++) {
		const struct sim_inode *inode = s->inodes[i];

		if (!inode || !inode->seen.name)
			continue;
		sum += lac__sim_mix(lac__sim_mix(path_hash(s, i) + inode->directory) ^
				    lac__sim_image_hash(&inode->view));
	}
	pthread_mutex_unlock(&s->mutex);
	return sum;
}
