/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read.c - finding a block, reading and verifying its bytes, walking over all.
 *
 * A reader registers before it looks a block up. Reclaim takes a range only when its DELETE is
 * durable and everybody who was registered then has left; who comes later finds the block gone.
 * So a reader gets the bytes or "not found", never the zeros of a hole.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/crc32c.h"
#include "store/internal.h"

void lac__reader_enter(struct lac_store *s, struct lac__reader *r)
{
	pthread_mutex_lock(&s->readers_lock);
	r->epoch = s->epoch;
	r->next = NULL;
	r->prev = s->newest_reader;
	*(r->prev ? &r->prev->next : &s->oldest_reader) = r;
	s->newest_reader = r;
	pthread_mutex_unlock(&s->readers_lock);
}

void lac__reader_leave(struct lac_store *s, struct lac__reader *r)
{
	pthread_mutex_lock(&s->readers_lock);
	*(r->prev ? &r->prev->next : &s->oldest_reader) = r->next;
	*(r->next ? &r->next->prev : &s->newest_reader) = r->prev;
	pthread_cond_broadcast(&s->readers_gone);
	pthread_mutex_unlock(&s->readers_lock);
}

void lac__readers_wait(struct lac_store *s)
{
	uint64_t epoch;

	pthread_mutex_lock(&s->readers_lock);
	epoch = ++s->epoch;
	/* The list is in order of epoch. */
	while (s->oldest_reader && s->oldest_reader->epoch < epoch)
		pthread_cond_wait(&s->readers_gone, &s->readers_lock);
	pthread_mutex_unlock(&s->readers_lock);
}

static int no_block(struct lac_error *err, uint64_t id)
{
	return lac__error_set(err, -ENOENT, LAC_REASON_NO_BLOCK, 0, 0, "no block %" PRIu64, id);
}

/* The entry of a live block, else -ENOENT; "not found" is said only when that is durable (S2). */
static int find_live(
	struct lac_store *s, uint64_t id, struct lac__entry *entry, struct lac_error *err)
{
	uint64_t lsn = 0;
	int rc = lac__entry_lookup(s, id, entry, &lsn, err);

	if (rc == -ENOENT || (rc == 0 && entry->state != LAC__ENTRY_LIVE)) {
		/* A poisoned journal can't say; the answer then is what was sequenced. */
		if (lsn > lac__journal_durable_lsn(s->journal))
			lac__journal_wait(s->journal, lsn, NULL);
		return no_block(err, id);
	}
	if (rc < 0)
		lac__error_prepend(err, "look up block %" PRIu64, id);
	return rc;
}

static void info_of(uint64_t id, const struct lac__entry *e, struct lac_block_info *ret)
{
	*ret = (struct lac_block_info){.id = id,
		.length = e->length,
		.owner = e->owner,
		.container = e->container,
		.offset = e->offset,
		.checksum = e->checksum,
		.packed = e->distance == 0};
}

LAC_PUBLIC int lac_block_stat(
	struct lac_store *s, uint64_t id, struct lac_block_info *ret_info, struct lac_error *err)
{
	struct lac__entry entry;
	int rc = lac__store_own_process(s, err);

	if (rc == 0)
		rc = find_live(s, id, &entry, err);
	if (rc == 0)
		info_of(id, &entry, ret_info);
	return rc;
}

/* ---- payload ---- */

struct source {
	struct lac_store *store;
	struct lac__held *held;
	const struct lac__entry *entry;
	uint64_t id;
	uint32_t seed;
	struct lac_error *err;
};

static int damaged(
	const struct source *src, uint64_t at, uint64_t length, uint32_t got, uint32_t want)
{
	char path[LAC__NAME_BYTES];

	lac__name_container(src->entry->container, path);
	return lac__error_set(src->err, -EBADMSG, LAC_REASON_BLOCK_DAMAGED, src->entry->offset + at,
		length,
		"read block %" PRIu64 ": %s: bytes %" PRIu64 "+%" PRIu64 ": crc32c %08x, want %08x",
		src->id, path, src->entry->offset + at, length, got, want);
}

static int read_at(const struct source *src, void *buffer, size_t length, uint64_t at)
{
	char path[LAC__NAME_BYTES];
	int rc = lac__read_full(lac__held_file(src->held), buffer, length, src->entry->offset + at);

	if (rc == 0)
		return 0;
	lac__name_container(src->entry->container, path);
	if (rc == -ENODATA)
		return lac__error_set(src->err, -EBADMSG, LAC_REASON_BLOCK_DAMAGED,
			src->entry->offset + at, length,
			"read block %" PRIu64 ": %s ends before byte %" PRIu64, src->id, path,
			src->entry->offset + at + length);
	return lac__error_sys(src->err, rc, "read block %" PRIu64 ": %s at %" PRIu64, src->id, path,
		src->entry->offset + at);
}

static int read_whole(const struct source *src, void *buffer)
{
	uint64_t length = src->entry->length;
	uint32_t crc;
	int rc = length > 0 ? read_at(src, buffer, length, 0) : 0;

	if (rc < 0)
		return rc;
	crc = lac__block_checksum(src->seed, length, buffer, length);
	return crc == src->entry->checksum ? 0 : damaged(src, 0, length, crc, src->entry->checksum);
}

/* [from, from + length) of a block without chunk table: all of it has to be read. */
static int read_unchunked(const struct source *src, void *buffer, size_t length, uint64_t from)
{
	uint8_t *whole;
	int rc;

	if (from == 0 && length == src->entry->length)
		return read_whole(src, buffer);
	whole = malloc(src->entry->length);
	if (!whole)
		return lac__error_nomem(src->err);
	rc = read_whole(src, whole);
	if (rc == 0)
		memcpy(buffer, whole + from, length);
	free(whole);
	return rc;
}

static int read_table(const struct source *src, uint8_t **ret_table)
{
	uint64_t bytes = lac__chunk_table_bytes(src->entry->length);
	uint8_t *table = malloc(bytes);
	uint32_t crc;
	int rc;

	if (!table)
		return lac__error_nomem(src->err);
	rc = read_at(src, table, bytes, lac__chunk_table_offset(src->entry->length));
	if (rc == 0) {
		crc = lac__block_checksum(src->seed, src->entry->length, table, bytes);
		if (crc != src->entry->checksum)
			rc = damaged(src, lac__chunk_table_offset(src->entry->length), bytes, crc,
				src->entry->checksum);
	}
	if (rc == 0)
		*ret_table = table;
	else
		free(table);
	return rc;
}

static int read_chunks(const struct source *src, uint8_t *buffer, size_t length, uint64_t from)
{
	uint8_t *table = NULL, *chunk_buffer = NULL;
	uint64_t at = from, end = from + length;
	int rc = read_table(src, &table);

	if (rc < 0)
		return rc;
	while (rc == 0 && at < end) {
		uint64_t chunk = at / LAC__CHUNK_BYTES, start = chunk * LAC__CHUNK_BYTES;
		size_t bytes = LAC__CHUNK_BYTES, take;
		uint8_t *into = buffer + (at - from);
		uint32_t crc, want = lac__chunk_table_get(table, chunk);

		if (bytes > src->entry->length - start)
			bytes = src->entry->length - start;
		take = start + bytes < end ? start + bytes - at : end - at;
		if (take < bytes) { /* an end of the range: the chunk has to be read beside */
			if (!chunk_buffer)
				chunk_buffer = malloc(LAC__CHUNK_BYTES);
			if (!chunk_buffer) {
				rc = lac__error_nomem(src->err);
				break;
			}
			into = chunk_buffer;
		}
		rc = read_at(src, into, bytes, start);
		if (rc < 0)
			break;
		crc = lac__chunk_checksum(src->seed, chunk, into, bytes);
		if (crc != want)
			rc = damaged(src, start, bytes, crc, want);
		else if (into == chunk_buffer)
			memcpy(buffer + (at - from), chunk_buffer + (at - start), take);
		at += take;
	}
	free(chunk_buffer);
	free(table);
	return rc;
}

static int64_t read_entry(struct lac_store *s, uint64_t id, const struct lac__entry *entry,
	void *buffer, size_t length, uint64_t offset, struct lac_error *err)
{
	struct source src = {.store = s,
		.entry = entry,
		.id = id,
		.err = err,
		.seed = lac__block_seed(&s->uuid, id)};
	int rc;

	if (offset >= entry->length)
		return 0;
	if (length > entry->length - offset)
		length = (size_t)(entry->length - offset);
	if (length == 0)
		return 0;
	rc = lac__container_hold(s, entry->container, &src.held, err);
	if (rc < 0)
		return rc;
	if (lac__chunk_count(entry->length) == 0)
		rc = read_unchunked(&src, buffer, length, offset);
	else
		rc = read_chunks(&src, buffer, length, offset);
	lac__files_release(src.held);
	return rc < 0 ? rc : (int64_t)length;
}

LAC_PUBLIC int64_t lac_block_read(struct lac_store *s, uint64_t id, void *buffer, size_t length,
	uint64_t offset, struct lac_error *err)
{
	struct lac__reader reader;
	struct lac__entry entry;
	int64_t n;
	int rc = lac__store_own_process(s, err);

	if (rc < 0)
		return rc;
	if (length > INT64_MAX)
		length = INT64_MAX;
	lac__reader_enter(s, &reader);
	rc = find_live(s, id, &entry, err);
	n = rc < 0 ? rc : read_entry(s, id, &entry, buffer, length, offset, err);
	lac__reader_leave(s, &reader);
	return n;
}

/* ---- iteration ---- */

struct lac_iter {
	struct lac_store *store;
	bool by_owner;
	uint64_t owner, next_id;
	bool have_page;
	struct lac__page page; /* a copy, so that no lock is held between calls */
};

LAC_PUBLIC int lac_iter_open(struct lac_store *s, const struct lac_iter_options *options,
	struct lac_iter **ret_iter, struct lac_error *err)
{
	struct lac_iter_options o = {0};
	struct lac_iter *it;
	int rc = lac__store_own_process(s, err);

	if (rc < 0)
		return rc;
	if (options)
		memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
	it = calloc(1, sizeof *it);
	if (!it)
		return lac__error_nomem(err);
	it->store = s;
	it->next_id = o.after_id == UINT64_MAX ? UINT64_MAX : o.after_id + 1;
	it->by_owner = o.by_owner;
	it->owner = o.owner;
	*ret_iter = it;
	return 0;
}

static int iter_load(struct lac_iter *it, struct lac_error *err)
{
	struct lac_store *s = it->store;
	struct lac__page_ref ref = {
		.kind = LAC__PAGE_INDEX, .no = it->next_id / LAC__INDEX_ENTRIES};
	struct lac__cached *cached;
	struct lac__entry entry;
	int rc = lac__pages_get(s->pages, &ref, &cached, err);

	if (rc < 0)
		return rc;
	lac__pages_lock(s->pages);
	it->page = cached->page;
	lac__pages_unlock(s->pages);
	lac__pages_put(s->pages, cached);
	if (it->page.lsn == 0) {
		rc = lac__page_zero_check(s, ref.no, &entry, err);
		if (rc < 0)
			return rc;
	}
	/* What is shown is durable (S2); a poisoned store shows what was sequenced. */
	if (it->page.lsn > lac__journal_durable_lsn(s->journal))
		lac__journal_wait(s->journal, it->page.lsn, NULL);
	it->have_page = true;
	return 0;
}

LAC_PUBLIC int lac_iter_next(
	struct lac_iter *it, struct lac_block_info *ret_info, struct lac_error *err)
{
	int own = lac__store_own_process(it->store, err);

	if (own < 0)
		return own;
	while (it->next_id < it->store->id_high_water) {
		unsigned slot = (unsigned)(it->next_id % LAC__INDEX_ENTRIES);
		struct lac__entry entry;
		uint64_t id = it->next_id;
		int rc;

		if (!it->have_page || it->page.ref.no != id / LAC__INDEX_ENTRIES) {
			rc = iter_load(it, err);
			if (rc < 0)
				return rc;
		}
		rc = lac__entry_get(&it->page, slot, &entry, err);
		if (rc < 0) {
			lac__error_prepend(err, "index entry of block %" PRIu64, id);
			return rc;
		}
		it->next_id++;
		if (entry.state != LAC__ENTRY_LIVE || (it->by_owner && entry.owner != it->owner))
			continue;
		info_of(id, &entry, ret_info);
		return 0;
	}
	return 1;
}

LAC_PUBLIC void lac_iter_close(struct lac_iter *it)
{
	free(it);
}
