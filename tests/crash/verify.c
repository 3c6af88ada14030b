/* SPDX-License-Identifier: Apache-2.0 */
/* tests/crash/verify.c - is this store what the model says, and sound? */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "common/blocks.h"
#include "crash/harness.h"
#include "lacuna/check.h"
#include "store/internal.h"

bool told(const struct world *w, int rc)
{
	return w->run->tolerant && (rc == -EBADMSG || rc == -EUCLEAN);
}

static void failed_at(struct world *w, const char *when, const char *what, uint64_t id,
	const struct lac_error *err)
{
	char text[200];

	snprintf(text, sizeof text, "%s: block %llu: %s", when, (unsigned long long)id, what);
	failed(w, text, err);
}

/* ---- check ---- */

struct findings {
	struct world *w;
	const char *when;
};

static int on_finding(void *arg, const struct lac_finding *finding)
{
	struct findings *f = arg;
	struct lac_error err = {0};

	if (finding->severity == LAC_SEVERITY_NOTE || f->w->run->tolerant)
		return 0;
	snprintf(err.message, sizeof err.message, "finding %d: %s at %llu: %s", finding->id,
		finding->path, (unsigned long long)finding->offset, finding->text);
	failed(f->w, f->when, &err);
	return 0;
}

uint64_t verify_check(struct world *w, const char *when)
{
	struct findings f = {.w = w, .when = when};
	struct lac_check_options options = {.size = sizeof options,
		.data = true,
		.backend = w->be,
		.finding = on_finding,
		.arg = &f};
	struct lac_check_result result = {0};
	struct lac_error err = {0};
	int rc = lac_check("sim", &options, &result, &err);

	if (rc < 0) {
		if (!w->creating && !told(w, rc))
			failed(w, when, &err);
		return 1;
	}
	return result.damages + result.fatals;
}

/* ---- blocks ---- */

static void verify_bytes(struct world *w, const char *when, const struct block *b)
{
	uint8_t *bytes = malloc(b->length + 1);
	struct lac_error err = {0};
	uint64_t from = 0;
	int64_t n;

	if (!bytes)
		abort();
	n = lac_block_read(w->store, b->id, bytes, b->length + 1, 0, &err);
	if (n == (int64_t)b->length) {
		if (!test_matches(bytes, b->length, b->content, 0))
			failed_at(w, when, "wrong bytes", b->id, NULL);
	} else if (!told(w, (int)n)) {
		failed_at(w, when, "read", b->id, &err);
	}
	if (b->length > LAC__CHUNK_BYTES) { /* a piece of it is verified by chunks */
		from = b->content % b->length;
		n = lac_block_read(w->store, b->id, bytes, 1000, from, &err);
		if (n < 0 ? !told(w, (int)n) : !test_matches(bytes, (size_t)n, b->content, from))
			failed_at(w, when, "piece", b->id, &err);
	}
	free(bytes);
}

static void verify_block(struct world *w, const char *when, const struct block *b, bool absent_told)
{
	enum expectation expected = model_expects(&w->model, b);
	struct lac_block_info info;
	struct lac_error err = {0};
	int rc = lac_block_stat(w->store, b->id, &info, &err);

	if (rc < 0 && rc != -ENOENT) {
		if (!told(w, rc))
			failed_at(w, when, "stat", b->id, &err);
		return;
	}
	if (rc == -ENOENT && expected == PRESENT && !absent_told)
		failed_at(w, when, "acknowledged, but it is not there", b->id, NULL);
	if (rc == 0 && expected == ABSENT && !absent_told)
		failed_at(w, when, "is there", b->id, NULL);
	if (expected == EITHER && !model_learn(&w->model, b, rc == 0) && !w->run->tolerant)
		failed_at(w, when, "its transaction is there in part", b->id, NULL);
	if (rc < 0)
		return;
	if (info.length != b->length || info.owner != b->length % 3)
		failed_at(w, when, "wrong length or owner", b->id, NULL);
	else
		verify_bytes(w, when, b);
}

static bool known_live(const struct world *w, uint64_t id, size_t *hint)
{
	for (size_t n = 0; n < w->model.count; n++) {
		size_t i = (*hint + n) % w->model.count;

		if (w->model.blocks[i].id == id) {
			*hint = i + 1;
			return model_expects(&w->model, &w->model.blocks[i]) == PRESENT;
		}
	}
	return false;
}

/* All that iteration shows is expected; how many there are. */
static void verify_iteration(struct world *w, const char *when)
{
	uint64_t shown = 0, live = 0, bytes = 0;
	struct lac_store_stats stats = {.size = sizeof stats};
	struct lac_block_info info;
	struct lac_error err = {0};
	struct lac_iter *it;
	size_t hint = 0;
	int rc = lac_iter_open(w->store, NULL, &it, &err);

	while (rc == 0 && (rc = lac_iter_next(it, &info, &err)) == 0) {
		shown++;
		if (!known_live(w, info.id, &hint))
			failed_at(w, when, "iteration shows it", info.id, NULL);
	}
	if (rc < 0)
		failed(w, when, &err);
	lac_iter_close(it);
	for (size_t i = 0; i < w->model.count; i++)
		if (model_expects(&w->model, &w->model.blocks[i]) == PRESENT) {
			live++;
			bytes += w->model.blocks[i].length;
		}
	if (lac_store_stat(w->store, &stats, &err) < 0)
		failed(w, when, &err);
	else if (shown != live || stats.blocks != live || stats.live_bytes != bytes)
		failed_at(w, when, "iteration or stat counts otherwise", live, NULL);
}

void verify_blocks(struct world *w, const char *when, bool absent_told)
{
	for (size_t i = 0; i < w->model.count; i++)
		verify_block(w, when, &w->model.blocks[i], absent_told);
	/* A transaction of which nothing can be told any more: all its puts are deleted. */
	if (!w->run->tolerant)
		verify_iteration(w, when);
}

/* ---- space ---- */

static uint64_t count_granules(
	struct world *w, uint32_t id, const struct lac__table_entry *entry, uint64_t *ret_waiting)
{
	struct lac_store *s = w->store;
	uint64_t end = (entry->tail_bytes + s->granule_bytes - 1) / s->granule_bytes, held = 0;
	struct lac_error err = {0};

	for (uint64_t at = 0; at < end; at++) {
		struct lac__page_ref ref = {
			.kind = LAC__PAGE_MAP, .container = id, .no = at / LAC__MAP_GRANULES};
		struct lac__cached *cached;
		uint8_t state;

		if (lac__pages_get(s->pages, &ref, &cached, &err) < 0) {
			failed(w, "map page", &err);
			return held;
		}
		state = cached->page.body[at % LAC__MAP_GRANULES];
		lac__pages_put(s->pages, cached);
		*ret_waiting += state == LAC__GRANULE_DEAD || state == LAC__GRANULE_RESERVED;
		held += state != LAC__GRANULE_HOLE;
	}
	return held;
}

/* Behind its last block a container may hold what its file or its nominal size says. */
static uint64_t allocated_ahead(struct world *w, uint32_t id, const struct lac__table_entry *entry)
{
	uint64_t end = lac__round_up(entry->tail_bytes, w->store->granule_bytes);
	uint64_t longest = w->store->container_bytes;
	struct lac_file_info info;
	char path[LAC__NAME_BYTES];

	lac__name_container(id, path);
	if (w->be->ops->path_info(w->be, path, &info) == 0 && info.size_bytes > longest)
		longest = info.size_bytes;
	return longest > end ? longest - end : 0;
}

void verify_space(struct world *w)
{
	struct lac_store *s = w->store;
	struct lac_store_stats stats = {.size = sizeof stats};
	uint64_t held = 0, waiting = 0, used = lac__sim_used_bytes(w->be), bound;
	bool whole_units =
		s->reclaim_unit_bytes > s->granule_bytes; /* granules wait for neighbours */
	struct lac_error err = {0};

	for (uint32_t id = 1; id < s->next_container; id++) {
		struct lac__table_entry entry;

		if (lac__table_entry_get(s, id, &entry, NULL, &err) < 0) {
			failed(w, "container table", &err);
			return;
		}
		if (entry.state == LAC__CONTAINER_CREATING ||
			entry.state == LAC__CONTAINER_DROPPING)
			failed(w, "a container is left half made or half dropped", NULL);
		if (entry.state != LAC__CONTAINER_ACTIVE && entry.state != LAC__CONTAINER_SEALED)
			continue;
		held += count_granules(w, id, &entry, &waiting) * s->granule_bytes;
		if (entry.state == LAC__CONTAINER_ACTIVE)
			held += allocated_ahead(w, id, &entry);
		if (entry.state == LAC__CONTAINER_SEALED && entry.live_blocks == 0)
			failed(w, "an empty container is left", NULL);
	}
	if (waiting > 0 && !whole_units) {
		snprintf(err.message, sizeof err.message, "%llu granules",
			(unsigned long long)waiting);
		failed(w, "after reclaim granules are still dead or reserved", &err);
	}
	if (lac_store_stat(s, &stats, &err) < 0)
		failed(w, "stat", &err);
	/* What blocks need, what is allocated ahead, the journal, pages, and the super. */
	bound = held + stats.journal_bytes + stats.metadata_bytes + LAC__SUPER_FILE_BYTES;
	if (used > bound && !w->run->leaks && !whole_units && !w->run->workload->copy_on_write) {
		snprintf(err.message, sizeof err.message, "%llu bytes, expected at most %llu",
			(unsigned long long)used, (unsigned long long)bound);
		failed(w, "space leaks", &err);
	}
}
