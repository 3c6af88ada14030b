/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/threads/threads_test.c - many threads on one store, on real files, with the store's own
 * thread and explicit upkeep beside them. Run under the thread sanitizer too.
 *
 * Each writer keeps to blocks of its own, so that it knows what must be there; readers read
 * everybody's and must get right bytes or "not found", never zeros of a hole.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/blocks.h"
#include "lacuna/check.h"
#include "lacuna/lacuna.h"

enum { WRITERS = 4, READERS = 3, SLOTS = 64, LENGTH_MAX = 90000 };

struct slot {
	_Atomic uint64_t id; /* 0 = none; set after the commit, cleared before the delete */
};

struct shared {
	struct lac_store *store;
	struct slot slots[WRITERS][SLOTS];
	_Atomic bool stop;
	_Atomic unsigned wrong, reads, reads_found;
	_Atomic uint64_t reclaimed;
	unsigned rounds;
	char message[600];
};

struct worker {
	struct shared *shared;
	unsigned number;
	pthread_t thread;
};

/* Length and bytes of a block follow from its owner tag, which its creator chose. */
static size_t length_of(uint64_t owner)
{
	uint64_t state = owner;

	switch (test_random(&state) % 4) {
	case 0: return test_random(&state) % 300;
	case 1: return 4096;
	case 2: return test_random(&state) % 20000;
	default: return test_random(&state) % LENGTH_MAX;
	}
}

static void wrong(struct shared *sh, const char *what, uint64_t id, const struct lac_error *err)
{
	if (sh->wrong++ == 0)
		snprintf(sh->message, sizeof sh->message, "%s: block %llu: %s", what,
			(unsigned long long)id, err ? err->message : "");
	sh->stop = true;
}

static int put_one(struct worker *w, uint64_t owner, unsigned slot, uint8_t *buffer)
{
	struct shared *sh = w->shared;
	struct lac_error err = {0};
	struct lac_txn *txn;
	uint64_t id = 0, old = sh->slots[w->number][slot].id, deleted = 0;
	int rc = lac_txn_begin(sh->store, &txn, &err);

	if (rc == 0) {
		test_fill(buffer, length_of(owner), owner);
		rc = lac_txn_put(txn, buffer, length_of(owner), owner, &id, &err);
		if (rc == 0 && old) {
			sh->slots[w->number][slot].id = 0;
			rc = lac_txn_delete(txn, old, &err);
		}
		if (rc < 0)
			lac_txn_abort(txn);
		else
			rc = lac_txn_commit(txn, &deleted, &err);
	}
	if (rc < 0 || deleted != (old != 0))
		wrong(sh, "write", id, &err);
	else
		sh->slots[w->number][slot].id = id;
	return rc;
}

static void *writer_main(void *arg)
{
	struct worker *w = arg;
	uint64_t random = w->number + 1;
	uint8_t *buffer = malloc(LENGTH_MAX);

	for (unsigned i = 0; buffer && i < w->shared->rounds && !w->shared->stop; i++) {
		uint64_t owner = ((uint64_t)w->number << 32 | i) + 1;

		put_one(w, owner, (unsigned)(test_random(&random) % SLOTS), buffer);
	}
	free(buffer);
	return NULL;
}

static void *reader_main(void *arg)
{
	struct worker *w = arg;
	struct shared *sh = w->shared;
	uint64_t random = 1000 + w->number;
	uint8_t *buffer = malloc(LENGTH_MAX);

	while (buffer && !sh->stop) {
		uint64_t pick = test_random(&random);
		uint64_t id = sh->slots[pick % WRITERS][pick / 8 % SLOTS].id, from;
		struct lac_block_info info;
		struct lac_error err = {0};
		int64_t n;

		if (id == 0)
			continue;
		sh->reads++;
		n = lac_block_stat(sh->store, id, &info, &err);
		from = n == 0 && pick % 3 == 0 ? info.length / 2 : 0;
		if (n == 0)
			n = lac_block_read(sh->store, id, buffer, LENGTH_MAX, from, &err);
		if (n == -ENOENT)
			continue;
		if (n < 0 || (uint64_t)n != info.length - from ||
			!test_matches(buffer, (size_t)n, info.owner, from))
			wrong(sh, "read", id, &err);
		sh->reads_found++;
	}
	free(buffer);
	return NULL;
}

static void *upkeep_main(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; !w->shared->stop; i++) {
		struct lac_reclaim_result result;
		struct lac_error err = {0};
		int rc = i % 4 == 3 ? lac_store_checkpoint(w->shared->store, &err)
				    : lac_store_reclaim(w->shared->store, &result, &err);

		if (rc < 0)
			wrong(w->shared, "upkeep", 0, &err);
		else if (i % 4 != 3)
			w->shared->reclaimed += result.punched_bytes + result.unlinked_bytes;
	}
	return NULL;
}

static int complain(void *arg, const struct lac_finding *finding)
{
	(void)arg;
	if (finding->severity != LAC_SEVERITY_NOTE)
		fail_msg("check: %d %s: %s", finding->id, finding->path, finding->text);
	return 0;
}

static void start(struct worker *w, struct shared *sh, unsigned number, void *(*run)(void *))
{
	w->shared = sh;
	w->number = number;
	assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

static void verify_slots(struct shared *sh)
{
	uint8_t *buffer = malloc(LENGTH_MAX);

	assert_non_null(buffer);
	for (unsigned w = 0; w < WRITERS; w++)
		for (unsigned i = 0; i < SLOTS; i++) {
			uint64_t id = sh->slots[w][i].id;
			struct lac_block_info info;
			struct lac_error err = {0};

			if (id == 0)
				continue;
			if (lac_block_stat(sh->store, id, &info, &err) < 0 ||
				lac_block_read(sh->store, id, buffer, LENGTH_MAX, 0, &err) < 0)
				fail_msg("after reopening: block %llu: %s", (unsigned long long)id,
					err.message);
			assert_true(test_matches(buffer, info.length, info.owner, 0));
		}
	free(buffer);
}

static void test_threads(void **state)
{
	struct lac_create_options create = {
		.size = sizeof create, .container_bytes = 2 << 20, .segment_bytes = 256 << 10};
	struct lac_open_options open = {
		.size = sizeof open, .journal_bytes = 256 << 10, .open_files = 12};
	struct lac_check_options check = {.size = sizeof check, .data = true, .finding = complain};
	struct lac_check_result result;
	struct worker workers[WRITERS + READERS + 1];
	struct shared *sh = calloc(1, sizeof *sh);
	struct lac_error err = {0};
	char *dir = test_make_dir("threads");

	(void)state;
	assert_non_null(dir);
	assert_non_null(sh);
	sh->rounds = (unsigned)(1500 * test_scale());
	assert_int_equal(lac_store_create(dir, &create, &err), 0);
	assert_int_equal(lac_store_open(dir, &open, &sh->store, &err), 0);
	for (unsigned i = 0; i < WRITERS; i++)
		start(&workers[i], sh, i, writer_main);
	for (unsigned i = 0; i < READERS; i++)
		start(&workers[WRITERS + i], sh, i, reader_main);
	start(&workers[WRITERS + READERS], sh, 0, upkeep_main);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(workers[i].thread, NULL);
	sh->stop = true;
	for (unsigned i = WRITERS; i < WRITERS + READERS + 1; i++)
		pthread_join(workers[i].thread, NULL);
	if (sh->wrong)
		fail_msg("%u wrong, first: %s", sh->wrong, sh->message);
	assert_true(sh->reclaimed > 0);
	assert_int_equal(lac_store_close(sh->store, &err), 0);
	assert_int_equal(lac_check(dir, &check, &result, &err), 0);
	assert_int_equal(lac_store_open(dir, &open, &sh->store, &err), 0);
	verify_slots(sh);
	assert_int_equal(lac_store_close(sh->store, &err), 0);
	print_message("%u reads, %u found their block, %llu bytes reclaimed\n", sh->reads,
		sh->reads_found, (unsigned long long)sh->reclaimed);
	free(sh);
	test_remove_dir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};

	return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
