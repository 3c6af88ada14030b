/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim_file.c - the operations on an open file.
 *
 * A change is first an atom, then part of the view, then pending. Only a sync (sim_pending.c) or a
 * crash (sim_crash.c) takes it further.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "io/sim_internal.h"

#define MAX_COUNT ((size_t)0x7ffff000) /* as Linux: no call moves more */

static struct sim_file *file_of(struct lac_file *file)
{
	return (struct sim_file *)file;
}

static struct sim_inode *inode_of(struct lac_file *file)
{
	return sim_of(file->backend)->inodes[file_of(file)->inode];
}

static int begin(
	struct lac_file *file, enum lac__sim_op kind, bool change, struct sim_strike *ret_strike)
{
	return lac__sim_begin(sim_of(file->backend), kind, change,
		(struct sim_about){.inode = file_of(file)->inode}, ret_strike);
}

static bool struck_by(const struct sim_strike *strike, enum lac__sim_fault fault)
{
	return strike->hit && strike->fault == fault;
}

/* ---- open, close ---- */

static int find_or_create(struct sim *s, const char *path, unsigned flags, uint32_t *ret_inode)
{
	uint32_t parent, inode;
	const char *name;
	size_t length;
	int rc = lac__sim_resolve(s, path, &parent, &name, &length, &inode);

	if (rc < 0)
		return rc;
	if (inode != SIM_NONE && flags & LAC_OPEN_CREATE && flags & LAC_OPEN_EXCLUSIVE)
		return -EEXIST;
	if (inode == SIM_NONE && !(flags & LAC_OPEN_CREATE))
		return -ENOENT;
	if (inode != SIM_NONE && s->inodes[inode]->directory)
		return -EISDIR;
	if (s->read_only && (inode == SIM_NONE || flags & LAC_OPEN_WRITE))
		return -EROFS;
	if (inode == SIM_NONE) {
		rc = lac__sim_create(s, parent, name, length, false, &inode);
		if (rc < 0)
			return rc;
		s->inodes[inode]->in_place = flags & LAC_OPEN_NOCOW;
	}
	*ret_inode = inode;
	return 0;
}

int lac__sim_op_open(
	struct lac_backend *be, const char *path, unsigned flags, struct lac_file **ret_file)
{
	struct sim *s = sim_of(be);
	struct sim_strike strike;
	struct sim_file *f = calloc(1, sizeof(*f));
	int rc = lac__sim_begin(s, LAC__SIM_OPEN, flags & LAC_OPEN_CREATE,
		(struct sim_about){.path = path, .inode = SIM_NONE}, &strike);

	if (rc == 0 && !f)
		rc = -ENOMEM;
	if (rc == 0)
		rc = find_or_create(s, path, flags, &f->inode);
	if (rc < 0)
		goto out;
	f->base.backend = be;
	f->flags = flags;
	lac__sim_inode_ref(s, f->inode);
	s->inodes[f->inode]->handles++;
	if (++s->open_now > s->open_most)
		s->open_most = s->open_now;
	*ret_file = &f->base;
	f = NULL;
out:
	lac__sim_end(s);
	free(f);
	return rc;
}

int lac__sim_op_close(struct lac_file *file)
{
	struct sim *s = sim_of(file->backend);
	struct sim_file *f = file_of(file);
	struct sim_strike strike;
	int rc = begin(file, LAC__SIM_CLOSE, false, &strike);

	if (rc == 0 && strike.hit)
		rc = lac__sim_sync_struck(s, f->inode, strike);
	s->open_now--;
	s->inodes[f->inode]->handles--;
	lac__sim_inode_unref(s, f->inode);
	lac__sim_end(s);
	free(f);
	return rc;
}

/* ---- reading ---- */

static bool aligned(struct lac_file *file, const void *buffer, size_t length, uint64_t offset)
{
	return !(file_of(file)->flags & LAC_OPEN_DIRECT) ||
	       (((uintptr_t)buffer | length | offset) % SIM_PAGE) == 0;
}

/* The image that a read of this file comes from; the caller drops it. */
static int source(struct lac_file *file, const struct sim_strike *strike, struct sim_image *ret)
{
	struct sim_inode *inode = inode_of(file);

	if (struck_by(strike, LAC__SIM_STALE))
		lac__sim_image_share(ret, &inode->before);
	else if (file_of(file)->flags & LAC_OPEN_DIRECT && inode->lost)
		return lac__sim_flow(sim_of(file->backend), file_of(file)->inode, ret);
	else
		lac__sim_image_share(ret, &inode->view);
	return 0;
}

static size_t shorten(const struct sim_strike *strike, size_t length)
{
	size_t value = strike->value < 1 ? 1 : (size_t)strike->value;

	return struck_by(strike, LAC__SIM_SHORT) && value < length ? value : length;
}

ssize_t lac__sim_op_pread(struct lac_file *file, void *buffer, size_t length, uint64_t offset)
{
	struct sim *s = sim_of(file->backend);
	struct sim_strike strike;
	struct sim_image img;
	uint64_t size;
	ssize_t rc = begin(file, LAC__SIM_READ, false, &strike);

	if (rc == 0 && !aligned(file, buffer, length, offset))
		rc = -EINVAL;
	if (rc < 0)
		goto out;
	size = inode_of(file)->view.size;
	if (length > MAX_COUNT)
		length = MAX_COUNT;
	if (offset >= size || length == 0)
		goto out;
	if (length > size - offset)
		length = (size_t)(size - offset);
	length = shorten(&strike, length);
	rc = source(file, &strike, &img);
	if (rc < 0)
		goto out;
	if (lac__sim_image_unreadable(&img, offset, offset + length)) {
		rc = -EIO;
	} else {
		lac__sim_image_read(&img, offset, buffer, length);
		rc = (ssize_t)length;
	}
	lac__sim_image_drop(&img);
out:
	lac__sim_end(s);
	return rc;
}

/* ---- changing ---- */

/* Takes both atoms; size comes first and may be NULL. All or nothing. */
static int issue(struct lac_file *file, struct sim_atom *size, struct sim_atom *atom)
{
	struct sim *s = sim_of(file->backend);
	struct sim_inode *inode = inode_of(file);
	uint64_t old_size = inode->view.size;
	bool copies = s->options.copy_on_write && !inode->in_place;
	int rc = atom ? lac__sim_pending_room(s, 2) : -ENOMEM;

	if (rc == 0 && size)
		rc = lac__sim_atom_apply(&inode->view, size, NULL);
	if (rc == 0)
		rc = lac__sim_atom_apply(&inode->view, atom, copies ? &inode->copies : NULL);
	if (rc < 0) {
		inode->view.size = old_size;
		lac__sim_atom_drop(size);
		lac__sim_atom_drop(atom);
		return rc;
	}
	if (size) {
		if (inode->flow_size < size->offset)
			inode->flow_size = size->offset;
		lac__sim_pending_add(s, size);
	}
	if (atom->kind == SIM_TRUNCATE)
		inode->flow_size = atom->offset;
	lac__sim_pending_add(s, atom);
	return 0;
}

/* Issues the atom with the size change that it needs when it ends at `end` (S2). Takes atom. */
static int issue_growing(struct lac_file *file, struct sim_atom *atom, uint64_t end)
{
	struct sim_atom *size = NULL;

	/* What is seen may be shorter than what will be: after a truncation whose sync failed. */
	if (atom && (end > inode_of(file)->flow_size || end > inode_of(file)->view.size)) {
		size = lac__sim_atom_new(SIM_SIZE, file_of(file)->inode, end, 0);
		if (!size) {
			lac__sim_atom_drop(atom);
			return -ENOMEM;
		}
	}
	return issue(file, size, atom);
}

static uint64_t fit(struct lac_file *file, uint64_t from, uint64_t to, bool overwrites)
{
	struct sim *s = sim_of(file->backend);
	struct sim_inode *inode = inode_of(file);

	if (s->options.capacity_bytes == 0)
		return to;
	return lac__sim_image_fit(&inode->view, from, to, lac__sim_free_blocks(s),
		overwrites && s->options.copy_on_write && !inode->in_place);
}

ssize_t lac__sim_op_pwrite(
	struct lac_file *file, const void *buffer, size_t length, uint64_t offset)
{
	struct sim *s = sim_of(file->backend);
	struct sim_strike strike;
	ssize_t rc = begin(file, LAC__SIM_WRITE, true, &strike);

	if (rc == 0 && !(file_of(file)->flags & LAC_OPEN_WRITE))
		rc = -EBADF;
	if (rc == 0 && !aligned(file, buffer, length, offset))
		rc = -EINVAL;
	if (rc < 0 || length == 0)
		goto out;
	length = shorten(&strike, length < MAX_COUNT ? length : MAX_COUNT);
	if (struck_by(&strike, LAC__SIM_LOST)) {
		rc = (ssize_t)length;
		goto out;
	}
	if (struck_by(&strike, LAC__SIM_MISDIRECT))
		offset += (uint64_t)strike.value;
	if (offset >= SIM_MAX_FILE) {
		rc = -EFBIG;
		goto out;
	}
	if (length > SIM_MAX_FILE - offset)
		length = (size_t)(SIM_MAX_FILE - offset);
	length = (size_t)(fit(file, offset, offset + length, true) - offset);
	rc = -ENOSPC;
	if (length > 0)
		rc = issue_growing(file,
			lac__sim_atom_data(file_of(file)->inode, offset, buffer, length),
			offset + length);
	if (rc == 0)
		rc = (ssize_t)length;
out:
	lac__sim_end(s);
	return rc;
}

int lac__sim_op_sync(struct lac_file *file)
{
	struct sim *s = sim_of(file->backend);
	struct sim_strike strike;
	int rc = begin(file, LAC__SIM_SYNC, true, &strike);

	if (rc == 0)
		rc = lac__sim_sync_struck(s, file_of(file)->inode, strike);
	lac__sim_end(s);
	return rc;
}

static int check_range(struct lac_file *file, uint64_t offset, uint64_t length)
{
	if (!(file_of(file)->flags & LAC_OPEN_WRITE))
		return -EBADF;
	if (length == 0)
		return -EINVAL;
	return lac__range_ok(offset, length, SIM_MAX_FILE) ? 0 : -EFBIG;
}

static int allocate(struct lac_file *file, uint64_t offset, uint64_t length)
{
	uint32_t inode = file_of(file)->inode;
	uint64_t end = offset + length, fits;
	int rc;

	if (sim_of(file->backend)->options.no_allocate)
		return -EOPNOTSUPP;
	fits = fit(file, offset, end, false);
	if (fits == end)
		return issue_growing(
			file, lac__sim_atom_new(SIM_ALLOCATE, inode, offset, length), end);
	/* What there was stays allocated, the size does not follow. */
	rc = fits == offset
		     ? 0
		     : issue(file, NULL,
			       lac__sim_atom_new(SIM_ALLOCATE, inode, offset, fits - offset));
	return rc < 0 ? rc : -ENOSPC;
}

int lac__sim_op_allocate(struct lac_file *file, uint64_t offset, uint64_t length)
{
	struct sim *s = sim_of(file->backend);
	struct sim_strike strike;
	int rc = begin(file, LAC__SIM_ALLOCATE, true, &strike);

	if (rc == 0)
		rc = check_range(file, offset, length);
	if (rc == 0)
		rc = allocate(file, offset, length);
	lac__sim_end(s);
	return rc;
}

int lac__sim_op_punch(struct lac_file *file, uint64_t offset, uint64_t length)
{
	struct sim *s = sim_of(file->backend);
	struct sim_strike strike;
	int rc = begin(file, LAC__SIM_PUNCH, true, &strike);

	if (rc == 0)
		rc = check_range(file, offset, length);
	if (rc == 0 && s->options.no_punch)
		rc = -EOPNOTSUPP;
	if (rc == 0 && !struck_by(&strike, LAC__SIM_LOST))
		rc = issue(file, NULL,
			lac__sim_atom_new(s->options.useless_punch ? SIM_ZERO : SIM_PUNCH,
				file_of(file)->inode, offset, length));
	lac__sim_end(s);
	return rc;
}

int lac__sim_op_truncate(struct lac_file *file, uint64_t size)
{
	struct sim *s = sim_of(file->backend);
	struct sim_strike strike;
	int rc = begin(file, LAC__SIM_TRUNCATE, true, &strike);

	if (rc == 0 && !(file_of(file)->flags & LAC_OPEN_WRITE))
		rc = -EINVAL;
	if (rc == 0 && size > SIM_MAX_FILE)
		rc = -EFBIG;
	if (rc == 0)
		rc = issue(
			file, NULL, lac__sim_atom_new(SIM_TRUNCATE, file_of(file)->inode, size, 0));
	lac__sim_end(s);
	return rc;
}

/* ---- the rest ---- */

int lac__sim_op_file_info(struct lac_file *file, struct lac_file_info *ret_info)
{
	struct sim *s = sim_of(file->backend);
	struct sim_strike strike;
	int rc = begin(file, LAC__SIM_INFO, false, &strike);

	if (rc == 0)
		lac__sim_info(s, file_of(file)->inode, ret_info);
	lac__sim_end(s);
	return rc;
}

/* Bytes that a failed sync left in the cache vanish. The size is no cache of the device's: it stays
   for as long as the machine runs. */
int lac__sim_op_drop_cache(struct lac_file *file)
{
	struct sim *s = sim_of(file->backend);
	struct sim_inode *inode;
	struct sim_image flow;
	int rc = 0;

	pthread_mutex_lock(&s->mutex);
	inode = inode_of(file);
	if (!inode->lost)
		goto out;
	rc = lac__sim_flow(s, file_of(file)->inode, &flow);
	if (rc < 0)
		goto out;
	if (flow.size < inode->view.size)
		flow.size = inode->view.size;
	lac__sim_image_drop(&inode->view);
	inode->view = flow;
	inode->lost = flow.size > inode->flow_size;
out:
	lac__sim_end(s);
	return rc;
}
