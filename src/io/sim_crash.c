/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim_crash.c - copies of a filesystem, and what a power cut leaves of it.
 *
 * A crash state is a copy in which a verdict on each pending atom has been carried out on the
 * durable images and names, and which then sees what is durable.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/sim_internal.h"

enum verdict {
	DROP,
	KEEP,
	TEAR,
	TRASH,
};

/* ---- copying ---- */

static struct sim_name *name_share(struct sim_name *name)
{
	if (name)
		atomic_fetch_add_explicit(&name->refs, 1, memory_order_relaxed);
	return name;
}

static struct sim_inode *inode_copy(const struct sim_inode *from)
{
	struct sim_inode *inode = malloc(sizeof(*inode));

	if (!inode)
		return NULL;
	*inode = *from;
	inode->handles = 0;
	inode->refs = 0;
	name_share(inode->seen.name);
	name_share(inode->durable.name);
	lac__sim_image_share(&inode->view, &from->view);
	lac__sim_image_share(&inode->disk, &from->disk);
	lac__sim_image_share(&inode->before, &from->before);
	return inode;
}

static void count_link(struct sim *s, uint32_t inode, const struct sim_link *link)
{
	if (!link->name)
		return;
	lac__sim_inode_ref(s, inode);
	lac__sim_inode_ref(s, link->parent);
}

/* S4 without handles. Files that only a handle kept stay for now, with refs 0: atoms are numbered
   as in the original until the verdicts have been carried out. */
static void count_refs(struct sim *s)
{
	s->inodes[0]->refs++;
	for (uint32_t i = 0; i < s->inode_count; i++) {
		if (!s->inodes[i])
			continue;
		count_link(s, i, &s->inodes[i]->seen);
		count_link(s, i, &s->inodes[i]->durable);
	}
	for (size_t i = 0; i < s->pending_count; i++) {
		const struct sim_atom *atom = s->pending[i];

		if (atom->kind != SIM_RENAME)
			continue;
		lac__sim_inode_ref(s, atom->inode);
		if (atom->from_name)
			lac__sim_inode_ref(s, atom->from);
		if (atom->to_name)
			lac__sim_inode_ref(s, atom->to);
	}
}

/* With the mutex of s held; inodes keep their numbers. */
static int copy(struct sim *s, struct sim **ret)
{
	struct sim *c;
	int rc = lac__sim_alloc(&s->options, &c);

	if (rc < 0)
		return rc;
	rc = -ENOMEM;
	c->read_only = s->read_only;
	c->numbering = true;
	c->inodes = calloc(s->inode_count, sizeof(struct sim_inode *));
	if (!c->inodes || lac__sim_pending_room(c, s->pending_count) < 0)
		goto out;
	c->inode_count = s->inode_count;
	for (uint32_t i = 0; i < s->inode_count; i++) {
		if (!s->inodes[i])
			continue;
		c->inodes[i] = inode_copy(s->inodes[i]);
		if (!c->inodes[i])
			goto out;
	}
	for (size_t i = 0; i < s->pending_count; i++) {
		c->pending[i] = s->pending[i];
		atomic_fetch_add_explicit(&c->pending[i]->refs, 1, memory_order_relaxed);
	}
	c->pending_count = s->pending_count;
	count_refs(c);
	*ret = c;
	return 0;
out:
	lac__sim_free(&c->base);
	return rc;
}

/* ---- verdicts ---- */

/* Where atoms share a fate: a file's, or all names'. */
static uint32_t group_of(const struct sim *s, const struct sim_atom *atom)
{
	return atom->kind == SIM_RENAME ? s->inode_count : atom->inode;
}

/* One group's way of dying: independent choices alone would hardly ever lose one whole file and
   keep another, which is how order between files shows. */
struct fate {
	unsigned style; /* 0 all kept, 1 all dropped, 2 and 3 cut somewhere, else each by itself */
	unsigned keep_of_8;
	size_t cut, at, count;
};

static void fates_choose(struct sim *s, uint64_t seed, struct fate *fates, uint32_t count)
{
	static const unsigned keep[4] = {1, 4, 6, 7};
	struct sim_random r = {lac__sim_mix(seed)};
	unsigned shared = (unsigned)(lac__sim_random(&r) % 8);

	for (size_t i = 0; i < s->pending_count; i++)
		fates[group_of(s, s->pending[i])].count++;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bits = lac__sim_random(&r);

		/* In a quarter of the states no group as a whole is kept, dropped or cut. */
		fates[i].style = shared < 2 ? 4 : (unsigned)(bits % 8);
		fates[i].keep_of_8 = keep[bits / 8 % 4];
		if (fates[i].count > 0)
			fates[i].cut = (size_t)(bits / 32 % (fates[i].count + 1));
	}
}

static enum verdict by_fate(struct fate *fate, const struct sim_atom *atom, uint64_t bits)
{
	size_t at = fate->at++;
	bool damage = bits % 4 == 0;
	enum verdict damaged = bits / 4 % 2 ? TEAR : TRASH;

	if (atom->kind == SIM_RENAME || atom->kind == SIM_SIZE || atom->kind == SIM_TRUNCATE)
		damage = false;
	switch (fate->style) {
	case 0: return KEEP;
	case 1: return DROP;
	case 2:
	case 3:
		if (at == fate->cut && damage)
			return damaged;
		return at < fate->cut ? KEEP : DROP;
	default:
		if (damage)
			return damaged;
		return bits / 8 % 8 < fate->keep_of_8 ? KEEP : DROP;
	}
}

static int judge_seeded(struct sim *s, uint64_t seed, uint8_t *verdicts)
{
	struct sim_random r = {lac__sim_mix(seed ^ UINT64_C(0x5ca1ab1e))};
	uint32_t count = s->inode_count + 1;
	struct fate *fates = calloc(count, sizeof(*fates));

	if (!fates)
		return -ENOMEM;
	fates_choose(s, seed, fates, count);
	for (size_t i = 0; i < s->pending_count; i++)
		verdicts[i] = (uint8_t)by_fate(
			&fates[group_of(s, s->pending[i])], s->pending[i], lac__sim_random(&r));
	free(fates);
	return 0;
}

/* Name changes that make no sense without each other live or die together: pull = for the sake of a
   kept one the earlier are kept, else with a dropped one the later are dropped. */
static void settle_names(struct sim *s, bool pull, uint8_t *verdicts)
{
	for (size_t n = 0; n < s->pending_count; n++) {
		size_t i = pull ? s->pending_count - 1 - n : n;

		if (s->pending[i]->kind != SIM_RENAME || verdicts[i] != (pull ? KEEP : DROP))
			continue;
		for (size_t j = pull ? 0 : i + 1; j < (pull ? i : s->pending_count); j++)
			if (s->pending[j]->kind == SIM_RENAME &&
				lac__sim_name_depends(
					s->pending[pull ? i : j], s->pending[pull ? j : i]))
				verdicts[j] = pull ? KEEP : DROP;
	}
}

static int judge(struct sim *s, enum lac__sim_crash_mode mode, uint64_t seed, uint8_t *verdicts)
{
	bool pull = mode == LAC__SIM_ONLY_ONE ||
		    (mode == LAC__SIM_SEEDED && (lac__sim_mix(seed ^ 0x17) & 1));
	int rc = 0;

	if (mode == LAC__SIM_SEEDED)
		rc = judge_seeded(s, seed, verdicts);
	for (size_t i = 0; mode != LAC__SIM_SEEDED && i < s->pending_count; i++) {
		bool keep = mode == LAC__SIM_KEEP_ALL || (mode == LAC__SIM_PREFIX && i < seed) ||
			    (mode == LAC__SIM_MISS_ONE && i != seed) ||
			    (mode == LAC__SIM_ONLY_ONE && i == seed);

		verdicts[i] = keep ? KEEP : DROP;
	}
	if (rc == 0 && mode != LAC__SIM_KEEP_ALL && mode != LAC__SIM_DROP_ALL)
		settle_names(s, pull, verdicts);
	return rc;
}

/* ---- carrying them out ---- */

static int carry_out(
	struct sim *c, const struct sim_atom *atom, enum verdict verdict, struct sim_random *r)
{
	struct sim_image *disk = &c->inodes[atom->inode]->disk;

	switch (verdict) {
	case DROP: return 0;
	case KEEP:
		if (atom->kind != SIM_RENAME)
			return lac__sim_atom_apply(disk, atom, NULL);
		lac__sim_name_apply(c, atom);
		return 0;
	case TEAR: return lac__sim_atom_tear(disk, atom, r);
	case TRASH: return lac__sim_atom_trash(disk, atom, c->options.physical_sector_bytes, r);
	}
	return 0;
}

/* Files of which every atom is kept become what was seen, without work. */
static void take_whole_files(struct sim *c, uint8_t *verdicts, uint8_t *partial)
{
	for (size_t i = 0; i < c->pending_count; i++)
		if (c->pending[i]->kind != SIM_RENAME && verdicts[i] != KEEP)
			partial[c->pending[i]->inode] = 1;
	for (uint32_t i = 0; i < c->inode_count; i++) {
		struct sim_inode *inode = c->inodes[i];

		if (!inode || inode->lost || c->options.copy_on_write)
			partial[i] = 1;
		if (partial[i])
			continue;
		lac__sim_image_drop(&inode->disk);
		lac__sim_image_share(&inode->disk, &inode->view);
	}
	for (size_t i = 0; i < c->pending_count; i++)
		if (c->pending[i]->kind != SIM_RENAME && !partial[c->pending[i]->inode])
			verdicts[i] = DROP; /* is done */
}

/* What is seen after the restart is what is durable. */
static void restart(struct sim *c, uint8_t *marks)
{
	memset(marks, 1, c->pending_count);
	lac__sim_pending_remove(c, marks);
	for (uint32_t i = 0; i < c->inode_count; i++)
		if (c->inodes[i] && c->inodes[i]->durable.name && !lac__sim_reachable(c, i, true))
			lac__sim_link_set(c, i, true, 0, NULL);
	for (uint32_t i = 0; i < c->inode_count; i++)
		if (c->inodes[i])
			lac__sim_link_set(c, i, false, c->inodes[i]->durable.parent,
				c->inodes[i]->durable.name);
	for (uint32_t i = 0; i < c->inode_count; i++) {
		struct sim_inode *inode = c->inodes[i];

		if (!inode)
			continue;
		lac__sim_image_drop(&inode->view);
		lac__sim_image_share(&inode->view, &inode->disk);
		inode->flow_size = inode->disk.size;
		inode->copies = 0;
		inode->lost = false;
	}
}

static int power_cut(struct sim *c, enum lac__sim_crash_mode mode, uint64_t seed)
{
	uint8_t *verdicts = calloc(1, c->pending_count + 1);
	uint8_t *partial = calloc(1, c->inode_count);
	struct sim_random r = {lac__sim_mix(seed + UINT64_C(0xfade))};
	int rc = verdicts && partial ? judge(c, mode, seed, verdicts) : -ENOMEM;

	if (rc < 0)
		goto out;
	take_whole_files(c, verdicts, partial);
	for (size_t i = 0; rc == 0 && i < c->pending_count; i++)
		rc = carry_out(c, c->pending[i], (enum verdict)verdicts[i], &r);
	if (rc < 0)
		goto out;
	restart(c, verdicts);
	c->read_only = false;
out:
	free(verdicts);
	free(partial);
	return rc;
}

int lac__sim_crash(struct lac_backend *be, enum lac__sim_crash_mode mode, uint64_t seed,
	struct lac_backend **ret)
{
	struct sim *s = sim_of(be), *c = NULL;
	int rc;

	pthread_mutex_lock(&s->mutex);
	rc = copy(s, &c);
	pthread_mutex_unlock(&s->mutex);
	if (rc < 0)
		return rc;
	if (mode != LAC__SIM_KILL)
		rc = power_cut(c, mode, seed);
	if (rc < 0) {
		lac__sim_free(&c->base);
		return rc;
	}
	lac__sim_inode_sweep(c);
	*ret = &c->base;
	return 0;
}

int lac__sim_clone(struct lac_backend *be, struct lac_backend **ret)
{
	return lac__sim_crash(be, LAC__SIM_KILL, 0, ret);
}

uint64_t lac__sim_unsynced(struct lac_backend *be)
{
	struct sim *s = sim_of(be);
	uint64_t count;

	pthread_mutex_lock(&s->mutex);
	count = s->pending_count;
	pthread_mutex_unlock(&s->mutex);
	return count;
}
