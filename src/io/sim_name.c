/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim_name.c - inodes and their names, as seen and as durable.
 *
 * A name stands in its inode, not in a directory's table: there are no hard links, so that each
 * inode has one at most (S4), and a name change that reaches the disk out of order can never
 * leave a file with two. Looking a name up goes over all inodes, which are few.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "io/sim_internal.h"

/* ---- inodes ---- */

int lac__sim_inode_new(struct sim *s, bool directory, uint32_t *ret)
{
	struct sim_inode *inode;
	uint32_t number = 0;

	while (number < s->inode_count && s->inodes[number])
		number++;
	if (number == s->inode_count) {
		uint32_t count = number ? 2 * number : 16;
		struct sim_inode **inodes = realloc(s->inodes, count * sizeof(struct sim_inode *));

		if (!inodes)
			return -ENOMEM;
		memset(inodes + number, 0, (count - number) * sizeof(struct sim_inode *));
		s->inodes = inodes;
		s->inode_count = count;
	}
	inode = calloc(1, sizeof(*inode));
	if (!inode)
		return -ENOMEM;
	inode->directory = directory;
	lac__sim_image_init(&inode->view, s->options.block_bytes);
	lac__sim_image_init(&inode->disk, s->options.block_bytes);
	lac__sim_image_init(&inode->before, s->options.block_bytes);
	s->inodes[number] = inode;
	*ret = number;
	return 0;
}

void lac__sim_inode_free(struct sim_inode *inode)
{
	if (!inode)
		return;
	lac__sim_name_drop(inode->seen.name);
	lac__sim_name_drop(inode->durable.name);
	lac__sim_image_drop(&inode->view);
	lac__sim_image_drop(&inode->disk);
	lac__sim_image_drop(&inode->before);
	free(inode);
}

void lac__sim_inode_ref(struct sim *s, uint32_t inode)
{
	s->inodes[inode]->refs++;
}

void lac__sim_inode_unref(struct sim *s, uint32_t inode)
{
	if (--s->inodes[inode]->refs > 0 || s->numbering)
		return;
	lac__sim_pending_forget(s, inode);
	lac__sim_inode_free(s->inodes[inode]);
	s->inodes[inode] = NULL;
}

void lac__sim_inode_sweep(struct sim *s)
{
	s->numbering = false;
	for (uint32_t i = 0; i < s->inode_count; i++) {
		if (!s->inodes[i] || s->inodes[i]->refs > 0)
			continue;
		lac__sim_pending_forget(s, i);
		lac__sim_inode_free(s->inodes[i]);
		s->inodes[i] = NULL;
	}
}

/* ---- links ---- */

static struct sim_link *link_of(struct sim_inode *inode, bool durable)
{
	return durable ? &inode->durable : &inode->seen;
}

/* name NULL takes the name away. The inode may be gone afterwards. */
void lac__sim_link_set(
	struct sim *s, uint32_t inode, bool durable, uint32_t parent, struct sim_name *name)
{
	struct sim_link *link = link_of(s->inodes[inode], durable), old = *link;

	if (name) {
		atomic_fetch_add_explicit(&name->refs, 1, memory_order_relaxed);
		lac__sim_inode_ref(s, inode);
		lac__sim_inode_ref(s, parent);
	}
	*link = (struct sim_link){name ? parent : 0, name};
	if (old.name) {
		lac__sim_name_drop(old.name);
		lac__sim_inode_unref(s, inode);
		lac__sim_inode_unref(s, old.parent);
	}
}

static bool link_is(const struct sim_link *link, uint32_t parent, const char *name, size_t length)
{
	return link->name && link->parent == parent && link->name->length == length &&
	       memcmp(link->name->text, name, length) == 0;
}

static uint32_t find(struct sim *s, bool durable, uint32_t parent, const char *name, size_t length)
{
	for (uint32_t i = 0; i < s->inode_count; i++)
		if (s->inodes[i] && link_is(link_of(s->inodes[i], durable), parent, name, length))
			return i;
	return SIM_NONE;
}

static bool is_empty(struct sim *s, uint32_t directory)
{
	for (uint32_t i = 0; i < s->inode_count; i++)
		if (s->inodes[i] && s->inodes[i]->seen.name &&
			s->inodes[i]->seen.parent == directory)
			return false;
	return true;
}

/* A loop of directories, which a crash may make of durable names, is not reachable. */
bool lac__sim_reachable(struct sim *s, uint32_t inode, bool durable)
{
	for (uint32_t steps = 0; inode != 0; steps++) {
		const struct sim_link *link = link_of(s->inodes[inode], durable);

		if (!link->name || steps > s->inode_count)
			return false;
		inode = link->parent;
	}
	return true;
}

bool lac__sim_path(struct sim *s, uint32_t inode, char *buffer, size_t size)
{
	size_t at = size;

	if (!lac__sim_reachable(s, inode, false))
		return false;
	buffer[--at] = '\0';
	while (inode != 0) {
		const struct sim_link *link = &s->inodes[inode]->seen;
		bool last = at == size - 1;

		if (at < link->name->length + 1)
			return false;
		if (!last)
			buffer[--at] = '/';
		at -= link->name->length;
		memcpy(buffer + at, link->name->text, link->name->length);
		inode = link->parent;
	}
	memmove(buffer, buffer + at, size - at);
	return true;
}

/* ---- paths ---- */

int lac__sim_resolve(struct sim *s, const char *path, uint32_t *ret_parent, const char **ret_name,
	size_t *ret_length, uint32_t *ret_inode)
{
	uint32_t parent = 0, inode = 0;
	const char *name = path;
	size_t length = 0;

	for (; *path == '/'; path++)
		;
	while (*path) {
		if (inode == SIM_NONE)
			return -ENOENT;
		if (!s->inodes[inode]->directory)
			return -ENOTDIR;
		parent = inode;
		name = path;
		length = strcspn(path, "/");
		if (length > NAME_MAX)
			return -ENAMETOOLONG;
		inode = find(s, false, parent, name, length);
		for (path += length; *path == '/'; path++)
			;
	}
	*ret_parent = parent;
	*ret_name = name;
	*ret_length = length;
	*ret_inode = inode;
	return 0;
}

int lac__sim_lookup(struct sim *s, const char *path, uint32_t *ret_inode)
{
	uint32_t parent, inode;
	const char *name;
	size_t length;
	int rc = lac__sim_resolve(s, path, &parent, &name, &length, &inode);

	if (rc == 0 && inode == SIM_NONE)
		rc = -ENOENT;
	if (rc == 0)
		*ret_inode = inode;
	return rc;
}

/* ---- changes ---- */

static bool same_name(
	uint32_t a_parent, const struct sim_name *a, uint32_t b_parent, const struct sim_name *b)
{
	return a && b && a_parent == b_parent && a->hash == b->hash && a->length == b->length &&
	       memcmp(a->text, b->text, a->length) == 0;
}

/*
 * Journals keep the order of changes to one name; a directory is removed after what was in it; and
 * a file moved into a new directory is not lost with it. Changes to different names may be
 * reordered.
 */
bool lac__sim_name_depends(const struct sim_atom *later, const struct sim_atom *earlier)
{
	if (same_name(later->from, later->from_name, earlier->from, earlier->from_name) ||
		same_name(later->from, later->from_name, earlier->to, earlier->to_name) ||
		same_name(later->to, later->to_name, earlier->from, earlier->from_name) ||
		same_name(later->to, later->to_name, earlier->to, earlier->to_name))
		return true;
	if (!later->to_name && earlier->from_name && earlier->from == later->inode)
		return true;
	return later->from_name && later->to_name && earlier->inode == later->to;
}

void lac__sim_name_apply(struct sim *s, const struct sim_atom *atom)
{
	const struct sim_link *link = &s->inodes[atom->inode]->durable;
	uint32_t other;

	if (!atom->to_name) {
		if (same_name(link->parent, link->name, atom->from, atom->from_name))
			lac__sim_link_set(s, atom->inode, true, 0, NULL);
		return;
	}
	other = find(s, true, atom->to, atom->to_name->text, atom->to_name->length);
	if (other != SIM_NONE)
		lac__sim_link_set(s, other, true, 0, NULL);
	lac__sim_link_set(s, atom->inode, true, atom->to, atom->to_name);
}

/* Gives the inode its new seen name (to_name NULL = none) and notes the change as pending. Takes
   to_name in any case. */
static int change_name(struct sim *s, uint32_t inode, uint32_t to, struct sim_name *to_name)
{
	struct sim_link old = s->inodes[inode]->seen;
	struct sim_atom *atom = lac__sim_atom_new(SIM_RENAME, inode, 0, 0);

	if (!atom || lac__sim_pending_room(s, 1) < 0) {
		lac__sim_name_drop(to_name);
		lac__sim_atom_drop(atom);
		return -ENOMEM;
	}
	if (old.name) {
		atom->from = old.parent;
		atom->from_name = old.name;
		atomic_fetch_add_explicit(&old.name->refs, 1, memory_order_relaxed);
	}
	atom->to = to_name ? to : 0;
	atom->to_name = to_name;
	lac__sim_pending_add(s, atom);
	lac__sim_link_set(s, inode, false, to, to_name);
	return 0;
}

int lac__sim_create(struct sim *s, uint32_t parent, const char *name, size_t length, bool directory,
	uint32_t *ret_inode)
{
	struct sim_name *copy = lac__sim_name_new(name, length);
	uint32_t inode;
	int rc;

	if (!copy)
		return -ENOMEM;
	rc = lac__sim_inode_new(s, directory, &inode);
	if (rc < 0) {
		lac__sim_name_drop(copy);
		return rc;
	}
	lac__sim_inode_ref(s, inode);
	rc = change_name(s, inode, parent, copy);
	if (rc == 0)
		*ret_inode = inode;
	lac__sim_inode_unref(s, inode);
	return rc;
}

static bool is_inside(struct sim *s, uint32_t inode, uint32_t directory)
{
	while (inode != 0 && inode != directory)
		inode = s->inodes[inode]->seen.parent;
	return inode == directory;
}

static int may_replace(struct sim *s, uint32_t from, uint32_t to, uint32_t to_parent)
{
	if (from == 0 || to == 0)
		return -EBUSY;
	if (s->inodes[from]->directory && is_inside(s, to_parent, from))
		return -EINVAL;
	if (to == SIM_NONE)
		return 0;
	if (s->inodes[to]->directory && !s->inodes[from]->directory)
		return -EISDIR;
	if (!s->inodes[to]->directory && s->inodes[from]->directory)
		return -ENOTDIR;
	if (s->inodes[to]->directory && !is_empty(s, to))
		return -ENOTEMPTY;
	return 0;
}

int lac__sim_op_rename(struct lac_backend *be, const char *from, const char *to)
{
	struct sim *s = sim_of(be);
	struct sim_strike strike;
	uint32_t inode = 0, target = 0, parent = 0;
	struct sim_name *copy;
	const char *name;
	size_t length;
	int rc = lac__sim_begin(s, LAC__SIM_RENAME, true,
		(struct sim_about){.path = from, .other = to, .inode = SIM_NONE}, &strike);

	if (rc == 0)
		rc = lac__sim_lookup(s, from, &inode);
	if (rc == 0)
		rc = lac__sim_resolve(s, to, &parent, &name, &length, &target);
	if (rc < 0 || inode == target)
		goto out;
	rc = may_replace(s, inode, target, parent);
	if (rc < 0)
		goto out;
	copy = lac__sim_name_new(name, length);
	rc = copy ? change_name(s, inode, parent, copy) : -ENOMEM;
	if (rc == 0 && target != SIM_NONE)
		lac__sim_link_set(s, target, false, 0, NULL);
out:
	lac__sim_end(s);
	return rc;
}

static int remove_name(
	struct lac_backend *be, const char *path, enum lac__sim_op kind, bool directory)
{
	struct sim *s = sim_of(be);
	struct sim_strike strike;
	uint32_t inode = 0;
	int rc = lac__sim_begin(
		s, kind, true, (struct sim_about){.path = path, .inode = SIM_NONE}, &strike);

	if (rc == 0)
		rc = lac__sim_lookup(s, path, &inode);
	if (rc < 0)
		goto out;
	if (s->inodes[inode]->directory != directory)
		rc = directory ? -ENOTDIR : -EISDIR;
	else if (inode == 0)
		rc = -EBUSY;
	else if (directory && !is_empty(s, inode))
		rc = -ENOTEMPTY;
	else
		rc = change_name(s, inode, 0, NULL);
out:
	lac__sim_end(s);
	return rc;
}

int lac__sim_op_unlink(struct lac_backend *be, const char *path)
{
	return remove_name(be, path, LAC__SIM_UNLINK, false);
}

int lac__sim_op_remove_dir(struct lac_backend *be, const char *path)
{
	return remove_name(be, path, LAC__SIM_RMDIR, true);
}

int lac__sim_op_make_dir(struct lac_backend *be, const char *path)
{
	struct sim *s = sim_of(be);
	struct sim_strike strike;
	uint32_t parent = 0, inode = 0;
	const char *name;
	size_t length;
	int rc = lac__sim_begin(s, LAC__SIM_MKDIR, true,
		(struct sim_about){.path = path, .inode = SIM_NONE}, &strike);

	if (rc == 0)
		rc = lac__sim_resolve(s, path, &parent, &name, &length, &inode);
	if (rc == 0 && inode != SIM_NONE)
		rc = -EEXIST;
	if (rc == 0)
		rc = lac__sim_create(s, parent, name, length, true, &inode);
	lac__sim_end(s);
	return rc;
}

static int lookup_dir(struct sim *s, const char *path, uint32_t *ret)
{
	int rc = lac__sim_lookup(s, path, ret);

	return rc == 0 && !s->inodes[*ret]->directory ? -ENOTDIR : rc;
}

int lac__sim_op_sync_dir(struct lac_backend *be, const char *path)
{
	struct sim *s = sim_of(be);
	struct sim_strike strike;
	uint32_t inode = 0;
	int rc = lac__sim_begin(s, LAC__SIM_SYNC_DIR, true,
		(struct sim_about){.path = path, .inode = SIM_NONE}, &strike);

	if (rc == 0)
		rc = lookup_dir(s, path, &inode);
	if (rc < 0)
		goto out;
	rc = lac__sim_sync_struck(s, inode, strike);
out:
	lac__sim_end(s);
	return rc;
}

/* Names are gathered first: visit runs without the mutex and may call anything. */
int lac__sim_op_list(struct lac_backend *be, const char *path,
	int (*visit)(void *arg, const char *name), void *arg)
{
	struct sim *s = sim_of(be);
	struct sim_name **names = NULL;
	struct sim_strike strike;
	size_t count = 0;
	uint32_t inode = 0;
	int rc = lac__sim_begin(s, LAC__SIM_LIST, false,
		(struct sim_about){.path = path, .inode = SIM_NONE}, &strike);

	if (rc == 0)
		rc = lookup_dir(s, path, &inode);
	if (rc == 0) {
		names = malloc((s->inode_count + 1) * sizeof(struct sim_name *));
		rc = names ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; rc == 0 && i < s->inode_count; i++) {
		struct sim_link *link = s->inodes[i] ? &s->inodes[i]->seen : NULL;

		if (!link || !link->name || link->parent != inode)
			continue;
		atomic_fetch_add_explicit(&link->name->refs, 1, memory_order_relaxed);
		names[count++] = link->name;
	}
	lac__sim_end(s);
	for (size_t i = 0; i < count; i++) {
		if (rc == 0)
			rc = visit(arg, names[i]->text);
		lac__sim_name_drop(names[i]);
	}
	free(names);
	return rc;
}
