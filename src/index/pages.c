/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index/pages.c - see pages.h for the invariants.
 *
 * A page comes in by both of its slots at once (they may be apart, two reads), and the choice
 * between them is format's. A page that a checkpoint is writing may change meanwhile: the
 * checkpoint copies it under the lock, and what comes later makes it dirty again for the next one,
 * which starts only when this one's super is durable, so its base is then the slot just written.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/rules.h"
#include "base/checked.h"
#include "format/names.h"
#include "fs/create.h"
#include "index/pages.h"

enum { PAGE_LOADING, PAGE_READY, PAGE_FAILED };

/* What may be wrong with slots: nothing, torn ones, all of them. */
enum tolerance { TOLERATE_NONE, TOLERATE_TORN, TOLERATE_LOST };

struct lac__pages {
	struct lac__files *files;
	struct lac_backend *backend;
	struct lac__uuid uuid;
	pthread_mutex_t lock;
	pthread_cond_t loaded;
	uint64_t budget, checkpoint;
	struct lac__cached **table;
	size_t table_size; /* a power of two */
	uint64_t count;
	struct lac__cached *oldest, *newest; /* every ready page, by last use */
	struct lac__cached *dirty_first;
	struct lac__cached **written; /* pinned by the checkpoint under way (I4) */
	size_t written_count;
	char reserved_path[LAC__NAME_BYTES]; /* the file reserved last, and how much of it */
	uint64_t reserved_bytes;
	struct lac__pages_stats stats;
};

static size_t hash_of(const struct lac__page_ref *ref)
{
	uint64_t h = ref->no * UINT64_C(0x9E3779B97F4A7C15);

	h ^= ((uint64_t)ref->container << 3 | ref->kind) * UINT64_C(0xC2B2AE3D27D4EB4F);
	return (size_t)(h ^ h >> 29);
}

int lac__pages_new(struct lac__files *files, const struct lac__uuid *uuid, uint64_t budget_pages,
	uint64_t checkpoint, struct lac__pages **ret)
{
	struct lac__pages *p = calloc(1, sizeof *p);

	if (!p)
		return -ENOMEM;
	p->table_size = 64;
	while (p->table_size < budget_pages)
		p->table_size *= 2;
	p->table = calloc(p->table_size, sizeof *p->table);
	if (!p->table) {
		free(p);
		return -ENOMEM;
	}
	p->files = files;
	p->backend = lac__files_backend(files);
	p->uuid = *uuid;
	p->budget = budget_pages;
	p->checkpoint = checkpoint;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->loaded, NULL);
	*ret = p;
	return 0;
}

void lac__pages_free(struct lac__pages *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->table_size; i++)
		while (p->table[i]) {
			struct lac__cached *c = p->table[i];

			p->table[i] = c->hash_next;
			free(c);
		}
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->loaded);
	free(p->written);
	free(p->table);
	free(p);
}

void lac__pages_lock(struct lac__pages *p)
{
	pthread_mutex_lock(&p->lock);
}

void lac__pages_unlock(struct lac__pages *p)
{
	pthread_mutex_unlock(&p->lock);
}

static bool same_ref(const struct lac__page_ref *a, const struct lac__page_ref *b)
{
	return a->no == b->no && a->kind == b->kind && a->container == b->container;
}

static struct lac__cached **find(struct lac__pages *p, const struct lac__page_ref *ref)
{
	struct lac__cached **at = &p->table[hash_of(ref) & (p->table_size - 1)];

	while (*at && !same_ref(&(*at)->page.ref, ref))
		at = &(*at)->hash_next;
	return at;
}

static void lru_remove(struct lac__pages *p, struct lac__cached *c)
{
	*(c->older ? &c->older->newer : &p->oldest) = c->newer;
	*(c->newer ? &c->newer->older : &p->newest) = c->older;
	c->older = c->newer = NULL;
}

static void lru_add(struct lac__pages *p, struct lac__cached *c)
{
	c->newer = NULL;
	c->older = p->newest;
	*(p->newest ? &p->newest->newer : &p->oldest) = c;
	p->newest = c;
}

static void remove_page(struct lac__pages *p, struct lac__cached *c)
{
	*find(p, &c->page.ref) = c->hash_next;
	lru_remove(p, c);
	p->count--;
	free(c);
}

static void clean(struct lac__pages *p, struct lac__cached *c)
{
	if (c->rec_lsn == 0)
		return;
	*(c->dirty_prev ? &c->dirty_prev->dirty_next : &p->dirty_first) = c->dirty_next;
	if (c->dirty_next)
		c->dirty_next->dirty_prev = c->dirty_prev;
	c->dirty_prev = c->dirty_next = NULL;
	c->rec_lsn = 0;
	p->stats.dirty--;
}

/* I5. Called under the lock. What can't go is moved out of the way, so that a long run of dirty
   pages is not walked again at each call. */
static void evict(struct lac__pages *p)
{
	for (unsigned tries = 0; p->count > p->budget && p->oldest && tries < 32; tries++) {
		struct lac__cached *c = p->oldest;

		if (c->pins == 0 && c->rec_lsn == 0 && !c->writing) {
			remove_page(p, c);
			continue;
		}
		lru_remove(p, c);
		lru_add(p, c);
	}
}

static int read_slots(
	struct lac__pages *p, struct lac__cached *c, uint8_t *slots, struct lac_error *err)
{
	char path[LAC__NAME_BYTES];
	struct lac__held *held;
	uint64_t in_file;
	int rc;

	memset(slots, 0, 2 * LAC__PAGE_BYTES);
	lac__name_page(&c->page.ref, path, &in_file);
	rc = lac__files_hold(p->files, path, LAC_OPEN_WRITE, &held, err);
	if (rc == -ENOENT)
		return 0; /* no page of this file was ever written */
	if (rc < 0)
		return rc;
	for (unsigned s = 0; s < 2; s++) {
		ssize_t n = lac__read_up_to(lac__held_file(held), slots + s * LAC__PAGE_BYTES,
			LAC__PAGE_BYTES, lac__page_slot_offset(in_file, s));

		if (n < 0 && lac__rule(LAC__RULE_UNREADABLE)) {
			rc = lac__error_sys(
				err, (int)n, "read %s: page %" PRIu64 " slot %u", path, in_file, s);
			break;
		}
		if (n < (ssize_t)LAC__PAGE_BYTES) /* beyond the end: never written */
			memset(slots + s * LAC__PAGE_BYTES, 0, LAC__PAGE_BYTES);
	}
	lac__files_release(held);
	return rc;
}

static bool unacceptable(const struct lac__slot_choice *choice, enum tolerance tolerance)
{
	bool bad = choice->state[0] == LAC__SLOT_BAD || choice->state[1] == LAC__SLOT_BAD;

	return (bad && tolerance == TOLERATE_NONE) || (choice->lost && tolerance != TOLERATE_LOST);
}

static int load(struct lac__pages *p, struct lac__cached *c, enum tolerance tolerance,
	struct lac_error *err)
{
	struct lac__page_ref ref = c->page.ref;
	struct lac__slot_choice choice;
	uint8_t *slots = malloc(2 * LAC__PAGE_BYTES);
	int rc;

	if (!slots)
		return lac__error_nomem(err);
	rc = read_slots(p, c, slots, err);
	if (rc == 0) {
		lac__page_choose(slots, slots + LAC__PAGE_BYTES, &ref, &p->uuid, p->checkpoint,
			&c->page, &choice);
		c->base = (int8_t)choice.base;
		c->write_slot = (int8_t)choice.write;
		if (unacceptable(&choice, tolerance)) {
			char path[LAC__NAME_BYTES];
			uint64_t in_file;

			lac__name_page(&ref, path, &in_file);
			rc = lac__error_set(err, -EBADMSG, LAC_REASON_PAGE_LOST,
				lac__page_slot_offset(in_file, 0), LAC__PAGE_BYTES,
				"read %s: page %" PRIu64 ": %s", path, in_file,
				choice.lost ? "no slot verifies"
					    : "a slot does not verify, and may be the newer");
		}
	}
	free(slots);
	return rc;
}

static int finish_load(struct lac__pages *p, struct lac__cached *c, int rc)
{
	pthread_mutex_lock(&p->lock);
	if (rc == 0) {
		c->state = PAGE_READY;
	} else {
		/* Those who waited see the error; the next caller tries again. */
		c->state = PAGE_FAILED;
		c->load_error = rc;
		*find(p, &c->page.ref) = c->hash_next;
		lru_remove(p, c);
		p->count--;
		if (--c->pins == 0)
			free(c);
	}
	evict(p);
	pthread_cond_broadcast(&p->loaded);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* Under the lock, which is held again on return. */
static int wait_loaded(struct lac__pages *p, struct lac__cached *c, struct lac_error *err)
{
	int rc;

	while (c->state == PAGE_LOADING)
		pthread_cond_wait(&p->loaded, &p->lock);
	if (c->state == PAGE_READY)
		return 0;
	rc = c->load_error;
	if (--c->pins == 0)
		free(c);
	return lac__error_set(err, rc, rc == -EBADMSG ? LAC_REASON_PAGE_LOST : LAC_REASON_SYSTEM, 0,
		0, "read metadata page: another reader of it failed");
}

static int get(struct lac__pages *p, const struct lac__page_ref *ref, enum tolerance tolerance,
	struct lac__cached **ret, struct lac_error *err)
{
	struct lac__cached *c, **at, *fresh = NULL;
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	c = *find(p, ref);
	if (!c) {
		pthread_mutex_unlock(&p->lock);
		fresh = calloc(1, sizeof *fresh);
		if (!fresh)
			return lac__error_nomem(err);
		pthread_mutex_lock(&p->lock);
		at = find(p, ref);
		c = *at;
		if (!c) {
			c = *at = fresh;
			c->page.ref = *ref;
			c->pins = 1;
			c->state = PAGE_LOADING;
			lru_add(p, c);
			p->count++;
			p->stats.misses++;
			pthread_mutex_unlock(&p->lock);
			rc = finish_load(p, c, load(p, c, tolerance, err));
			if (rc == 0)
				*ret = c;
			return rc;
		}
	}
	c->pins++;
	p->stats.hits++;
	lru_remove(p, c);
	lru_add(p, c);
	if (c->state != PAGE_READY)
		rc = wait_loaded(p, c, err);
	pthread_mutex_unlock(&p->lock);
	free(fresh);
	if (rc == 0)
		*ret = c;
	return rc;
}

int lac__pages_get(struct lac__pages *p, const struct lac__page_ref *ref, struct lac__cached **ret,
	struct lac_error *err)
{
	return get(p, ref, TOLERATE_NONE, ret, err);
}

int lac__pages_get_redo(struct lac__pages *p, const struct lac__page_ref *ref, bool first,
	struct lac__cached **ret, struct lac_error *err)
{
	return get(p, ref, first ? TOLERATE_LOST : TOLERATE_TORN, ret, err);
}

void lac__pages_put(struct lac__pages *p, struct lac__cached *c)
{
	pthread_mutex_lock(&p->lock);
	assert(c->pins > 0);
	c->pins--;
	evict(p);
	pthread_mutex_unlock(&p->lock);
}

int lac__pages_base(
	struct lac__pages *p, const struct lac__page_ref *ref, int *ret_base, struct lac_error *err)
{
	struct lac__cached *c;
	int rc = get(p, ref, false, &c, err);

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&p->lock);
	*ret_base = c->base;
	pthread_mutex_unlock(&p->lock);
	lac__pages_put(p, c);
	return 0;
}

void lac__pages_dirty(struct lac__pages *p, struct lac__cached *c, uint64_t lsn)
{
	assert(c->pins > 0 && lsn > 0);
	if (c->rec_lsn != 0)
		return;
	c->rec_lsn = lsn;
	c->dirty_next = p->dirty_first;
	if (p->dirty_first)
		p->dirty_first->dirty_prev = c;
	p->dirty_first = c;
	if (++p->stats.dirty > p->stats.dirty_peak)
		p->stats.dirty_peak = p->stats.dirty;
}

void lac__pages_changed(struct lac__pages *p, struct lac__cached *c, uint64_t lsn)
{
	if (c->page.lsn < lsn)
		c->page.lsn = lsn;
	lac__pages_dirty(p, c, lsn);
}

/* True when this session has seen to it already. Else the file may be as a process left it that was
   killed before its sync: there for everybody to see, and gone after a power cut (rule 4.6). */
static bool is_reserved(struct lac__pages *p, const char *path, uint64_t bytes)
{
	bool known;

	pthread_mutex_lock(&p->lock);
	known = strcmp(p->reserved_path, path) == 0 && bytes <= p->reserved_bytes;
	pthread_mutex_unlock(&p->lock);
	return known;
}

static void note_reserved(struct lac__pages *p, const char *path, uint64_t bytes)
{
	pthread_mutex_lock(&p->lock);
	strcpy(p->reserved_path, path);
	p->reserved_bytes = bytes;
	pthread_mutex_unlock(&p->lock);
}

/* A failed sync is final whatever its cause (P5): it must not look like a lack that passes. */
static int sync_reserved(
	struct lac__pages *p, struct lac__held *held, const char *path, struct lac_error *err)
{
	int rc;

	lac__held_wrote(held);
	rc = lac__held_sync(held, err);
	if (rc == 0)
		rc = lac__sync_dir_of(p->backend, path, err);
	if (rc == 0)
		return 0;
	if (err)
		err->code = -EIO;
	return -EIO;
}

int lac__pages_reserve(struct lac__pages *p, const struct lac__page_ref *ref, struct lac_error *err)
{
	char path[LAC__NAME_BYTES];
	struct lac__held *held = NULL;
	struct lac_file_info info;
	uint64_t in_file, want;
	int rc;

	lac__name_page(ref, path, &in_file);
	want = lac__page_file_bytes(in_file + 1);
	if (is_reserved(p, path, want))
		return 0;
	rc = lac__files_hold(p->files, path, LAC_OPEN_WRITE, &held, err);
	if (rc == -ENOENT) {
		rc = lac__create_file(p->backend, path, LAC_OPEN_NOCOW, NULL, 0,
			lac__rule(LAC__RULE_SPACE_FIRST) ? want : 0, err);
		if (rc < 0)
			return rc;
		rc = lac__files_hold(p->files, path, LAC_OPEN_WRITE, &held, err);
	}
	if (rc < 0)
		return rc;
	rc = held ? p->backend->ops->file_info(lac__held_file(held), &info) : 0;
	if (rc < 0) {
		lac__error_sys(err, rc, "stat %s", path);
		goto out;
	}
	if (info.size_bytes >= want)
		goto sync;
	rc = -EOPNOTSUPP;
	if (lac__rule(LAC__RULE_SPACE_FIRST))
		rc = lac__allocate(lac__held_file(held), info.size_bytes, want - info.size_bytes);
	if (rc == -EOPNOTSUPP)
		rc = lac__truncate(lac__held_file(held), want);
	if (rc < 0) {
		/* What a failed allocation left must go back (ext4 keeps it). */
		lac__truncate(lac__held_file(held), info.size_bytes);
		lac__error_sys(err, rc, "reserve %s: %" PRIu64 " bytes", path, want);
		goto out;
	}
sync:
	/* Space and name must outlive a power cut: recovery writes these pages and can't ask again.
	 */
	rc = sync_reserved(p, held, path, err);
	if (rc == 0)
		note_reserved(p, path, want);
out:
	lac__files_release(held);
	return rc;
}

void lac__pages_drop_container(struct lac__pages *p, uint32_t container)
{
	pthread_mutex_lock(&p->lock);
	for (struct lac__cached *c = p->oldest, *next; c; c = next) {
		next = c->newer;
		if (c->page.ref.kind != LAC__PAGE_MAP || c->page.ref.container != container)
			continue;
		clean(p, c);
		if (c->pins == 0 && !c->writing)
			remove_page(p, c);
	}
	pthread_mutex_unlock(&p->lock);
}

static int by_place(const void *a, const void *b)
{
	const struct lac__page_ref *x = &(*(struct lac__cached *const *)a)->page.ref;
	const struct lac__page_ref *y = &(*(struct lac__cached *const *)b)->page.ref;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->container != y->container)
		return x->container < y->container ? -1 : 1;
	return x->no < y->no ? -1 : x->no > y->no;
}

/* Pins every page that must go out and puts them in order of place. */
static int collect_dirty(struct lac__pages *p, uint64_t before_lsn)
{
	size_t n = 0;

	pthread_mutex_lock(&p->lock);
	free(p->written);
	p->written_count = 0;
	p->written = malloc((p->stats.dirty + 1) * sizeof *p->written);
	if (!p->written) {
		pthread_mutex_unlock(&p->lock);
		return -ENOMEM;
	}
	for (struct lac__cached *c = p->dirty_first; c; c = c->dirty_next) {
		if (c->rec_lsn >= before_lsn)
			continue;
		c->writing = true; /* keeps it in the cache until _done, as a pin does */
		p->written[n++] = c;
	}
	p->written_count = n;
	pthread_mutex_unlock(&p->lock);
	qsort(p->written, n, sizeof *p->written, by_place);
	return 0;
}

static int write_page(struct lac__pages *p, struct lac__cached *c, uint64_t number,
	int (*durable)(void *arg, uint64_t lsn, struct lac_error *err), void *arg,
	struct lac__held **held, char *held_path, uint64_t *max_lsn, struct lac_error *err)
{
	uint8_t bytes[LAC__PAGE_BYTES];
	char path[LAC__NAME_BYTES];
	uint64_t in_file, lsn;
	int rc;

	pthread_mutex_lock(&p->lock);
	if (c->rec_lsn == 0) { /* dropped with its container meanwhile */
		pthread_mutex_unlock(&p->lock);
		return 0;
	}
	lsn = c->page.lsn;
	lac__page_encode(&c->page, &p->uuid, number, bytes);
	clean(p, c);
	if (!lac__rule(LAC__RULE_BASE_SLOT) && c->base >= 0)
		c->write_slot = c->base;
	assert(c->write_slot != c->base || !lac__rule(LAC__RULE_BASE_SLOT)); /* I2 */
	pthread_mutex_unlock(&p->lock);

	rc = lac__rule(LAC__RULE_PAGES_FOLLOW) ? durable(arg, lsn, err) : 0; /* I3 */
	if (rc < 0)
		return rc;
	lac__name_page(&c->page.ref, path, &in_file);
	if (!*held || strcmp(path, held_path) != 0) {
		if (*held) {
			rc = lac__held_sync(*held, err);
			lac__files_release(*held);
			*held = NULL;
			if (rc < 0)
				return rc;
		}
		rc = lac__files_hold(p->files, path, LAC_OPEN_WRITE, held, err);
		if (rc < 0)
			return rc;
		strcpy(held_path, path);
	}
	rc = lac__write_full(lac__held_file(*held), bytes, sizeof bytes,
		lac__page_slot_offset(in_file, (unsigned)c->write_slot));
	if (rc < 0)
		return lac__error_sys(err, rc, "write %s: page %" PRIu64, path, in_file);
	lac__held_wrote(*held);
	if (lsn > *max_lsn)
		*max_lsn = lsn;
	return 0;
}

int lac__pages_checkpoint(struct lac__pages *p, uint64_t number, uint64_t before_lsn,
	int (*durable)(void *arg, uint64_t lsn, struct lac_error *err), void *arg,
	uint64_t *ret_max_lsn, struct lac_error *err)
{
	char held_path[LAC__NAME_BYTES] = "";
	struct lac__held *held = NULL;
	uint64_t max_lsn = 0;
	int rc = collect_dirty(p, before_lsn);

	if (rc < 0)
		return lac__error_nomem(err);
	for (size_t i = 0; i < p->written_count && rc == 0; i++)
		rc = write_page(
			p, p->written[i], number, durable, arg, &held, held_path, &max_lsn, err);
	/* Each file's slots are durable before the super names this checkpoint; until then recovery
	   ignores them (4.5), so whatever a power cut leaves of them does no harm. */
	if (rc == 0 && held)
		rc = lac__held_sync(held, err);
	if (held)
		lac__files_release(held);
	if (rc == 0)
		*ret_max_lsn = max_lsn;
	return rc;
}

void lac__pages_checkpoint_done(struct lac__pages *p, uint64_t number)
{
	pthread_mutex_lock(&p->lock);
	p->checkpoint = number;
	p->stats.written += p->written_count;
	for (size_t i = 0; i < p->written_count; i++) {
		struct lac__cached *c = p->written[i];

		c->writing = false;
		c->base = c->write_slot;
		c->write_slot = (int8_t)!c->base;
	}
	p->written_count = 0;
	evict(p);
	pthread_mutex_unlock(&p->lock);
}

void lac__pages_stats(struct lac__pages *p, struct lac__pages_stats *ret)
{
	pthread_mutex_lock(&p->lock);
	*ret = p->stats;
	ret->cached = p->count;
	pthread_mutex_unlock(&p->lock);
}
