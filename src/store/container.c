/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/container.c - containers: where the next block goes, and how their files come and go.
 *
 * A range of a container is never used for a second block; the tail only grows, and a container
 * that is full is sealed. Two ways to take a range:
 *
 *   place    for a small transaction, whose payload the journal carries: next to its neighbours.
 *            Until a checkpoint the journal can write it all again, so granules may be shared;
 *            the checkpoint closes them (rule 4.8).
 *   reserve  for a large one, whose payload only the container has: whole granules that are
 *            nobody else's, and recorded as RESERVED before a byte goes there (rule 4.12).
 *
 * Life of a file (rule 4.17): CREATING is durable before it is made, ACTIVE after its name is
 * durable, DROPPING before it is unlinked, GONE after that is durable.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/create.h"
#include "store/internal.h"

enum { SPACE_STEP_MIN = 1 << 20, SPACE_STEP_MAX = 32 << 20 };

int lac__container_hold(
	struct lac_store *s, uint32_t id, struct lac__held **ret, struct lac_error *err)
{
	char path[LAC__NAME_BYTES];
	int rc;

	lac__name_container(id, path);
	rc = lac__files_hold(s->files, path, LAC_OPEN_WRITE, ret, err);
	if (rc == -ENOENT) /* must not look like "no such block" */
		return lac__error_set(err, -EBADMSG, LAC_REASON_MISSING_FILE, 0, 0,
			"open %s: the file is missing", path);
	return rc;
}

static struct lac__page_ref table_ref(uint32_t id)
{
	return (struct lac__page_ref){.kind = LAC__PAGE_TABLE, .no = id / LAC__TABLE_ENTRIES};
}

int lac__table_entry_get(struct lac_store *s, uint32_t id, struct lac__table_entry *ret,
	uint64_t *ret_page_lsn, struct lac_error *err)
{
	struct lac__page_ref ref = table_ref(id);
	struct lac__cached *cached;
	int rc = lac__pages_get(s->pages, &ref, &cached, err);

	if (rc < 0)
		return rc;
	lac__pages_lock(s->pages);
	rc = lac__table_get(&cached->page, id % LAC__TABLE_ENTRIES, ret, err);
	if (ret_page_lsn)
		*ret_page_lsn = cached->page.lsn;
	lac__pages_unlock(s->pages);
	lac__pages_put(s->pages, cached);
	return rc;
}

static struct lac__container *find(struct lac_store *s, uint32_t id)
{
	struct lac__container *c = s->containers;

	while (c && c->id != id)
		c = c->next;
	return c;
}

/* ---- space: the file's and its map's ---- */

static int reserve_map(struct lac_store *s, uint32_t id, uint64_t bytes, struct lac_error *err)
{
	struct lac__page_ref ref = {.kind = LAC__PAGE_MAP,
		.container = id,
		.no = (bytes / s->granule_bytes - 1) / LAC__MAP_GRANULES};

	return lac__store_made(s, lac__pages_reserve(s->pages, &ref, err), err);
}

static int extend_file(struct lac_store *s, struct lac__container *c, uint64_t from, uint64_t to,
	struct lac_error *err)
{
	struct lac__held *held;
	int rc = lac__container_hold(s, c->id, &held, err);

	if (rc < 0)
		return rc;
	rc = -EOPNOTSUPP;
	if (lac__rule(LAC__RULE_SPACE_FIRST))
		rc = lac__allocate(lac__held_file(held), from, to - from);
	if (rc == -EOPNOTSUPP)
		rc = lac__truncate(lac__held_file(held), to);
	if (rc < 0) {
		/* ext4 keeps what a failed allocation got; give it back. */
		lac__truncate(lac__held_file(held), from);
		lac__error_sys(
			err, rc, "extend container %" PRIu32 " to %" PRIu64 " bytes", c->id, to);
	} else {
		/* Recovery writes small payloads again and can't ask for space then: the allocation
		   itself must survive a power cut before a record relies on it. */
		lac__held_wrote(held);
		rc = lac__held_sync(held, err);
		if (rc < 0)
			lac__store_poison(s, rc, err);
	}
	lac__files_release(held);
	return rc;
}

/* By steps that grow with the file, so that small stores stay small. */
static uint64_t next_space(const struct lac_store *s, const struct lac__container *c, uint64_t need)
{
	uint64_t step = c->space_bytes / 4, limit = s->container_bytes, to;

	if (step < SPACE_STEP_MIN)
		step = SPACE_STEP_MIN;
	/* Where only whole extents are freed (btrfs), what is allocated together is freed together:
	   each transaction gets an extent of its own, and pays a sync for it. */
	if (s->whole_extents)
		step = 0;
	if (step > SPACE_STEP_MAX)
		step = SPACE_STEP_MAX;
	to = lac__round_up(need, s->granule_bytes);
	if (c->space_bytes + step > to)
		to = lac__round_up(c->space_bytes + step, s->granule_bytes);
	if (to > limit) /* the nominal end; beyond it only as far as one long block needs */
		to = limit > need ? limit : lac__round_up(need, s->granule_bytes);
	return to;
}

/* room_lock held. */
static int grow(struct lac_store *s, struct lac__container *c, uint64_t need, struct lac_error *err)
{
	uint64_t want = next_space(s, c, need), least = lac__round_up(need, s->granule_bytes);
	int rc;

	if (want <= c->space_bytes)
		return 0;
	rc = reserve_map(s, c->id, want, err);
	if (rc == 0)
		rc = extend_file(s, c, c->space_bytes, want, err);
	if (rc == -ENOSPC && least < want) { /* near the end every granule counts */
		want = least;
		rc = extend_file(s, c, c->space_bytes, want, err);
	}
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&s->containers_lock);
	c->space_bytes = want;
	pthread_mutex_unlock(&s->containers_lock);
	return 0;
}

/* ---- making a container ---- */

static int set_state(struct lac_store *s, uint32_t id, uint32_t state, uint32_t kind,
	unsigned flags, struct lac_error *err)
{
	struct lac__op op = {
		.type = LAC__OP_CONTAINER, .container = id, .state = state, .kind = kind};
	uint64_t lsn;

	if (state == LAC__CONTAINER_DROPPING && !lac__rule(LAC__RULE_DROP_RECORD))
		return lac__commit_sequence(s, &op, 1, flags, &lsn, NULL, err);
	return lac__commit(s, &op, 1, flags, err);
}

static int make_file(struct lac_store *s, uint32_t id, uint32_t kind, struct lac_error *err)
{
	struct lac__container_header header = {
		.uuid = s->uuid, .container = id, .kind = kind, .granule_bytes = s->granule_bytes};
	struct lac__table_entry entry;
	uint8_t *granule;
	char path[LAC__NAME_BYTES];
	int rc = lac__table_entry_get(s, id, &entry, NULL, err);

	if (rc < 0)
		return rc;
	granule = calloc(1, s->granule_bytes);
	if (!granule)
		return lac__error_nomem(err);
	header.birth_lsn = entry.birth_lsn;
	lac__container_header_encode(&header, granule);
	lac__name_container(id, path);
	rc = lac__create_file(s->backend, path, 0, granule, s->granule_bytes, 0, err);
	free(granule);
	return lac__store_made(s, rc, err);
}

/* Every page and file that the new container needs has its space before CREATING is recorded, so
   that running out of space leaves nothing behind but an unused map file. */
static int make_container(
	struct lac_store *s, uint32_t kind, struct lac__container **ret, struct lac_error *err)
{
	struct lac__container *c = calloc(1, sizeof *c);
	struct lac__page_ref table;
	int rc;

	if (!c)
		return lac__error_nomem(err);
	pthread_mutex_lock(&s->seq_lock);
	c->id = s->next_container;
	pthread_mutex_unlock(&s->seq_lock);
	c->kind = kind;
	c->swept = true;
	c->tail_bytes = c->space_bytes = s->granule_bytes;
	table = table_ref(c->id);
	rc = lac__store_made(s, lac__pages_reserve(s->pages, &table, err), err);
	if (rc == 0)
		rc = reserve_map(s, c->id, s->granule_bytes, err);
	if (rc == 0)
		rc = set_state(s, c->id, LAC__CONTAINER_CREATING, kind, 0, err);
	if (rc < 0)
		goto fail;
	pthread_mutex_lock(&s->seq_lock);
	s->next_container = c->id + 1;
	pthread_mutex_unlock(&s->seq_lock);
	rc = make_file(s, c->id, kind, err);
	if (rc == 0)
		rc = set_state(s, c->id, LAC__CONTAINER_ACTIVE, kind, 0, err);
	if (rc < 0) {
		s->leftovers = true;
		goto fail;
	}
	*ret = c;
	return 0;
fail:
	free(c);
	lac__error_prepend(err, "make container");
	return rc;
}

static bool fits(const struct lac_store *s, const struct lac__container *c, uint64_t bytes)
{
	uint64_t end;

	if (!lac__add_ok(c->tail_bytes, bytes, &end) || end > LAC__OFFSET_MAX_BYTES)
		return false;
	/* A block longer than a container gets one of its own, as long as it needs. */
	return end <= s->container_bytes || c->tail_bytes == s->granule_bytes;
}

int lac__container_make_room(
	struct lac_store *s, uint32_t kind, uint64_t bytes, struct lac_error *err)
{
	struct lac__container *c, *made = NULL;
	uint64_t need = 0;
	int rc = 0;

	pthread_mutex_lock(&s->room_lock);
	pthread_mutex_lock(&s->containers_lock);
	c = s->open_container[kind];
	if (c && !fits(s, c, bytes)) {
		c->full = true;
		c = s->open_container[kind] = NULL;
	}
	if (c)
		need = c->tail_bytes + bytes;
	pthread_mutex_unlock(&s->containers_lock);
	if (!c) {
		rc = make_container(s, kind, &made, err);
		if (rc < 0)
			goto out;
		pthread_mutex_lock(&s->containers_lock);
		made->next = s->containers;
		s->containers = made;
		c = s->open_container[kind] = made;
		need = c->tail_bytes + bytes;
		pthread_mutex_unlock(&s->containers_lock);
	}
	rc = grow(s, c, need, err);
out:
	pthread_mutex_unlock(&s->room_lock);
	return rc;
}

/* ---- ranges ---- */

/* containers_lock held. */
static int pin(struct lac__container *c, uint64_t granule, struct lac__pending **pending)
{
	struct lac__pending *p = *pending;

	while (p && p->container != c)
		p = p->next;
	if (p) {
		if (p->first_granule > granule)
			p->first_granule = granule;
		return 0;
	}
	p = calloc(1, sizeof *p);
	if (!p)
		return -ENOMEM;
	p->container = c;
	p->first_granule = granule;
	p->next = *pending;
	*pending = p;
	p->in_container = c->pending;
	c->pending = p;
	return 0;
}

void lac__pending_drop(struct lac_store *s, struct lac__pending *pending)
{
	pthread_mutex_lock(&s->containers_lock);
	while (pending) {
		struct lac__pending *next = pending->next, **at = &pending->container->pending;

		while (*at != pending)
			at = &(*at)->in_container;
		*at = pending->in_container;
		free(pending);
		pending = next;
	}
	pthread_mutex_unlock(&s->containers_lock);
}

uint64_t lac__container_pinned_from(struct lac_store *s, uint32_t id)
{
	struct lac__container *c;
	uint64_t from = UINT64_MAX;

	if (!lac__rule(LAC__RULE_PINS))
		return from;
	pthread_mutex_lock(&s->containers_lock);
	c = find(s, id);
	if (c && !c->full) {
		/* The granule that the tail is in, and the open description granule, may still take
		   blocks. */
		from = c->tail_bytes / s->granule_bytes;
		if (c->description_granule && c->description_granule < from)
			from = c->description_granule;
	}
	for (struct lac__pending *p = c ? c->pending : NULL; p; p = p->in_container)
		if (p->first_granule < from)
			from = p->first_granule;
	pthread_mutex_unlock(&s->containers_lock);
	return from;
}

static void close_granules(const struct lac_store *s, struct lac__container *c)
{
	c->tail_bytes = lac__round_up(c->tail_bytes, s->granule_bytes);
	c->open_blocks = 0;
	c->description_granule = 0;
	c->descriptions = 0;
}

void lac__containers_close_granules(struct lac_store *s)
{
	pthread_mutex_lock(&s->containers_lock);
	for (struct lac__container *c = s->containers; c; c = c->next)
		close_granules(s, c);
	pthread_mutex_unlock(&s->containers_lock);
}

static uint64_t description_room(const struct lac_store *s)
{
	uint64_t n = s->granule_bytes / LAC__DESCRIPTION_BYTES;

	return n < LAC__GRANULE_LIVE_MAX ? n : LAC__GRANULE_LIVE_MAX;
}

/* containers_lock held. */
static bool place_packed(
	const struct lac_store *s, struct lac__container *c, struct lac__placing *p)
{
	uint64_t granule = s->granule_bytes, at = c->tail_bytes, end;

	if (at % granule == 0)
		c->open_blocks = 0;
	if (c->open_blocks >= LAC__GRANULE_LIVE_MAX) {
		at = lac__round_up(at, granule);
		c->open_blocks = 0;
	}
	end = at + LAC__DESCRIPTION_BYTES + lac__round_up(p->length, LAC__PACK_ALIGN_BYTES);
	if (end > c->space_bytes || (end > s->container_bytes && at > granule))
		return false;
	p->description_offset = at;
	p->offset = at + LAC__DESCRIPTION_BYTES;
	p->distance = 0;
	if ((end - 1) / granule == at / granule)
		c->open_blocks++;
	else
		c->open_blocks = 1; /* in the granule that it ends in */
	c->tail_bytes = end;
	return true;
}

/* containers_lock held. */
static bool place_aligned(
	const struct lac_store *s, struct lac__container *c, struct lac__placing *p)
{
	uint64_t granule = s->granule_bytes, at = lac__round_up(c->tail_bytes, granule), end;

	if (c->description_granule == 0 || c->descriptions >= description_room(s) ||
		at / granule - c->description_granule > UINT16_MAX) {
		c->description_granule = at / granule;
		c->descriptions = 0;
		at += granule;
	}
	end = at + lac__round_up(lac__stored_bytes(p->length), granule);
	if (end > c->space_bytes || (end > s->container_bytes && c->tail_bytes > granule))
		return false;
	p->description_offset =
		c->description_granule * granule + c->descriptions * LAC__DESCRIPTION_BYTES;
	p->offset = at;
	p->distance = (uint32_t)(at / granule - c->description_granule);
	c->descriptions++;
	c->tail_bytes = end;
	return true;
}

uint64_t lac__container_need(const struct lac_store *s, uint32_t kind, uint64_t length)
{
	uint64_t granule = s->granule_bytes;

	if (kind == LAC__CONTAINER_PACKED)
		return LAC__DESCRIPTION_BYTES + lac__round_up(length, LAC__PACK_ALIGN_BYTES) +
		       granule;
	return lac__round_up(lac__stored_bytes(length), granule) + 2 * granule;
}

static int place_all(struct lac_store *s, struct lac__placing *placing, size_t count,
	struct lac__pending **pending)
{
	for (size_t i = 0; i < count; i++) {
		struct lac__container *c = s->open_container[placing[i].kind];
		int rc;

		if (!c || !(placing[i].kind == LAC__CONTAINER_PACKED
					  ? place_packed(s, c, &placing[i])
					  : place_aligned(s, c, &placing[i])))
			return -EAGAIN;
		placing[i].container = c->id;
		rc = pin(c, placing[i].description_offset / s->granule_bytes, pending);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int lac__container_place(struct lac_store *s, struct lac__placing *placing, size_t count,
	struct lac__pending **pending, struct lac_error *err)
{
	struct lac__container before[3];
	int rc;

	pthread_mutex_lock(&s->containers_lock);
	for (unsigned k = 1; k < 3; k++)
		if (s->open_container[k])
			before[k] = *s->open_container[k];
	rc = place_all(s, placing, count, pending);
	for (unsigned k = 1; rc < 0 && k < 3; k++) {
		struct lac__container *c = s->open_container[k];

		if (!c) /* all or nothing: as if nothing had been tried */
			continue;
		c->tail_bytes = before[k].tail_bytes;
		c->open_blocks = before[k].open_blocks;
		c->description_granule = before[k].description_granule;
		c->descriptions = before[k].descriptions;
	}
	pthread_mutex_unlock(&s->containers_lock);
	if (rc < 0) {
		lac__pending_drop(s, *pending);
		*pending = NULL;
	}
	return rc == -ENOMEM ? lac__error_nomem(err) : rc;
}

static int take_granules(struct lac_store *s, uint32_t kind, uint64_t granules,
	struct lac__pending **pending, struct lac__container **ret_c, uint64_t *ret_first)
{
	uint64_t bytes = granules * s->granule_bytes, at;
	struct lac__container *c;
	int rc = -EAGAIN;

	pthread_mutex_lock(&s->containers_lock);
	c = s->open_container[kind];
	if (c) {
		at = lac__round_up(c->tail_bytes, s->granule_bytes);
		if (at + bytes <= c->space_bytes &&
			(at + bytes <= s->container_bytes || at == s->granule_bytes)) {
			rc = pin(c, at / s->granule_bytes, pending);
			if (rc == 0) {
				c->tail_bytes = at + bytes;
				c->open_blocks = 0;
				*ret_first = at / s->granule_bytes;
				*ret_c = c;
			}
		}
	}
	pthread_mutex_unlock(&s->containers_lock);
	return rc;
}

/* A range that could not be recorded goes back, unless another one was taken behind it already. */
static void take_back(
	struct lac_store *s, struct lac__container *c, uint64_t first, uint64_t granules)
{
	pthread_mutex_lock(&s->containers_lock);
	if (c->tail_bytes == (first + granules) * s->granule_bytes)
		c->tail_bytes = first * s->granule_bytes;
	pthread_mutex_unlock(&s->containers_lock);
}

int lac__container_reserve(struct lac_store *s, uint32_t kind, uint64_t granules,
	struct lac__pending **pending, uint32_t *ret_container, uint64_t *ret_first_granule,
	struct lac_error *err)
{
	struct lac__op op = {.type = LAC__OP_RESERVE, .count = granules};
	struct lac__container *c = NULL;
	int rc;

	while ((rc = take_granules(s, kind, granules, pending, &c, &op.first)) == -EAGAIN) {
		rc = lac__container_make_room(
			s, kind, (granules + 1) * (uint64_t)s->granule_bytes, err);
		if (rc < 0)
			return rc;
	}
	if (rc < 0)
		return lac__error_nomem(err);
	/* Rule 4.12: if the record were not durable first, a crash would leave bytes in the
	   container that no record knows of, and nobody would ever free them. */
	op.container = c->id;
	rc = lac__rule(LAC__RULE_RESERVE) ? lac__commit(s, &op, 1, 0, err) : 0;
	if (rc < 0) {
		take_back(s, c, op.first, granules);
		lac__error_prepend(err, "reserve container space");
		return rc;
	}
	*ret_container = c->id;
	*ret_first_granule = op.first;
	return 0;
}

/* ---- open, seal, drop ---- */

static int load_one(struct lac_store *s, uint32_t id, const struct lac__table_entry *entry,
	struct lac_error *err)
{
	struct lac__container *c = calloc(1, sizeof *c), *other;
	struct lac_file_info info;
	char path[LAC__NAME_BYTES];
	int rc;

	if (!c)
		return lac__error_nomem(err);
	lac__name_container(id, path);
	rc = s->backend->ops->path_info(s->backend, path, &info);
	if (rc < 0 && rc != -ENOENT) {
		free(c);
		return lac__error_sys(err, rc, "stat %s", path);
	}
	c->id = id;
	c->kind = entry->kind;
	c->tail_bytes = lac__round_up(entry->tail_bytes, s->granule_bytes);
	c->swept_below = c->tail_bytes / s->granule_bytes;
	c->space_bytes = rc < 0 ? 0 : lac__round_down(info.size_bytes, s->granule_bytes);
	/* The file is missing or shorter than what its blocks need: damage, for reads to tell and
	   check to explain. Nothing is added to it. */
	c->full = rc < 0 || c->space_bytes < c->tail_bytes || entry->tail_bytes < s->granule_bytes;
	/* Space beyond the tail counts as unreserved until it is allocated again, which is cheap
	   when it is there already and needed where the store was copied sparsely. */
	if (c->space_bytes > c->tail_bytes)
		c->space_bytes = c->tail_bytes;
	c->next = s->containers;
	s->containers = c;
	other = s->open_container[c->kind];
	if (other && !c->full)
		other->full = true;
	if (!c->full)
		s->open_container[c->kind] = c;
	return 0;
}

int lac__containers_load(struct lac_store *s, struct lac_error *err)
{
	for (uint32_t id = 1; id < s->next_container; id++) {
		struct lac__table_entry entry;
		int rc = lac__table_entry_get(s, id, &entry, NULL, err);

		if (rc == 0 && entry.state == LAC__CONTAINER_ACTIVE)
			rc = load_one(s, id, &entry, err);
		if (rc < 0) {
			lac__error_prepend(err, "load container table: container %" PRIu32, id);
			return rc;
		}
		s->dead_hint += entry.dead_granules;
		s->leftovers |= entry.state == LAC__CONTAINER_CREATING ||
				entry.state == LAC__CONTAINER_DROPPING;
	}
	return 0;
}

void lac__containers_free(struct lac_store *s)
{
	while (s->containers) {
		struct lac__container *c = s->containers;

		s->containers = c->next;
		free(c);
	}
}

/*
 * Cuts a file that is longer, or holds more, than `longest` to `bytes`: by truncation, since a
 * punch beyond the end of the file frees nothing on ext4. What an earlier session allocated ahead
 * is known by the file alone. Durable on return; a failed truncation costs space and nothing else.
 */
static int trim(
	struct lac_store *s, uint32_t id, uint64_t longest, uint64_t bytes, struct lac_error *err)
{
	struct lac_file_info info;
	struct lac__held *held;
	int rc = lac__container_hold(s, id, &held, err);

	if (rc < 0)
		return rc == -EBADMSG ? 0 : rc; /* missing: damage, for reads to tell */
	if (s->backend->ops->file_info(lac__held_file(held), &info) == 0 &&
		(info.size_bytes > longest ||
			info.allocated_bytes > lac__round_up(longest, s->granule_bytes)))
		lac__truncate(
			lac__held_file(held), info.size_bytes < bytes ? info.size_bytes : bytes);
	/* Synced even when it is short enough: a process that was killed may have cut it, unsynced.
	 */
	lac__held_wrote(held);
	rc = lac__held_sync(held, err);
	if (rc < 0)
		lac__store_poison(s, rc, err);
	lac__files_release(held);
	return rc;
}

int lac__container_trim(struct lac_store *s, struct lac__container *c, struct lac_error *err)
{
	uint64_t space;
	int rc;

	pthread_mutex_lock(&s->room_lock); /* nobody is allocating meanwhile */
	pthread_mutex_lock(&s->containers_lock);
	space = c->space_bytes > c->tail_bytes ? c->space_bytes : c->tail_bytes;
	pthread_mutex_unlock(&s->containers_lock);
	rc = trim(s, c->id, space > s->container_bytes ? space : s->container_bytes, space, err);
	pthread_mutex_unlock(&s->room_lock);
	return rc;
}

void lac__containers_trim(struct lac_store *s)
{
	for (struct lac__container *c = s->containers; c; c = c->next)
		if (c->space_bytes > c->tail_bytes)
			trim(s, c->id, c->tail_bytes, c->tail_bytes, NULL);
}

static int seal(struct lac_store *s, struct lac__container *c, struct lac_error *err)
{
	struct lac__container **at = &s->containers;
	/* Before SEALED is recorded, because nobody looks at the end of a sealed container again.
	 */
	int rc = trim(s, c->id, c->tail_bytes, c->tail_bytes, err);

	if (rc == 0)
		rc = set_state(s, c->id, LAC__CONTAINER_SEALED, c->kind, LAC__COMMIT_RESERVE, err);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&s->containers_lock);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	pthread_mutex_unlock(&s->containers_lock);
	free(c);
	return 0;
}

static struct lac__container *next_to_seal(struct lac_store *s)
{
	struct lac__container *c;

	pthread_mutex_lock(&s->containers_lock);
	for (c = s->containers; c; c = c->next)
		if (c->full && !c->pending && c->swept)
			break;
	pthread_mutex_unlock(&s->containers_lock);
	return c;
}

static int unlink_files(struct lac_store *s, uint32_t id, struct lac_error *err)
{
	struct lac__page_ref map = {.kind = LAC__PAGE_MAP, .container = id};
	char path[LAC__NAME_BYTES], temporary[LAC__NAME_BYTES + 4];
	uint64_t in_file;
	int rc;

	lac__name_container(id, path);
	snprintf(temporary, sizeof temporary, "%s.tmp", path);
	s->backend->ops->unlink(s->backend, temporary);
	lac__files_forget(s->files, path);
	rc = lac__remove_file(s->backend, path, err);
	if (rc < 0)
		return rc;
	lac__name_page(&map, path, &in_file);
	lac__files_forget(s->files, path);
	return lac__remove_file(s->backend, path, err);
}

/* The container has state CREATING or DROPPING, durably, and no reader: its files go, then GONE. */
static int finish_drop(struct lac_store *s, uint32_t id, uint32_t kind, struct lac_error *err)
{
	int rc;

	lac__pages_drop_container(s->pages, id);
	rc = unlink_files(s, id, err);
	/* Both names are durably gone: only now may the table say so, or a crash would leave files
	   that no record names. */
	return rc < 0 ? rc : set_state(s, id, LAC__CONTAINER_GONE, kind, LAC__COMMIT_RESERVE, err);
}

int lac__container_drop(struct lac_store *s, uint32_t id, struct lac_error *err)
{
	struct lac__table_entry entry;
	int rc = lac__table_entry_get(s, id, &entry, NULL, err);

	if (rc < 0)
		return rc;
	/* DROPPING is durable before the first name goes: redo then skips the map pages of this
	   container, whose file may be gone. */
	rc = set_state(s, id, LAC__CONTAINER_DROPPING, entry.kind, LAC__COMMIT_RESERVE, err);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&s->room_lock);
	s->leftovers = true;
	pthread_mutex_unlock(&s->room_lock);
	lac__readers_wait(s);
	return finish_drop(s, id, entry.kind, err);
}

static int finish_leftovers(struct lac_store *s, struct lac_error *err)
{
	uint32_t end;

	pthread_mutex_lock(&s->seq_lock);
	end = s->next_container;
	pthread_mutex_unlock(&s->seq_lock);
	for (uint32_t id = 1; id < end; id++) {
		struct lac__table_entry entry;
		uint64_t lsn;
		int rc = lac__table_entry_get(s, id, &entry, &lsn, err);

		if (rc < 0)
			return rc;
		if (entry.state != LAC__CONTAINER_CREATING &&
			entry.state != LAC__CONTAINER_DROPPING)
			continue;
		rc = lac__commit_wait(s, lsn, err);
		if (rc == 0)
			rc = finish_drop(s, id, entry.kind, err);
		if (rc < 0)
			return rc;
	}
	s->leftovers = false;
	return 0;
}

int lac__containers_tidy(struct lac_store *s, struct lac_error *err)
{
	struct lac__container *c;
	int rc = 0;

	pthread_mutex_lock(&s->room_lock); /* nobody is making a container meanwhile */
	while (rc == 0 && (c = next_to_seal(s)) != NULL)
		rc = seal(s, c, err);
	if (rc == 0 && s->leftovers)
		rc = finish_leftovers(s, err);
	pthread_mutex_unlock(&s->room_lock);
	return rc;
}
