/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim_image.c - the bytes and blocks of one simulated file.
 *
 * An image is a root of chunks of pages, each level counted by reference and copied when it is
 * written while shared (S5). Copying an image is therefore one increment, which is what makes
 * thousands of crash states of one moment cheap.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "io/sim_internal.h"

static void hold(atomic_uint *refs)
{
	atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

static bool last_released(atomic_uint *refs)
{
	return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

/* Only our own reference is left, and only we could make new ones of it. */
static bool unshared(atomic_uint *refs)
{
	return atomic_load_explicit(refs, memory_order_acquire) == 1;
}

struct sim_page *lac__sim_page_new(void)
{
	struct sim_page *page = malloc(sizeof(*page));

	if (page) {
		atomic_init(&page->refs, 1);
		atomic_init(&page->hash, 0);
	}
	return page;
}

void lac__sim_page_drop(struct sim_page *page)
{
	if (page && last_released(&page->refs))
		free(page);
}

static void chunk_drop(struct sim_chunk *chunk)
{
	if (!chunk || !last_released(&chunk->refs))
		return;
	for (size_t i = 0; i < SIM_CHUNK_PAGES; i++)
		lac__sim_page_drop(chunk->pages[i]);
	free(chunk);
}

static void root_drop(struct sim_root *root)
{
	if (!root || !last_released(&root->refs))
		return;
	for (size_t i = 0; i < root->count; i++)
		chunk_drop(root->chunks[i]);
	free(root);
}

static void ranges_drop(struct sim_ranges *ranges)
{
	if (ranges && last_released(&ranges->refs))
		free(ranges);
}

void lac__sim_image_init(struct sim_image *img, uint32_t block_bytes)
{
	*img = (struct sim_image){.block_bytes = block_bytes};
}

void lac__sim_image_share(struct sim_image *to, const struct sim_image *from)
{
	*to = *from;
	if (to->root)
		hold(&to->root->refs);
	if (to->unreadable)
		hold(&to->unreadable->refs);
}

void lac__sim_image_drop(struct sim_image *img)
{
	root_drop(img->root);
	ranges_drop(img->unreadable);
	lac__sim_image_init(img, img->block_bytes);
}

/* ---- making parts our own ---- */

static int own_root(struct sim_image *img, size_t chunks)
{
	struct sim_root *old = img->root, *root;
	size_t count = old ? old->count : 0;

	if (old && chunks <= count && unshared(&old->refs))
		return 0;
	if (count < chunks)
		count = chunks;
	root = calloc(1, sizeof(*root) + count * sizeof(root->chunks[0]));
	if (!root)
		return -ENOMEM;
	atomic_init(&root->refs, 1);
	root->count = count;
	for (size_t i = 0; old && i < old->count; i++) {
		root->chunks[i] = old->chunks[i];
		if (root->chunks[i])
			hold(&root->chunks[i]->refs);
	}
	root_drop(old);
	img->root = root;
	return 0;
}

static struct sim_chunk *own_chunk(struct sim_image *img, size_t index)
{
	struct sim_chunk *old, *chunk;

	if (own_root(img, index + 1) < 0)
		return NULL;
	old = img->root->chunks[index];
	if (old && unshared(&old->refs))
		return old;
	chunk = calloc(1, sizeof(*chunk));
	if (!chunk)
		return NULL;
	atomic_init(&chunk->refs, 1);
	if (old) {
		memcpy(chunk->pages, old->pages, sizeof(chunk->pages));
		memcpy(chunk->blocks, old->blocks, sizeof(chunk->blocks));
		for (size_t i = 0; i < SIM_CHUNK_PAGES; i++)
			if (chunk->pages[i])
				hold(&chunk->pages[i]->refs);
		chunk_drop(old);
	}
	img->root->chunks[index] = chunk;
	return chunk;
}

static struct sim_page *own_page(struct sim_chunk *chunk, size_t slot)
{
	struct sim_page *old = chunk->pages[slot], *page;

	if (old && unshared(&old->refs)) {
		atomic_store_explicit(&old->hash, 0, memory_order_relaxed);
		return old;
	}
	page = lac__sim_page_new();
	if (!page)
		return NULL;
	if (old)
		memcpy(page->bytes, old->bytes, SIM_PAGE);
	else
		memset(page->bytes, 0, SIM_PAGE);
	lac__sim_page_drop(old);
	chunk->pages[slot] = page;
	return page;
}

static struct sim_chunk *chunk_of(const struct sim_image *img, uint64_t offset)
{
	uint64_t index = offset / SIM_CHUNK_BYTES;

	return img->root && index < img->root->count ? img->root->chunks[index] : NULL;
}

struct sim_page *lac__sim_image_page(const struct sim_image *img, uint64_t index)
{
	struct sim_chunk *chunk = chunk_of(img, index * SIM_PAGE);

	return chunk ? chunk->pages[index % SIM_CHUNK_PAGES] : NULL;
}

int lac__sim_image_put_page(struct sim_image *img, uint64_t index, struct sim_page *page)
{
	struct sim_chunk *chunk;

	if (lac__sim_image_page(img, index) == page)
		return 0;
	chunk = own_chunk(img, index / SIM_CHUNK_PAGES);
	if (!chunk)
		return -ENOMEM;
	if (page)
		hold(&page->refs);
	lac__sim_page_drop(chunk->pages[index % SIM_CHUNK_PAGES]);
	chunk->pages[index % SIM_CHUNK_PAGES] = page;
	return 0;
}

/* The part of one page that lies in [offset, end). */
static uint64_t part(uint64_t offset, uint64_t end)
{
	uint64_t rest = SIM_PAGE - offset % SIM_PAGE;

	return rest < end - offset ? rest : end - offset;
}

static int own(struct sim_image *img, uint64_t offset, uint64_t length, bool whole_pages)
{
	uint64_t end = offset + length, n;
	struct sim_chunk *chunk;

	for (; offset < end; offset += n) {
		n = part(offset, end);
		chunk = own_chunk(img, offset / SIM_CHUNK_BYTES);
		if (!chunk)
			return -ENOMEM;
		if (n == SIM_PAGE && !whole_pages)
			continue;
		if (!own_page(chunk, offset / SIM_PAGE % SIM_CHUNK_PAGES))
			return -ENOMEM;
	}
	return 0;
}

int lac__sim_image_own(struct sim_image *img, uint64_t offset, uint64_t length)
{
	return own(img, offset, length, false);
}

/* ---- bytes ---- */

void lac__sim_image_read(
	const struct sim_image *img, uint64_t offset, void *buffer, uint64_t length)
{
	uint64_t end = offset + length, n;
	struct sim_page *page;
	uint8_t *to = buffer;

	for (; offset < end; offset += n, to += n) {
		n = part(offset, end);
		page = lac__sim_image_page(img, offset / SIM_PAGE);
		if (page)
			memcpy(to, page->bytes + offset % SIM_PAGE, n);
		else
			memset(to, 0, n);
	}
}

int lac__sim_image_write(struct sim_image *img, uint64_t offset, const void *bytes, uint64_t length)
{
	uint64_t end = offset + length, n;
	const uint8_t *from = bytes;
	int rc = own(img, offset, length, true);

	if (rc < 0)
		return rc;
	for (; offset < end; offset += n, from += n) {
		n = part(offset, end);
		memcpy(lac__sim_image_page(img, offset / SIM_PAGE)->bytes + offset % SIM_PAGE, from,
			n);
	}
	return 0;
}

int lac__sim_image_zero(struct sim_image *img, uint64_t offset, uint64_t length)
{
	uint64_t end = offset + length, n;

	/* First what may fail, so that a failure leaves all bytes as they were. */
	for (uint64_t at = offset; at < end; at += n) {
		n = part(at, end);
		if (lac__sim_image_page(img, at / SIM_PAGE) && own(img, at, n, n < SIM_PAGE) < 0)
			return -ENOMEM;
	}
	for (uint64_t at = offset; at < end; at += n) {
		struct sim_page *page = lac__sim_image_page(img, at / SIM_PAGE);

		n = part(at, end);
		if (page && n < SIM_PAGE)
			memset(page->bytes + at % SIM_PAGE, 0, n);
		else if (page)
			(void)lac__sim_image_put_page(img, at / SIM_PAGE, NULL);
	}
	return 0;
}

/* ---- blocks ---- */

static uint64_t covered_end(const struct sim_image *img)
{
	return img->root ? img->root->count * SIM_CHUNK_BYTES : 0;
}

static uint8_t *block_at(const struct sim_image *img, uint64_t offset)
{
	struct sim_chunk *chunk = chunk_of(img, offset);

	return chunk ? &chunk->blocks[offset % SIM_CHUNK_BYTES / img->block_bytes] : NULL;
}

int lac__sim_image_reserve(struct sim_image *img, uint64_t from, uint64_t to)
{
	uint64_t start = lac__round_down(from, img->block_bytes);

	for (uint64_t at = lac__round_down(from, SIM_CHUNK_BYTES); at < to; at += SIM_CHUNK_BYTES)
		if (!own_chunk(img, at / SIM_CHUNK_BYTES))
			return -ENOMEM;
	for (uint64_t at = start; at < to; at += img->block_bytes) {
		uint8_t *block = block_at(img, at);

		if (*block == SIM_HOLE) {
			*block = SIM_RESERVED;
			img->allocated_blocks++;
		}
	}
	return 0;
}

int lac__sim_image_release(struct sim_image *img, uint64_t from, uint64_t to)
{
	uint64_t start = lac__round_up(from, img->block_bytes);
	uint64_t end = lac__round_down(to, img->block_bytes);

	if (end > covered_end(img))
		end = covered_end(img);
	for (uint64_t at = start; at < end;
		at = lac__round_down(at, SIM_CHUNK_BYTES) + SIM_CHUNK_BYTES)
		if (chunk_of(img, at) && !own_chunk(img, at / SIM_CHUNK_BYTES))
			return -ENOMEM;
	for (uint64_t at = start; at < end; at += img->block_bytes) {
		uint8_t *block = block_at(img, at);

		if (block && *block != SIM_HOLE) {
			*block = SIM_HOLE;
			img->allocated_blocks--;
		}
	}
	return 0;
}

void lac__sim_image_written(struct sim_image *img, uint64_t from, uint64_t to, uint64_t *copies)
{
	for (uint64_t at = lac__round_down(from, img->block_bytes); at < to;
		at += img->block_bytes) {
		uint8_t *block = block_at(img, at);

		if (*block == SIM_HOLE)
			img->allocated_blocks++;
		if (copies && *block == SIM_WRITTEN)
			(*copies)++;
		*block = copies ? SIM_FRESH : SIM_WRITTEN;
	}
}

uint64_t lac__sim_image_fit(const struct sim_image *img, uint64_t from, uint64_t to,
	uint64_t blocks, bool copy_on_write)
{
	uint64_t at = lac__round_down(from, img->block_bytes);

	for (; at < to; at += img->block_bytes) {
		const uint8_t *block = block_at(img, at);

		if (block && *block != SIM_HOLE && !(copy_on_write && *block == SIM_WRITTEN))
			continue;
		if (blocks == 0)
			return at > from ? at : from;
		blocks--;
	}
	return to;
}

int lac__sim_image_settle(struct sim_image *img, uint64_t from, uint64_t to)
{
	if (to > covered_end(img))
		to = covered_end(img);
	for (uint64_t at = lac__round_down(from, img->block_bytes); at < to;
		at += img->block_bytes) {
		uint8_t *block = block_at(img, at);

		if (!block || *block != SIM_FRESH)
			continue;
		if (!own_chunk(img, at / SIM_CHUNK_BYTES))
			return -ENOMEM;
		*block_at(img, at) = SIM_WRITTEN;
	}
	return 0;
}

int lac__sim_image_truncate(struct sim_image *img, uint64_t size)
{
	uint64_t end = covered_end(img);
	int rc = 0;

	if (size < img->size)
		rc = lac__sim_image_zero(img, size, img->size - size);
	if (rc == 0 && size < end)
		rc = lac__sim_image_release(img, size, end);
	if (rc == 0)
		rc = lac__sim_image_heal(img, size, UINT64_MAX);
	if (rc == 0)
		img->size = size;
	return rc;
}

/* ---- unreadable ranges ---- */

bool lac__sim_image_unreadable(const struct sim_image *img, uint64_t from, uint64_t to)
{
	for (size_t i = 0; img->unreadable && i < img->unreadable->count; i++) {
		const struct sim_range *r = &img->unreadable->ranges[i];

		if (from < r->end && r->start < to)
			return true;
	}
	return false;
}

/* A copy of the list with room for one more; an empty one where there is none. */
static struct sim_ranges *ranges_copy(const struct sim_ranges *old)
{
	size_t count = old ? old->count : 0;
	struct sim_ranges *ranges =
		malloc(sizeof(*ranges) + (count + 1) * sizeof(ranges->ranges[0]));

	if (!ranges)
		return NULL;
	atomic_init(&ranges->refs, 1);
	ranges->count = count;
	if (old)
		memcpy(ranges->ranges, old->ranges, count * sizeof(ranges->ranges[0]));
	return ranges;
}

int lac__sim_image_spoil(struct sim_image *img, uint64_t from, uint64_t to)
{
	struct sim_ranges *ranges;

	if (from >= to)
		return 0;
	ranges = ranges_copy(img->unreadable);
	if (!ranges)
		return -ENOMEM;
	ranges->ranges[ranges->count++] = (struct sim_range){from, to};
	ranges_drop(img->unreadable);
	img->unreadable = ranges;
	return 0;
}

int lac__sim_image_heal(struct sim_image *img, uint64_t from, uint64_t to)
{
	while (lac__sim_image_unreadable(img, from, to)) {
		struct sim_ranges *ranges = ranges_copy(img->unreadable);
		size_t i = 0;
		struct sim_range *r;
		uint64_t end;

		if (!ranges)
			return -ENOMEM;
		while (!(from < ranges->ranges[i].end && ranges->ranges[i].start < to))
			i++;
		r = &ranges->ranges[i];
		end = r->end;
		if (r->start < from)
			r->end = from; /* keeps its head, perhaps also a tail */
		else
			*r = ranges->ranges[--ranges->count];
		if (to < end)
			ranges->ranges[ranges->count++] = (struct sim_range){to, end};
		ranges_drop(img->unreadable);
		img->unreadable = ranges;
	}
	return 0;
}

/* ---- hash ---- */

/* Of a page of zeros, which must count as no page at all. */
#define HASH_ZERO UINT64_C(1)

static uint64_t page_hash(struct sim_page *page)
{
	uint64_t hash = atomic_load_explicit(&page->hash, memory_order_relaxed);
	uint64_t all = 0;

	if (hash)
		return hash;
	for (size_t i = 0; i < SIM_PAGE; i += 8) {
		uint64_t word;

		memcpy(&word, page->bytes + i, 8);
		all |= word;
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	hash = all == 0 ? HASH_ZERO : lac__sim_mix(hash) | 2;
	atomic_store_explicit(&page->hash, hash, memory_order_relaxed);
	return hash;
}

uint64_t lac__sim_image_hash(const struct sim_image *img)
{
	uint64_t sum = lac__sim_mix(img->size);

	for (size_t c = 0; img->root && c < img->root->count; c++) {
		struct sim_chunk *chunk = img->root->chunks[c];

		for (size_t i = 0; chunk && i < SIM_CHUNK_PAGES; i++) {
			uint64_t hash = chunk->pages[i] ? page_hash(chunk->pages[i]) : HASH_ZERO;

			if (hash != HASH_ZERO)
				sum += lac__sim_mix(hash ^ lac__sim_mix(c * SIM_CHUNK_PAGES + i));
		}
	}
	return sum;
}
