/* SPDX-License-Identifier: Apache-2.0 */
/* store/stat.c - what the store holds and costs: the books, and what the filesystem says. */
#include <errno.h>
#include <string.h>

#include "store/internal.h"

static void add_container(struct lac_store *s, uint32_t id, const struct lac__table_entry *entry,
	struct lac_store_stats *ret)
{
	struct lac_file_info info;
	char path[LAC__NAME_BYTES];

	if (entry->state == LAC__CONTAINER_NONE || entry->state == LAC__CONTAINER_GONE)
		return;
	ret->blocks += entry->live_blocks;
	ret->live_bytes += entry->live_bytes;
	ret->dead_bytes += entry->dead_granules * s->granule_bytes;
	ret->hole_bytes += entry->hole_granules * s->granule_bytes;
	lac__name_container(id, path);
	if (s->backend->ops->path_info(s->backend, path, &info) < 0)
		return;
	ret->containers++;
	ret->file_bytes += info.size_bytes;
	ret->allocated_bytes += info.allocated_bytes;
}

struct tree {
	struct lac_store *store;
	const char *dir;
	uint64_t bytes;
};

static int add_file(void *arg, const char *name)
{
	struct tree *tree = arg;
	struct lac_file_info info;
	char path[LAC__NAME_BYTES];

	if (snprintf(path, sizeof path, "%s/%s", tree->dir, name) < (int)sizeof path &&
		tree->store->backend->ops->path_info(tree->store->backend, path, &info) == 0)
		tree->bytes += info.allocated_bytes;
	return 0;
}

static uint64_t allocated_in(struct lac_store *s, const char *dir)
{
	struct tree tree = {.store = s, .dir = dir};

	s->backend->ops->list(s->backend, dir, add_file, &tree);
	return tree.bytes;
}

static void add_counters(struct lac_store *s, struct lac_store_stats *ret)
{
	struct lac__journal_stats journal;
	struct lac__pages_stats pages;

	lac__journal_stats(s->journal, &journal);
	lac__pages_stats(s->pages, &pages);
	ret->journal_bytes = journal.file_bytes;
	ret->journal_syncs = journal.syncs;
	ret->journal_written_bytes = journal.written_bytes;
	ret->page_hits = pages.hits;
	ret->page_misses = pages.misses;
	ret->pages_cached = pages.cached;
	ret->pages_dirty = pages.dirty;
	ret->puts = s->puts;
	ret->deletes = s->deletes;
	ret->commits = s->commits;
	ret->checkpoints = s->checkpoints;
	ret->punches = s->punches;
	ret->punched_bytes = s->punched_bytes;
}

LAC_PUBLIC int lac_store_stat(
	struct lac_store *s, struct lac_store_stats *ret_stats, struct lac_error *err)
{
	struct lac_store_stats st = {
		.format = LAC__FORMAT_VERSION, .granule_bytes = s->granule_bytes};
	size_t size = ret_stats->size < sizeof st ? ret_stats->size : sizeof st;
	uint32_t end;
	int own = lac__store_own_process(s, err);

	if (own < 0)
		return own;
	memcpy(st.uuid, s->uuid.b, sizeof st.uuid);
	pthread_mutex_lock(&s->seq_lock);
	end = s->next_container;
	pthread_mutex_unlock(&s->seq_lock);
	for (uint32_t id = 1; id < end; id++) {
		struct lac__table_entry entry;
		int rc = lac__table_entry_get(s, id, &entry, NULL, err);

		if (rc < 0) {
			lac__error_prepend(err, "stat: container %" PRIu32, id);
			return rc;
		}
		add_container(s, id, &entry, &st);
	}
	st.metadata_bytes = allocated_in(s, LAC__NAME_INDEX) + allocated_in(s, LAC__NAME_SPACE);
	pthread_mutex_lock(&s->ids_lock);
	st.next_id = s->next_id;
	pthread_mutex_unlock(&s->ids_lock);
	st.lsn_head = lac__journal_next_lsn(s->journal) - 1;
	pthread_mutex_lock(&s->upkeep_lock);
	st.checkpoint_lsn = s->super.redo_lsn;
	pthread_mutex_unlock(&s->upkeep_lock);
	add_counters(s, &st);
	st.size = ret_stats->size;
	memcpy(ret_stats, &st, size);
	return 0;
}
