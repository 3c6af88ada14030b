/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/commit.c - how operations become a record with an LSN and a change of pages.
 *
 * The pages that the operations touch are pinned first, outside every lock, since that may need
 * I/O. Then, under seq_lock, the operations are tried out on copies of them: whatever is wrong
 * shows before anything happened, and running out of journal space leaves no trace. Only when the
 * journal has taken the record are the copies put in place. Redo and check change pages by the
 * same function, lac__op_apply, so they can't come to another result.
 *
 * A reader may see a change that is sequenced but not yet durable. Where that matters he waits
 * (S2). Pages go to disk only when their LSN is durable (rule 4.4).
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "store/internal.h"

struct touched {
	struct lac__cached *cached;
	struct lac__page *copy;
	bool changed;
};

struct page_set {
	struct lac_store *store;
	struct lac_error *err;
	struct touched *pages;
	size_t count, room;
	uint32_t *slots; /* hash of index + 1 */
	size_t slots_size;
};

static size_t hash_of(const struct lac__page_ref *ref)
{
	uint64_t h = (ref->no + ref->container) * UINT64_C(0x9E3779B97F4A7C15) + ref->kind;

	return (size_t)(h ^ h >> 32);
}

static bool same_ref(const struct lac__page_ref *a, const struct lac__page_ref *b)
{
	return a->no == b->no && a->kind == b->kind && a->container == b->container;
}

static struct touched *set_find(
	const struct page_set *set, const struct lac__page_ref *ref, size_t *ret_slot)
{
	size_t slot = 0;

	if (set->slots_size == 0)
		return NULL;
	for (slot = hash_of(ref) & (set->slots_size - 1); set->slots[slot];
		slot = (slot + 1) & (set->slots_size - 1)) {
		struct touched *t = &set->pages[set->slots[slot] - 1];

		if (same_ref(&t->cached->page.ref, ref))
			return t;
	}
	*ret_slot = slot;
	return NULL;
}

static int set_grow(struct page_set *set)
{
	size_t room = set->room ? set->room * 2 : 16, size = room * 2;
	struct touched *pages = realloc(set->pages, room * sizeof *pages);
	uint32_t *slots;

	if (!pages)
		return -ENOMEM;
	set->pages = pages;
	slots = calloc(size, sizeof *slots);
	if (!slots)
		return -ENOMEM;
	free(set->slots);
	set->slots = slots;
	set->slots_size = size;
	set->room = room;
	for (size_t i = 0; i < set->count; i++) {
		size_t slot = hash_of(&pages[i].cached->page.ref) & (size - 1);

		while (slots[slot])
			slot = (slot + 1) & (size - 1);
		slots[slot] = (uint32_t)i + 1;
	}
	return 0;
}

/* A transaction may not pin more than a quarter of the budget: a stated limit (P10). */
static size_t set_limit(const struct lac_store *s)
{
	return s->pages_budget / 4 < 64 ? 64 : s->pages_budget / 4;
}

static int set_add(void *arg, const struct lac__page_ref *ref)
{
	struct page_set *set = arg;
	struct lac_store *s = set->store;
	struct lac__cached *cached;
	size_t slot = 0;
	int rc;

	if (set_find(set, ref, &slot))
		return 0;
	if (set->count >= set_limit(s))
		return lac__error_set(set->err, -E2BIG, LAC_REASON_TOO_BIG, 0, 0,
			"transaction touches more than %zu metadata pages", set_limit(s));
	if (set->count == set->room) {
		if (set_grow(set) < 0)
			return lac__error_nomem(set->err);
		set_find(set, ref, &slot);
	}
	rc = lac__pages_get(s->pages, ref, &cached, set->err);
	if (rc < 0)
		return rc;
	set->pages[set->count] = (struct touched){.cached = cached};
	set->slots[slot] = (uint32_t)++set->count;
	return 0;
}

static int set_make_copies(struct page_set *set)
{
	struct lac_store *s = set->store;

	for (size_t i = 0; i < set->count; i++) {
		set->pages[i].copy = malloc(sizeof *set->pages[i].copy);
		if (!set->pages[i].copy)
			return -ENOMEM;
	}
	/* Contents change under seq_lock only, which is held: the copies stay true. */
	lac__pages_lock(s->pages);
	for (size_t i = 0; i < set->count; i++)
		*set->pages[i].copy = set->pages[i].cached->page;
	lac__pages_unlock(s->pages);
	return 0;
}

static void set_free(struct page_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		lac__pages_put(set->store->pages, set->pages[i].cached);
		free(set->pages[i].copy);
	}
	free(set->pages);
	free(set->slots);
}

static struct lac__page_ref index_ref(uint64_t id)
{
	return (struct lac__page_ref){.kind = LAC__PAGE_INDEX, .no = id / LAC__INDEX_ENTRIES};
}

int lac__entry_lookup(struct lac_store *s, uint64_t id, struct lac__entry *ret,
	uint64_t *ret_page_lsn, struct lac_error *err)
{
	struct lac__page_ref ref = index_ref(id);
	struct lac__cached *cached;
	int rc;

	*ret_page_lsn = 0;
	if (id == 0 || id >= s->id_high_water)
		return -ENOENT;
	rc = lac__pages_get(s->pages, &ref, &cached, err);
	if (rc < 0)
		return rc;
	lac__pages_lock(s->pages);
	*ret_page_lsn = cached->page.lsn;
	rc = lac__entry_get(&cached->page, (unsigned)(id % LAC__INDEX_ENTRIES), ret, err);
	lac__pages_unlock(s->pages);
	lac__pages_put(s->pages, cached);
	if (rc == 0 && *ret_page_lsn == 0)
		rc = lac__page_zero_check(s, ref.no, ret, err);
	return rc;
}

/* What a DELETE must say of its block, from the entry (rule 4.10). False when it is not live. */
static bool fill_delete(struct lac__op *op, const struct lac__entry *entry)
{
	if (entry->state != LAC__ENTRY_LIVE)
		return false;
	op->owner = entry->owner;
	op->length = entry->length;
	op->offset = entry->offset;
	op->container = entry->container;
	op->distance = entry->distance;
	return true;
}

/* Pins all pages. A DELETE of what is not live is turned into type 0 and counted later. */
static int gather(struct page_set *set, struct lac__op *ops, size_t count)
{
	struct lac_store *s = set->store;
	int rc;

	for (size_t i = 0; i < count; i++) {
		if (ops[i].type == LAC__OP_DELETE) {
			struct lac__entry entry;
			uint64_t lsn;

			rc = lac__entry_lookup(s, ops[i].id, &entry, &lsn, set->err);
			if (rc == -ENOENT || (rc == 0 && !fill_delete(&ops[i], &entry))) {
				ops[i].type = 0;
				continue;
			}
			if (rc < 0)
				return rc;
		}
		rc = lac__op_pages(&ops[i], s->granule_bytes, set_add, set);
		if (rc < 0)
			return rc;
	}
	return 0;
}

struct trial {
	struct page_set *set;
	struct lac__op *op;
	uint64_t lsn;
	uint64_t turned;
	bool turning; /* first round: count only */
};

static int try_page(void *arg, const struct lac__page_ref *ref)
{
	struct trial *trial = arg;
	uint32_t granule = trial->set->store->granule_bytes;
	size_t slot;
	struct touched *t = set_find(trial->set, ref, &slot);

	assert(t);
	if (trial->turning) {
		if (ref->kind == LAC__PAGE_MAP)
			trial->turned += lac__op_turns(trial->op, granule, t->copy);
		return 0;
	}
	t->changed = true;
	return lac__op_apply(trial->op, granule, trial->lsn, t->copy, trial->set->err);
}

/* True when a delete finds its block gone since gather. */
static bool lost_race(struct page_set *set, const struct lac__op *op)
{
	struct lac__page_ref ref = index_ref(op->id);
	struct lac__entry entry;
	size_t slot;
	struct touched *t = set_find(set, &ref, &slot);

	return lac__entry_get(t->copy, (unsigned)(op->id % LAC__INDEX_ENTRIES), &entry, NULL) ==
		       0 &&
	       entry.state != LAC__ENTRY_LIVE;
}

/* Tries all operations on the copies and fills in what they turn; lsn is the one to come. */
static int try_out(struct page_set *set, struct lac__op *ops, size_t count, uint64_t lsn)
{
	for (size_t i = 0; i < count; i++) {
		struct trial trial = {.set = set, .op = &ops[i], .lsn = lsn, .turning = true};
		uint32_t granule = set->store->granule_bytes;
		int rc;

		if (ops[i].type == 0)
			continue;
		if (ops[i].type == LAC__OP_DELETE && lost_race(set, &ops[i])) {
			ops[i].type = 0;
			continue;
		}
		ops[i].turned = 0;
		if (ops[i].type <= LAC__OP_DELETE || ops[i].type == LAC__OP_RELEASE) {
			lac__op_pages(&ops[i], granule, try_page, &trial);
			ops[i].turned = trial.turned;
		}
		trial.turning = false;
		rc = lac__op_pages(&ops[i], granule, try_page, &trial);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int encode(struct page_set *set, const struct lac__op *ops, size_t count,
	uint8_t **ret_bytes, size_t *ret_length)
{
	size_t length = LAC__RECORD_HEADER_BYTES;
	uint32_t pages = 0, used = 0;
	uint8_t *bytes, *at;

	for (size_t i = 0; i < set->count; i++)
		pages += set->pages[i].changed;
	length += (size_t)pages * LAC__RECORD_PAGE_BYTES;
	for (size_t i = 0; i < count; i++)
		if (ops[i].type != 0) {
			length += lac__op_bytes(&ops[i]);
			used++;
		}
	*ret_length = length;
	*ret_bytes = NULL;
	if (used == 0)
		return 0;
	if (length > LAC__RECORD_BYTES_MAX)
		return lac__error_set(set->err, -E2BIG, LAC_REASON_TOO_BIG, 0, length,
			"transaction needs %zu bytes of journal, limit %u", length,
			LAC__RECORD_BYTES_MAX);
	bytes = malloc(length);
	if (!bytes)
		return lac__error_nomem(set->err);
	lac__record_header_encode(pages, used, bytes);
	at = bytes + LAC__RECORD_HEADER_BYTES;
	for (size_t i = 0; i < set->count; i++) {
		const struct lac__page *page = &set->pages[i].cached->page;

		if (!set->pages[i].changed)
			continue;
		lac__record_page_encode(
			&(struct lac__record_page){.ref = page->ref, .prev_lsn = page->lsn}, at);
		at += LAC__RECORD_PAGE_BYTES;
	}
	for (size_t i = 0; i < count; i++)
		if (ops[i].type != 0)
			at += lac__op_encode(&ops[i], at);
	assert(at == bytes + length);
	*ret_bytes = bytes;
	return 0;
}

/* A page whose ids are all dead may be retired some day; a full list only means later (rule 4.16).
 */
static void note_retirable(struct lac_store *s, const struct lac__page *page)
{
	struct lac__entry entry;

	if (page->ref.kind != LAC__PAGE_INDEX)
		return;
	for (unsigned i = page->ref.no == 0; i < LAC__INDEX_ENTRIES; i++)
		if (lac__entry_get(page, i, &entry, NULL) < 0 || entry.state != LAC__ENTRY_DEAD)
			return;
	if (s->retirable_count == s->retirable_room) {
		size_t room = s->retirable_room ? s->retirable_room * 2 : 64;
		uint64_t *list = room > 4096 ? NULL : realloc(s->retirable, room * sizeof *list);

		if (!list)
			return;
		s->retirable = list;
		s->retirable_room = room;
	}
	s->retirable[s->retirable_count++] = page->ref.no;
}

/* The record is in the journal: its changes become those of the pages (S1). */
static void put_in_place(
	struct page_set *set, const struct lac__op *ops, size_t count, uint64_t lsn)
{
	struct lac_store *s = set->store;
	bool deletes = false;

	lac__pages_lock(s->pages);
	for (size_t i = 0; i < set->count; i++) {
		struct touched *t = &set->pages[i];

		if (!t->changed)
			continue;
		memcpy(t->cached->page.body, t->copy->body, sizeof t->copy->body);
		lac__pages_changed(s->pages, t->cached, lsn);
	}
	lac__pages_unlock(s->pages);
	for (size_t i = 0; i < count; i++) {
		s->puts += ops[i].type == LAC__OP_PUT;
		if (ops[i].type == LAC__OP_DELETE || ops[i].type == LAC__OP_RELEASE)
			s->dead_hint += ops[i].turned;
		if (ops[i].type == LAC__OP_DELETE) {
			deletes = true;
			s->deletes++;
		}
		if (ops[i].type == LAC__OP_HIGH_WATER)
			s->sequenced_high_water = ops[i].first + ops[i].count;
	}
	for (size_t i = 0; deletes && i < set->count; i++)
		if (set->pages[i].changed)
			note_retirable(s, &set->pages[i].cached->page);
	s->sequenced_lsn = lsn;
	s->commits++;
}

int lac__commit_sequence(struct lac_store *s, struct lac__op *ops, size_t count, unsigned flags,
	uint64_t *ret_lsn, uint64_t *ret_missing, struct lac_error *err)
{
	struct page_set set = {.store = s, .err = err};
	uint64_t lsn = 0, missing = 0;
	uint8_t *bytes = NULL;
	size_t length;
	int rc;

	if (count > LAC__RECORD_OPS_MAX)
		return lac__error_set(err, -E2BIG, LAC_REASON_TOO_BIG, 0, 0,
			"transaction has %zu operations, limit %u", count, LAC__RECORD_OPS_MAX);
	rc = gather(&set, ops, count);
	if (rc < 0)
		goto out;

	pthread_mutex_lock(&s->seq_lock);
	rc = set_make_copies(&set);
	if (rc < 0)
		lac__error_nomem(err);
	if (rc == 0)
		rc = try_out(&set, ops, count, lac__journal_next_lsn(s->journal));
	if (rc == 0)
		rc = encode(&set, ops, count, &bytes, &length);
	if (rc == 0 && bytes)
		rc = lac__journal_append(s->journal, bytes, length,
			flags & LAC__COMMIT_RESERVE ? LAC__APPEND_RESERVE : 0, &lsn, err);
	if (rc == 0 && bytes)
		put_in_place(&set, ops, count, lsn);
	pthread_mutex_unlock(&s->seq_lock);
out:
	for (size_t i = 0; i < count; i++)
		missing += ops[i].type == 0;
	set_free(&set);
	free(bytes);
	if (rc == 0) {
		*ret_lsn = lsn;
		if (ret_missing)
			*ret_missing = missing;
	}
	return rc;
}

int lac__commit_wait(struct lac_store *s, uint64_t lsn, struct lac_error *err)
{
	return lsn == 0 ? 0 : lac__journal_wait(s->journal, lsn, err);
}

int lac__commit(struct lac_store *s, struct lac__op *ops, size_t count, unsigned flags,
	struct lac_error *err)
{
	uint64_t lsn = 0;
	int rc = lac__commit_sequence(s, ops, count, flags, &lsn, NULL, err);

	return rc < 0 ? rc : lac__commit_wait(s, lsn, err);
}
