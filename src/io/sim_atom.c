/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim_atom.c - one unsynced change: how it is made, how it reaches an image, and what a power
 * cut may make of it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "io/sim_internal.h"

uint64_t lac__sim_mix(uint64_t value)
{
	value ^= value >> 30;
	value *= UINT64_C(0xbf58476d1ce4e5b9);
	value ^= value >> 27;
	value *= UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

uint64_t lac__sim_random(struct sim_random *r)
{
	r->state += UINT64_C(0x9e3779b97f4a7c15);
	return lac__sim_mix(r->state);
}

struct sim_name *lac__sim_name_new(const char *text, size_t length)
{
	struct sim_name *name = malloc(sizeof(*name) + length + 1);

	if (!name)
		return NULL;
	atomic_init(&name->refs, 1);
	name->hash = 0;
	for (size_t i = 0; i < length; i++)
		name->hash = name->hash * 31 + (uint8_t)text[i];
	name->length = length;
	memcpy(name->text, text, length);
	name->text[length] = '\0';
	return name;
}

void lac__sim_name_drop(struct sim_name *name)
{
	if (name && atomic_fetch_sub_explicit(&name->refs, 1, memory_order_acq_rel) == 1)
		free(name);
}

static struct sim_atom *atom_alloc(enum sim_kind kind, uint32_t inode, size_t page_count)
{
	struct sim_atom *atom = calloc(1, sizeof(*atom) + page_count * sizeof(atom->pages[0]));

	if (!atom)
		return NULL;
	atomic_init(&atom->refs, 1);
	atom->kind = kind;
	atom->inode = inode;
	atom->page_count = page_count;
	return atom;
}

struct sim_atom *lac__sim_atom_new(
	enum sim_kind kind, uint32_t inode, uint64_t offset, uint64_t length)
{
	struct sim_atom *atom = atom_alloc(kind, inode, 0);

	if (atom) {
		atom->offset = offset;
		atom->length = length;
	}
	return atom;
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct sim_atom *lac__sim_atom_data(
	uint32_t inode, uint64_t offset, const void *bytes, uint64_t length)
{
	uint64_t first = offset / SIM_PAGE, end = offset + length, n;
	const uint8_t *from = bytes;
	struct sim_atom *atom = atom_alloc(
		SIM_DATA, inode, (size_t)(lac__round_up(end, SIM_PAGE) / SIM_PAGE - first));

	if (!atom)
		return NULL;
	atom->offset = offset;
	atom->length = length;
	for (uint64_t at = offset; at < end; at += n, from += n) {
		struct sim_page *page = lac__sim_page_new();

		if (!page) {
			lac__sim_atom_drop(atom);
			return NULL;
		}
		n = min(SIM_PAGE - at % SIM_PAGE, end - at);
		memcpy(page->bytes + at % SIM_PAGE, from, n);
		atom->pages[at / SIM_PAGE - first] = page;
	}
	return atom;
}

void lac__sim_atom_drop(struct sim_atom *atom)
{
	if (!atom || atomic_fetch_sub_explicit(&atom->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < atom->page_count; i++)
		lac__sim_page_drop(atom->pages[i]);
	lac__sim_name_drop(atom->from_name);
	lac__sim_name_drop(atom->to_name);
	free(atom);
}

/* ---- reaching an image ---- */

static struct sim_page *page_of(const struct sim_atom *atom, uint64_t offset)
{
	return atom->pages[offset / SIM_PAGE - atom->offset / SIM_PAGE];
}

/* Bytes beyond the size are lost with the size (S3). A page written whole is put in by reference,
   so that crash states of large writes copy nothing. */
static int apply_data(struct sim_image *img, const struct sim_atom *atom, uint64_t from,
	uint64_t to, uint64_t *copies)
{
	uint64_t n;
	int rc;

	to = min(to, img->size);
	if (from >= to)
		return 0;
	rc = lac__sim_image_own(img, from, to - from);
	if (rc == 0)
		rc = lac__sim_image_heal(img, from, to);
	if (rc < 0)
		return rc;
	for (uint64_t at = from; at < to; at += n) {
		struct sim_page *page = page_of(atom, at);

		n = min(SIM_PAGE - at % SIM_PAGE, to - at);
		if (n == SIM_PAGE)
			(void)lac__sim_image_put_page(img, at / SIM_PAGE, page);
		else
			memcpy(lac__sim_image_page(img, at / SIM_PAGE)->bytes + at % SIM_PAGE,
				page->bytes + at % SIM_PAGE, n);
	}
	lac__sim_image_written(img, from, to, copies);
	return 0;
}

static int apply_punch(struct sim_image *img, uint64_t from, uint64_t to, bool frees)
{
	int rc = 0;

	if (from < min(to, img->size))
		rc = lac__sim_image_zero(img, from, min(to, img->size) - from);
	if (rc == 0)
		rc = lac__sim_image_heal(img, from, to);
	if (rc == 0 && frees)
		rc = lac__sim_image_release(img, from, to);
	return rc;
}

static int apply_part(struct sim_image *img, const struct sim_atom *atom, uint64_t from,
	uint64_t to, uint64_t *copies)
{
	switch (atom->kind) {
	case SIM_DATA: return apply_data(img, atom, from, to, copies);
	case SIM_SIZE:
		if (img->size < atom->offset)
			img->size = atom->offset;
		return 0;
	case SIM_ALLOCATE: return lac__sim_image_reserve(img, from, to);
	case SIM_PUNCH: return apply_punch(img, from, to, true);
	case SIM_ZERO: return apply_punch(img, from, to, false);
	case SIM_TRUNCATE: return lac__sim_image_truncate(img, atom->offset);
	case SIM_RENAME: break;
	}
	return 0;
}

int lac__sim_atom_apply(struct sim_image *img, const struct sim_atom *atom, uint64_t *copies)
{
	return apply_part(img, atom, atom->offset, atom->offset + atom->length, copies);
}

/* ---- power cut ---- */

/* Which of count units survive. */
struct tear {
	unsigned shape;
	uint64_t first, second, bits;
};

static struct tear tear_choose(uint64_t count, struct sim_random *r)
{
	struct tear t = {.shape = (unsigned)(lac__sim_random(r) % 4)};

	t.first = lac__sim_random(r) % count;
	t.second = t.first + 1 + lac__sim_random(r) % (count - t.first);
	t.bits = lac__sim_random(r);
	return t;
}

static bool tear_keeps(const struct tear *t, uint64_t unit)
{
	switch (t->shape) {
	case 0: return unit < t->first;
	case 1: return unit >= t->second;
	case 2: return unit < t->first || unit >= t->second; /* a hole in the middle */
	default: return lac__sim_mix(t->bits ^ unit) & 1;
	}
}

int lac__sim_atom_tear(struct sim_image *img, const struct sim_atom *atom, struct sim_random *r)
{
	bool data = atom->kind == SIM_DATA;
	uint64_t unit = data ? SIM_SECTOR : img->block_bytes;
	uint64_t end = atom->offset + atom->length, first = atom->offset / unit;
	struct tear t;
	int rc = 0;

	assert(atom->length > 0); /* size changes are whole or not at all */
	t = tear_choose(lac__round_up(end, unit) / unit - first, r);
	for (uint64_t at = atom->offset, next; rc == 0 && at < end; at = next) {
		next = lac__round_down(at, unit) + unit;
		if (tear_keeps(&t, at / unit - first))
			rc = apply_part(img, atom, at, min(next, end), NULL);
	}
	return rc;
}

/* Some byte of the image inside [from, to) would change by the write. */
static bool changes(
	const struct sim_image *img, const struct sim_atom *atom, uint64_t from, uint64_t to)
{
	static const uint8_t zeros[SIM_PAGE];
	uint64_t n;

	for (uint64_t at = from; at < to; at += n) {
		const struct sim_page *page = lac__sim_image_page(img, at / SIM_PAGE);
		const uint8_t *old = (page ? page->bytes : zeros) + at % SIM_PAGE;

		n = min(SIM_PAGE - at % SIM_PAGE, to - at);
		if (memcmp(old, page_of(atom, at)->bytes + at % SIM_PAGE, n) != 0)
			return true;
	}
	return false;
}

static int trash_range(struct sim_image *img, uint64_t from, uint64_t to, struct sim_random *r)
{
	unsigned style = (unsigned)(lac__sim_random(r) % 8);
	uint8_t garbage[SIM_SECTOR];
	uint64_t n;
	int rc = 0;

	to = min(to, img->size);
	for (uint64_t at = from; rc == 0 && at < to; at += n) {
		for (size_t i = 0; i < sizeof(garbage); i += 8) {
			uint64_t word = lac__sim_random(r);

			memcpy(garbage + i, &word, 8);
		}
		if (style < 2)
			memset(garbage, style == 0 ? 0 : 0xff, sizeof(garbage));
		n = min(sizeof(garbage), to - at);
		rc = lac__sim_image_write(img, at, garbage, n);
		if (rc == 0)
			lac__sim_image_written(img, at, at + n, NULL);
	}
	return rc;
}

/*
 * Garbage falls on whole sectors of the device, beyond the write's own bytes, but only where the
 * write changes a byte: that a sector whose bytes do not change survives is what we assume. One
 * changed sector at least is hit; the others are hit, written or left as they were.
 */
int lac__sim_atom_trash(struct sim_image *img, const struct sim_atom *atom, uint32_t sector_bytes,
	struct sim_random *r)
{
	uint64_t end = min(atom->offset + atom->length, img->size), next, changed = 0, victim;
	int rc = 0;

	if (atom->kind != SIM_DATA)
		return lac__sim_atom_tear(img, atom, r);
	for (uint64_t at = atom->offset; at < end; at = next) {
		next = min(lac__round_down(at, sector_bytes) + sector_bytes, end);
		changed += changes(img, atom, at, next);
	}
	if (changed == 0)
		return 0;
	victim = lac__sim_random(r) % changed;
	for (uint64_t at = atom->offset; rc == 0 && at < end; at = next) {
		uint64_t fate = lac__sim_random(r) % 4;

		next = min(lac__round_down(at, sector_bytes) + sector_bytes, end);
		if (!changes(img, atom, at, next))
			continue;
		if (victim-- == 0 || fate == 0)
			rc = trash_range(img, lac__round_down(at, sector_bytes),
				lac__round_down(at, sector_bytes) + sector_bytes, r);
		else if (fate < 3)
			rc = apply_data(img, atom, at, next, NULL);
	}
	return rc;
}
