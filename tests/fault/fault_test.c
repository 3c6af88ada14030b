/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fault/fault_test.c - every call fails in turn, with every errno, once and for ever; every
 * allocation fails in turn, once and for ever. After each: the error has words; what must go on
 * goes on (P5, P8, P13); and when the process ends there, what was acknowledged is there after the
 * next open, and check finds nothing.
 */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/blocks.h"
#include "io/sim.h"
#include "lacuna/check.h"
#include "store/internal.h"

/* ---- allocations that fail; see the link arguments in meson.build ---- */

static struct {
	bool armed, forever;
	uint64_t left, struck;
} oom;

static bool fail_now(void)
{
	if (!oom.armed)
		return false;
	if (oom.left > 0) {
		oom.left--;
		return false;
	}
	if (oom.struck > 0 && !oom.forever)
		return false;
	oom.struck++;
	return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **ret, size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **ret, size_t alignment, size_t size);

void *__wrap_malloc(size_t size)
{
	return fail_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fail_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fail_now() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fail_now() ? NULL : __real_aligned_alloc(alignment, size);
}

int __wrap_posix_memalign(void **ret, size_t alignment, size_t size)
{
	return fail_now() ? ENOMEM : __real_posix_memalign(ret, alignment, size);
}

/* ---- the world ---- */

enum { BLOCKS_MAX = 200, RUNS_MAX = 3000 };

struct expected {
	uint64_t id, length;
	bool deleted, unsure; /* unsure: a failed transaction may have done it */
};

struct world {
	struct lac_backend *be;
	struct lac_store *store;
	struct expected blocks[BLOCKS_MAX];
	size_t count;
	const char *context; /* for messages */
	char context_buffer[160];
};

static uint64_t runs, strikes;
static uint8_t buffer[3 << 20];

static struct lac_open_options open_options(struct lac_backend *be)
{
	return (struct lac_open_options){.size = sizeof(struct lac_open_options),
		.no_background = true,
		.backend = be,
		.memory_bytes = 1 << 20,
		.open_files = 8};
}

static int open_world(struct world *w, struct lac_error *err)
{
	struct lac_open_options open = open_options(w->be);

	return lac_store_open("sim", &open, &w->store, err);
}

static int put(struct world *w, size_t length, struct lac_error *err)
{
	struct lac_txn *txn;
	uint64_t id = 0;
	int rc = lac_txn_begin(w->store, &txn, err);

	if (rc < 0)
		return rc;
	test_fill(buffer, length, length);
	rc = lac_txn_put(txn, buffer, length, 0, &id, err);
	if (rc < 0) {
		lac_txn_abort(txn);
		return rc;
	}
	rc = lac_txn_commit(txn, NULL, err);
	assert_true(w->count < BLOCKS_MAX);
	w->blocks[w->count++] = (struct expected){.id = id, .length = length, .unsure = rc < 0};
	return rc;
}

static int delete_at(struct world *w, size_t n, struct lac_error *err)
{
	struct lac_txn *txn;
	int rc = lac_txn_begin(w->store, &txn, err);

	if (rc < 0)
		return rc;
	rc = lac_txn_delete(txn, w->blocks[n].id, err);
	if (rc < 0) {
		lac_txn_abort(txn);
		return rc;
	}
	rc = lac_txn_commit(txn, NULL, err);
	w->blocks[n].deleted = rc == 0;
	w->blocks[n].unsure = rc < 0;
	return rc;
}

static void complain(const struct world *w, const char *what, const struct lac_error *err)
{
	fail_msg("%s: %s: %s", w->context, what, err ? err->message : "");
}

static int on_finding(void *arg, const struct lac_finding *finding)
{
	struct world *w = arg;

	if (finding->severity != LAC_SEVERITY_NOTE)
		fail_msg("%s: check: %d %s: %s", w->context, finding->id, finding->path,
			finding->text);
	return 0;
}

static void check_world(struct world *w)
{
	struct lac_check_options options = {.size = sizeof options,
		.data = true,
		.backend = w->be,
		.finding = on_finding,
		.arg = w};
	struct lac_check_result result;
	struct lac_error err = {0};

	if (lac_check("sim", &options, &result, &err) < 0)
		complain(w, "check", &err);
}

/* Every block is as acknowledged; what is unsure is whole or absent. */
static void verify_blocks(struct world *w, bool settle)
{
	static uint8_t got[3 << 20];

	for (size_t i = 0; i < w->count; i++) {
		struct expected *b = &w->blocks[i];
		struct lac_error err = {0};
		int64_t n;

		if (b->id == 0)
			continue;
		n = lac_block_read(w->store, b->id, got, sizeof got, 0, &err);
		if (b->unsure && n == -ENOENT) {
			if (settle)
				*b = (struct expected){.id = b->id, .deleted = true};
			continue;
		}
		if (b->deleted) {
			if (n != -ENOENT)
				complain(w, "a deleted block is back", &err);
			continue;
		}
		if (n != (int64_t)b->length || !test_matches(got, b->length, b->length, 0))
			complain(w, "a block is not what was put", &err);
		if (settle)
			b->unsure = false;
	}
}

static void crash_world(struct world *w, enum lac__sim_crash_mode mode)
{
	struct lac_backend *after;

	assert_int_equal(lac__sim_crash(w->be, mode, 0, &after), 0);
	if (w->store) {
		lac__journal_poison(
			w->store->journal, -EIO, &(struct lac_error){.message = "crashed"});
		lac_store_close(w->store, NULL);
	}
	lac__sim_free(w->be);
	w->be = after;
	w->store = NULL;
}

/* Small blocks, large ones, deleted ones, a sealed container, a streamed block. */
static void make_world(struct world *w)
{
	struct lac__sim_options sim = {0};
	struct lac_create_options create = {.size = sizeof create,
		.inline_max_bytes = 4096,
		.segment_bytes = 64 << 10,
		.container_bytes = 128 << 10};
	struct lac_error err = {0};

	memset(w, 0, sizeof *w);
	w->context = "make";
	assert_int_equal(lac__sim_new(&sim, &w->be), 0);
	assert_int_equal(lac__store_create_on(w->be, &create, &err), 0);
	assert_int_equal(open_world(w, &err), 0);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(put(w, 300 + i, &err), 0);
	for (size_t i = 0; i < 12; i++)
		assert_int_equal(put(w, 15000 + i, &err), 0);
	assert_int_equal(put(w, 1200000, &err), 0);
	for (size_t i = 3; i < 26; i++)
		assert_int_equal(delete_at(w, i, &err), 0);
}

/* ---- scenarios: the world is open, unless the name says otherwise ---- */

static int do_small(struct world *w, struct lac_error *err)
{
	return put(w, 700, err);
}

static int do_large(struct world *w, struct lac_error *err)
{
	return put(w, 30000, err);
}

static int do_stream(struct world *w, struct lac_error *err)
{
	return put(w, 1100000, err);
}

static int do_delete(struct world *w, struct lac_error *err)
{
	return delete_at(w, 0, err);
}

static int do_checkpoint(struct world *w, struct lac_error *err)
{
	return lac_store_checkpoint(w->store, err);
}

static int do_reclaim(struct world *w, struct lac_error *err)
{
	return lac_store_reclaim(w->store, NULL, err);
}

static int do_read(struct world *w, struct lac_error *err)
{
	static uint8_t got[2 << 20];
	int64_t n = lac_block_read(w->store, w->blocks[w->count - 1].id, got, sizeof got, 5, err);

	if (n == -ENOENT || n == -EBADMSG)
		complain(w, "a failed read was taken for something else", err);
	return n < 0 ? (int)n : 0;
}

static int do_iterate(struct world *w, struct lac_error *err)
{
	struct lac_block_info info;
	struct lac_iter *it = NULL;
	int rc = lac_iter_open(w->store, NULL, &it, err);

	while (rc == 0)
		rc = lac_iter_next(it, &info, err);
	lac_iter_close(it);
	return rc < 0 ? rc : 0;
}

static int do_close(struct world *w, struct lac_error *err)
{
	int rc = lac_store_close(w->store, err);

	w->store = NULL;
	return rc;
}

static int do_open(struct world *w, struct lac_error *err)
{
	return open_world(w, err);
}

static int do_check(struct world *w, struct lac_error *err)
{
	struct lac_check_options options = {.size = sizeof options, .data = true, .backend = w->be};
	struct lac_check_result result;

	return lac_check("sim", &options, &result, err);
}

struct scenario {
	const char *name;
	int (*run)(struct world *, struct lac_error *);
	bool closed, crashed; /* the world before it */
	bool reads_only;
};

static const struct scenario scenarios[] = {
	{"small commit", do_small, false, false, false},
	{"large commit", do_large, false, false, false},
	{"streamed commit", do_stream, false, false, false},
	{"delete", do_delete, false, false, false},
	{"checkpoint", do_checkpoint, false, false, false},
	{"reclaim", do_reclaim, false, false, false},
	{"read", do_read, false, false, true},
	{"iterate", do_iterate, false, false, true},
	{"close", do_close, false, false, false},
	{"open", do_open, true, false, false},
	{"recover", do_open, false, true, false},
	{"check", do_check, true, false, true},
};

/* A world as the scenario wants it, from the one that was made once. */
static void take_world(const struct world *made, const struct scenario *sc, struct world *w)
{
	struct lac_error err = {0};

	*w = *made;
	w->store = NULL;
	w->context = w->context_buffer;
	assert_int_equal(lac__sim_clone(made->be, &w->be), 0);
	if (sc->crashed)
		return;
	if (open_world(w, &err) < 0)
		complain(w, "open before", &err);
	if (sc->closed) {
		assert_int_equal(lac_store_close(w->store, &err), 0);
		w->store = NULL;
	}
}

/* The handle after a failure: reads go on; changes go on or say the first cause. */
static void use_after(struct world *w)
{
	struct lac_error err = {0}, again = {0};
	int rc;

	verify_blocks(w, false);
	rc = put(w, 123, &err);
	if (rc == 0)
		return;
	if (lac__journal_poisoned(w->store->journal, NULL) == 0)
		complain(w, "a change fails though nothing is poisoned", &err);
	if (err.code != rc || !err.message[0])
		complain(w, "an error without words", &err);
	w->blocks[w->count++] = (struct expected){0};
	if (put(w, 124, &again) != rc)
		complain(w, "a poisoned handle changes its mind", &again);
}

static void afterwards(struct world *w, const struct scenario *sc, int rc)
{
	struct lac_error err = {0};

	(void)sc;
	(void)rc;
	if (w->store)
		use_after(w);
	crash_world(w, LAC__SIM_KILL);
	check_world(w);
	if (open_world(w, &err) < 0)
		complain(w, "open afterwards", &err);
	verify_blocks(w, true);
	if (put(w, 321, &err) < 0)
		complain(w, "put afterwards", &err);
	crash_world(w, LAC__SIM_DROP_ALL);
	if (open_world(w, &err) < 0)
		complain(w, "open after a power cut", &err);
	verify_blocks(w, false);
	if (lac_store_close(w->store, &err) < 0)
		complain(w, "close", &err);
	w->store = NULL;
	check_world(w);
}

struct fault {
	const char *name;
	enum lac__sim_fault kind;
	int64_t value;
	enum lac__sim_op op;
	bool forever;
	bool invisible; /* must not be seen by the caller at all */
};

static const struct fault faults[] = {
	{"EIO once", LAC__SIM_ERRNO, EIO, LAC__SIM_OPS, false, false},
	{"EIO for ever", LAC__SIM_ERRNO, EIO, LAC__SIM_OPS, true, false},
	{"ENOSPC once", LAC__SIM_ERRNO, ENOSPC, LAC__SIM_OPS, false, false},
	{"ENOSPC for ever", LAC__SIM_ERRNO, ENOSPC, LAC__SIM_OPS, true, false},
	{"EDQUOT once", LAC__SIM_ERRNO, EDQUOT, LAC__SIM_OPS, false, false},
	{"EROFS for ever", LAC__SIM_ERRNO, EROFS, LAC__SIM_OPS, true, false},
	{"EMFILE once", LAC__SIM_ERRNO, EMFILE, LAC__SIM_OPS, false, false},
	{"EACCES once", LAC__SIM_ERRNO, EACCES, LAC__SIM_OPS, false, false},
	{"EINTR write", LAC__SIM_ERRNO, EINTR, LAC__SIM_WRITE, false, true},
	{"EINTR read", LAC__SIM_ERRNO, EINTR, LAC__SIM_READ, false, true},
	{"EINTR sync", LAC__SIM_ERRNO, EINTR, LAC__SIM_SYNC, false, true},
	{"short write", LAC__SIM_SHORT, 1, LAC__SIM_WRITE, false, true},
	{"short read", LAC__SIM_SHORT, 1, LAC__SIM_READ, false, true},
	{"sync fails, bytes lost", LAC__SIM_SYNC_REVERT, 0, LAC__SIM_SYNC, false, false},
	{"sync fails, bytes there", LAC__SIM_SYNC_LANDED, 0, LAC__SIM_SYNC, false, false},
	{"sync fails, half there", LAC__SIM_SYNC_HALF, 0, LAC__SIM_SYNC, false, false},
};

/* False when the fault had no call left to strike. */
static bool run_fault(
	const struct world *made, const struct scenario *sc, const struct fault *fault, uint64_t n)
{
	struct lac_error err = {0};
	struct world *w = calloc(1, sizeof *w);
	uint64_t digest = 0;
	bool struck;
	int rc;

	assert_non_null(w);
	take_world(made, sc, w);
	snprintf(w->context_buffer, sizeof w->context_buffer, "%s, %s at call %llu", sc->name,
		fault->name, (unsigned long long)n);
	if (sc->reads_only)
		digest = lac__sim_digest(w->be);
	lac__sim_arm(w->be, fault->op, NULL, n, fault->forever, fault->kind, fault->value);
	rc = sc->run(w, &err);
	struck = lac__sim_struck(w->be) > 0;
	lac__sim_heal(w->be);
	runs++;
	strikes += struck;
	if (rc < 0 && (err.code != rc || !err.message[0]))
		complain(w, "an error without words", &err);
	if (rc < 0 && (!struck || fault->invisible))
		complain(w, "fails for no reason", &err);
	if (sc->reads_only && digest != lac__sim_digest(w->be))
		complain(w, "reading changed something", &err);
	afterwards(w, sc, rc);
	lac__sim_free(w->be);
	free(w);
	return struck;
}

/* With a full run every call is struck; with a scaled one every k-th. */
static uint64_t stride(void)
{
	return test_scale() >= 1 ? 1 : 7;
}

static void test_faults(void **state)
{
	const struct scenario *sc = *state;
	struct world made;

	make_world(&made);
	crash_world(&made, LAC__SIM_KILL);
	for (size_t f = 0; f < sizeof faults / sizeof *faults; f++)
		for (uint64_t n = 0; n < RUNS_MAX; n += stride())
			if (!run_fault(&made, sc, &faults[f], n))
				break;
	lac__sim_free(made.be);
}

static bool run_oom(const struct world *made, const struct scenario *sc, uint64_t n, bool forever)
{
	struct lac_error err = {0};
	struct world *w = calloc(1, sizeof *w);
	bool struck;
	int rc;

	assert_non_null(w);
	take_world(made, sc, w);
	snprintf(w->context_buffer, sizeof w->context_buffer, "%s, allocation %llu fails%s",
		sc->name, (unsigned long long)n, forever ? " and all after" : "");
	oom.struck = 0;
	oom.left = n;
	oom.forever = forever;
	oom.armed = true;
	rc = sc->run(w, &err);
	oom.armed = false;
	struck = oom.struck > 0;
	runs++;
	strikes += struck;
	if (rc < 0 && (err.code != rc || !err.message[0]))
		complain(w, "an error without words", &err);
	if (rc < 0 && !struck)
		complain(w, "fails for no reason", &err);
	afterwards(w, sc, rc);
	lac__sim_free(w->be);
	free(w);
	return struck;
}

static void test_oom(void **state)
{
	const struct scenario *sc = *state;
	struct world made;

	make_world(&made);
	crash_world(&made, LAC__SIM_KILL);
	for (unsigned forever = 0; forever < 2; forever++)
		for (uint64_t n = 0; n < RUNS_MAX; n += stride())
			if (!run_oom(&made, sc, n, forever))
				break;
	lac__sim_free(made.be);
}

/* P13: with a disk that can't be read at all nothing is changed, and nothing is called missing. */
static void test_unreadable(void **state)
{
	struct world w;
	struct lac_error err = {0};
	uint64_t digest;

	(void)state;
	make_world(&w);
	crash_world(&w, LAC__SIM_KILL);
	w.context = "unreadable";
	digest = lac__sim_digest(w.be);
	for (uint64_t n = 0;; n++) {
		struct lac_backend *be;
		bool struck;
		int rc;

		assert_int_equal(lac__sim_clone(w.be, &be), 0);
		lac__sim_arm(be, LAC__SIM_READ, NULL, n, true, LAC__SIM_ERRNO, EIO);
		{
			struct lac_open_options open = open_options(be);
			struct lac_store *s;

			rc = lac_store_open("sim", &open, &s, &err);
			struck = lac__sim_struck(be) > 0;
			if (rc == 0)
				lac_store_close(s, NULL);
		}
		if (!struck) {
			lac__sim_free(be);
			break;
		}
		assert_int_equal(rc, -EIO);
		assert_int_equal(lac__sim_digest(be), digest);
		lac__sim_free(be);
	}
	lac__sim_free(w.be);
}

int main(void)
{
	enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };
	struct CMUnitTest tests[2 * SCENARIOS + 1];
	static char names[2 * SCENARIOS][64];
	int failed;

	for (size_t i = 0; i < 2 * SCENARIOS; i++) {
		const struct scenario *sc = &scenarios[i % SCENARIOS];

		snprintf(names[i], sizeof names[i], "%s: %s", sc->name,
			i < SCENARIOS ? "calls fail" : "allocations fail");
		tests[i] = (struct CMUnitTest){.name = names[i],
			.test_func = i < SCENARIOS ? test_faults : test_oom,
			.initial_state = (void *)sc};
	}
	tests[2 * SCENARIOS] = (struct CMUnitTest)cmocka_unit_test(test_unreadable);
	failed = cmocka_run_group_tests_name("fault", tests, NULL, NULL);
	printf("%llu runs, %llu with a strike\n", (unsigned long long)runs,
		(unsigned long long)strikes);
	return failed;
}
