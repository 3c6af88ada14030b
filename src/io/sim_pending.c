/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim_pending.c - the list of what is not durable yet, and what a sync does to it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "io/sim_internal.h"

int lac__sim_pending_room(struct sim *s, size_t more)
{
	size_t want = s->pending_count + more, room = s->pending_room ? s->pending_room : 16;
	struct sim_atom **pending;

	while (room < want)
		room *= 2;
	if (room == s->pending_room)
		return 0;
	pending = realloc(s->pending, room * sizeof(struct sim_atom *));
	if (!pending)
		return -ENOMEM;
	s->pending = pending;
	s->pending_room = room;
	return 0;
}

void lac__sim_pending_add(struct sim *s, struct sim_atom *atom)
{
	s->pending[s->pending_count++] = atom;
	if (atom->kind != SIM_RENAME)
		return;
	lac__sim_inode_ref(s, atom->inode);
	if (atom->from_name)
		lac__sim_inode_ref(s, atom->from);
	if (atom->to_name)
		lac__sim_inode_ref(s, atom->to);
}

static void release(struct sim *s, struct sim_atom *atom)
{
	if (atom->kind == SIM_RENAME) {
		lac__sim_inode_unref(s, atom->inode);
		if (atom->from_name)
			lac__sim_inode_unref(s, atom->from);
		if (atom->to_name)
			lac__sim_inode_unref(s, atom->to);
	}
	lac__sim_atom_drop(atom);
}

/* Names are removed while numbering only, since the last one may free an inode and its atoms. */
void lac__sim_pending_remove(struct sim *s, const uint8_t *marks)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->pending_count; i++) {
		assert(!marks[i] || s->pending[i]->kind != SIM_RENAME || s->numbering);
		if (marks[i])
			release(s, s->pending[i]);
		else
			s->pending[kept++] = s->pending[i];
	}
	s->pending_count = kept;
}

/* The data atoms of an inode that is being freed; no name mentions it any more. */
void lac__sim_pending_forget(struct sim *s, uint32_t inode)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->pending_count; i++) {
		if (s->pending[i]->kind != SIM_RENAME && s->pending[i]->inode == inode)
			lac__sim_atom_drop(s->pending[i]);
		else
			s->pending[kept++] = s->pending[i];
	}
	s->pending_count = kept;
}

/* ---- files ---- */

static bool is_of(const struct sim_atom *atom, uint32_t inode)
{
	return atom->kind != SIM_RENAME && atom->inode == inode;
}

int lac__sim_flow(struct sim *s, uint32_t inode, struct sim_image *ret)
{
	struct sim_image img;
	int rc = 0;

	lac__sim_image_share(&img, &s->inodes[inode]->disk);
	for (size_t i = 0; rc == 0 && i < s->pending_count; i++)
		if (is_of(s->pending[i], inode))
			rc = lac__sim_atom_apply(&img, s->pending[i], NULL);
	if (rc < 0)
		lac__sim_image_drop(&img);
	else
		*ret = img;
	return rc;
}

/* Keeps the pages that the atom is about to change on disk, for stale reads. */
static int remember(struct sim_inode *inode, const struct sim_atom *atom)
{
	uint64_t end = atom->offset + atom->length;
	int rc = 0;

	if (atom->kind != SIM_DATA && atom->kind != SIM_PUNCH && atom->kind != SIM_ZERO)
		return 0;
	if (end > inode->view.size)
		end = inode->view.size;
	for (uint64_t at = lac__round_down(atom->offset, SIM_PAGE); rc == 0 && at < end;
		at += SIM_PAGE)
		rc = lac__sim_image_put_page(&inode->before, at / SIM_PAGE,
			lac__sim_image_page(&inode->disk, at / SIM_PAGE));
	return rc;
}

/* Whatever can fail comes before the disk changes, or is harmless when done again. */
static int prepare(struct sim *s, uint32_t number)
{
	struct sim_inode *inode = s->inodes[number];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->pending_count; i++) {
		const struct sim_atom *atom = s->pending[i];

		if (!is_of(atom, number))
			continue;
		rc = remember(inode, atom);
		if (rc == 0 && s->options.copy_on_write)
			rc = lac__sim_image_settle(
				&inode->view, atom->offset, atom->offset + atom->length);
	}
	return rc;
}

int lac__sim_sync_inode(struct sim *s, uint32_t number, enum sim_landing landing)
{
	struct sim_inode *inode = s->inodes[number];
	uint8_t *marks = calloc(1, s->pending_count + 1);
	struct sim_image disk;
	size_t count = 0;
	int rc;

	if (!marks)
		return -ENOMEM;
	lac__sim_image_share(&disk, &inode->disk);
	rc = prepare(s, number);
	for (size_t i = 0; rc == 0 && i < s->pending_count; i++) {
		if (!is_of(s->pending[i], number))
			continue;
		marks[i] = 1;
		if (landing == SIM_LAND_HALF ? count % 2 == 0
					     : landing == SIM_LAND_ALL && inode->lost)
			rc = lac__sim_atom_apply(&disk, s->pending[i], NULL);
		count++;
	}
	if (rc == 0 && count > 0 && s->read_only)
		rc = -EROFS;
	if (rc < 0 || count == 0)
		goto out;
	if (landing == SIM_LAND_ALL && !inode->lost) { /* S1 */
		lac__sim_image_drop(&disk);
		lac__sim_image_share(&disk, &inode->view);
	}
	lac__sim_image_drop(&inode->disk);
	lac__sim_image_share(&inode->disk, &disk);
	inode->flow_size = disk.size;
	inode->copies = 0;
	if (landing != SIM_LAND_ALL)
		inode->lost = true;
	lac__sim_pending_remove(s, marks);
out:
	lac__sim_image_drop(&disk);
	free(marks);
	return rc;
}

/* ---- names ---- */

/* A directory's sync covers what enters it and what disappears in it, and drags along what those
   changes make no sense without. */
static void mark_names(struct sim *s, uint32_t directory, uint8_t *marks)
{
	for (size_t i = s->pending_count; i-- > 0;) {
		const struct sim_atom *atom = s->pending[i];

		if (atom->kind != SIM_RENAME)
			continue;
		if ((atom->to_name ? atom->to : atom->from) == directory)
			marks[i] = 1;
		for (size_t j = 0; marks[i] && j < i; j++)
			if (s->pending[j]->kind == SIM_RENAME &&
				lac__sim_name_depends(atom, s->pending[j]))
				marks[j] = 1;
	}
}

int lac__sim_sync_names(struct sim *s, uint32_t directory, enum sim_landing landing)
{
	uint8_t *marks = calloc(1, s->pending_count + 1);
	size_t count = 0;

	if (!marks)
		return -ENOMEM;
	mark_names(s, directory, marks);
	if (s->read_only && memchr(marks, 1, s->pending_count)) {
		free(marks);
		return -EROFS;
	}
	s->numbering = true;
	for (size_t i = 0; i < s->pending_count; i++) {
		if (!marks[i])
			continue;
		if (landing == SIM_LAND_ALL || (landing == SIM_LAND_HALF && count % 2 == 0))
			lac__sim_name_apply(s, s->pending[i]);
		count++;
	}
	lac__sim_pending_remove(s, marks);
	lac__sim_inode_sweep(s);
	free(marks);
	return 0;
}

static int sync_any(struct sim *s, uint32_t inode, enum sim_landing landing)
{
	return s->inodes[inode]->directory ? lac__sim_sync_names(s, inode, landing)
					   : lac__sim_sync_inode(s, inode, landing);
}

int lac__sim_sync_struck(struct sim *s, uint32_t inode, struct sim_strike strike)
{
	enum sim_landing landing = SIM_LAND_ALL;
	int rc;

	if (strike.hit && strike.fault == LAC__SIM_LOST)
		return 0;
	if (strike.hit && strike.fault == LAC__SIM_SYNC_REVERT)
		landing = SIM_LAND_NONE;
	if (strike.hit && strike.fault == LAC__SIM_SYNC_HALF)
		landing = SIM_LAND_HALF;
	rc = sync_any(s, inode, landing);
	return rc == 0 && strike.hit ? -EIO : rc;
}
