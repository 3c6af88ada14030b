/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/overlay.c - a hash while redo fills it, an array in the order of the pages afterwards, when
 * it is merged with what the files hold.
 */
#include "check/overlay.h"

#include <errno.h>
#include <stdlib.h>

static int ref_compare(const struct lac__page_ref *a, const struct lac__page_ref *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->container != b->container)
		return a->container < b->container ? -1 : 1;
	return a->no < b->no ? -1 : a->no > b->no;
}

static size_t ref_hash(const struct lac__page_ref *ref)
{
	uint64_t h = ref->no * UINT64_C(0x9e3779b97f4a7c15);

	h ^= ((uint64_t)ref->kind << 32 | ref->container) * UINT64_C(0xc2b2ae3d27d4eb4f);
	return (size_t)(h ^ h >> 29);
}

/* The slot where ref stands, or would stand. */
static size_t slot_of(struct lac__redone **slots, size_t capacity, const struct lac__page_ref *ref)
{
	size_t i = ref_hash(ref) & (capacity - 1);

	while (slots[i] && ref_compare(&slots[i]->page.ref, ref) != 0)
		i = (i + 1) & (capacity - 1);
	return i;
}

struct lac__redone *lac__overlay_find(const struct lac__overlay *o, const struct lac__page_ref *ref)
{
	return o->capacity ? o->slots[slot_of(o->slots, o->capacity, ref)] : NULL;
}

static int overlay_grow(struct lac__overlay *o)
{
	size_t capacity = o->capacity ? o->capacity * 2 : 64;
	struct lac__redone **slots = calloc(capacity, sizeof(struct lac__redone *));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < o->capacity; i++) {
		if (o->slots[i])
			slots[slot_of(slots, capacity, &o->slots[i]->page.ref)] = o->slots[i];
	}
	free(o->slots);
	o->slots = slots;
	o->capacity = capacity;
	return 0;
}

struct lac__redone *lac__overlay_add(struct lac__overlay *o, const struct lac__page_ref *ref)
{
	struct lac__redone *redone;

	if (o->count * 2 >= o->capacity && overlay_grow(o) < 0)
		return NULL;
	redone = calloc(1, sizeof(*redone));
	if (!redone)
		return NULL;
	redone->page.ref = *ref;
	o->slots[slot_of(o->slots, o->capacity, ref)] = redone;
	o->count++;
	return redone;
}

static int redone_compare(const void *a, const void *b)
{
	const struct lac__redone *const *x = a;
	const struct lac__redone *const *y = b;

	return ref_compare(&(*x)->page.ref, &(*y)->page.ref);
}

int lac__overlay_sort(struct lac__overlay *o)
{
	size_t n = 0;

	if (!o->count)
		return 0;
	o->sorted = calloc(o->count, sizeof(struct lac__redone *));
	if (!o->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < o->capacity; i++) {
		if (o->slots[i])
			o->sorted[n++] = o->slots[i];
	}
	qsort(o->sorted, n, sizeof(struct lac__redone *), redone_compare);
	return 0;
}

size_t lac__overlay_lower(const struct lac__overlay *o, const struct lac__page_ref *ref)
{
	size_t low = 0, high = o->sorted ? o->count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ref_compare(&o->sorted[middle]->page.ref, ref) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void lac__overlay_free(struct lac__overlay *o)
{
	for (size_t i = 0; i < o->capacity; i++)
		free(o->slots[i]);
	free(o->slots);
	free(o->sorted);
	*o = (struct lac__overlay){0};
}

int lac__u64_set_add(struct lac__u64_set *s, uint64_t value)
{
	if (s->count == s->room) {
		size_t room = s->room ? s->room * 2 : 64;
		uint64_t *at = reallocarray(s->at, room, sizeof(*at));

		if (!at)
			return -ENOMEM;
		s->at = at;
		s->room = room;
	}
	s->at[s->count++] = value;
	return 0;
}

static int u64_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void lac__u64_set_sort(struct lac__u64_set *s)
{
	if (s->count)
		qsort(s->at, s->count, sizeof(*s->at), u64_compare);
}

bool lac__u64_set_has(const struct lac__u64_set *s, uint64_t value)
{
	return s->count && bsearch(&value, s->at, s->count, sizeof(*s->at), u64_compare);
}
