/* SPDX-License-Identifier: Apache-2.0 */
/* index/pages_test.c - the page cache: slots, checkpoints, budget, and what it says of bad slots.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "index/pages.h"
#include "io/sim.h"

static const struct lac__uuid uuid = {{1, 2, 3}};

struct fixture {
	struct lac_backend *be;
	struct lac__files *files;
	struct lac__pages *pages;
};

static void fresh_cache(struct fixture *f, uint64_t budget, uint64_t checkpoint)
{
	lac__pages_free(f->pages);
	assert_int_equal(lac__pages_new(f->files, &uuid, budget, checkpoint, &f->pages), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	assert_non_null(f);
	assert_int_equal(lac__sim_new(NULL, &f->be), 0);
	assert_int_equal(f->be->ops->make_dir(f->be, "index"), 0);
	assert_int_equal(f->be->ops->make_dir(f->be, "space"), 0);
	assert_int_equal(lac__files_new(f->be, 8, &f->files), 0);
	fresh_cache(f, 8, 1);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	lac__pages_free(f->pages);
	lac__files_free(f->files);
	lac__sim_free(f->be);
	free(f);
	return 0;
}

static struct lac__page_ref index_page(uint64_t no)
{
	return (struct lac__page_ref){.kind = LAC__PAGE_INDEX, .no = no};
}

static void set(struct fixture *f, uint64_t no, uint8_t value, uint64_t lsn)
{
	struct lac__page_ref ref = index_page(no);
	struct lac__cached *c;

	assert_int_equal(lac__pages_reserve(f->pages, &ref, NULL), 0);
	assert_int_equal(lac__pages_get(f->pages, &ref, &c, NULL), 0);
	lac__pages_lock(f->pages);
	c->page.body[0] = value;
	lac__pages_changed(f->pages, c, lsn);
	lac__pages_unlock(f->pages);
	lac__pages_put(f->pages, c);
}

static int value(struct fixture *f, uint64_t no, uint64_t *ret_lsn)
{
	struct lac__page_ref ref = index_page(no);
	struct lac_error err = {0};
	struct lac__cached *c;
	int rc = lac__pages_get(f->pages, &ref, &c, &err);

	if (rc < 0) {
		assert_int_equal(err.code, rc);
		assert_true(err.message[0]);
		return rc;
	}
	rc = c->page.body[0];
	*ret_lsn = c->page.lsn;
	lac__pages_put(f->pages, c);
	return rc;
}

static uint64_t asked_durable;

static int durable(void *arg, uint64_t lsn, struct lac_error *err)
{
	(void)err;
	if (lsn > asked_durable)
		asked_durable = lsn;
	return arg ? *(int *)arg : 0;
}

static void checkpoint(struct fixture *f, uint64_t number, uint64_t before)
{
	uint64_t max;

	assert_int_equal(
		lac__pages_checkpoint(f->pages, number, before, durable, NULL, &max, NULL), 0);
	lac__pages_checkpoint_done(f->pages, number);
}

static void test_never_written(void **state)
{
	uint64_t lsn = 9;

	assert_int_equal(value(*state, 5, &lsn), 0);
	assert_int_equal(lsn, 0);
}

/* Each checkpoint writes the slot that is not the base; an unfinished one does not count. */
static void test_slots(void **state)
{
	struct fixture *f = *state;
	uint64_t lsn, max;

	set(f, 3, 10, 100);
	checkpoint(f, 2, 101);
	set(f, 3, 11, 101);
	checkpoint(f, 3, 102);
	set(f, 3, 12, 102);
	asked_durable = 0;
	assert_int_equal(lac__pages_checkpoint(f->pages, 4, 103, durable, NULL, &max, NULL), 0);
	assert_int_equal(max, 102);
	assert_int_equal(asked_durable, 102); /* I3 */

	fresh_cache(f, 8, 3); /* super 4 was never written */
	assert_int_equal(value(f, 3, &lsn), 11);
	assert_int_equal(lsn, 101);
	fresh_cache(f, 8, 4);
	assert_int_equal(value(f, 3, &lsn), 12);
	fresh_cache(f, 8, 2); /* both slots are newer than super 2: nothing to rely on */
	assert_int_equal(value(f, 3, &lsn), 0);
	assert_int_equal(lsn, 0);
}

static void test_not_durable(void **state)
{
	struct fixture *f = *state;
	int failure = -EIO;
	uint64_t lsn, max;

	set(f, 1, 1, 7);
	assert_int_equal(
		lac__pages_checkpoint(f->pages, 2, 8, durable, &failure, &max, NULL), -EIO);
	fresh_cache(f, 8, 2);
	assert_int_equal(value(f, 1, &lsn), 0); /* not a byte went out */
}

/* Pages that became dirty behind the line stay for the next checkpoint. */
static void test_line(void **state)
{
	struct fixture *f = *state;
	struct lac__pages_stats stats;
	uint64_t lsn;

	set(f, 1, 1, 10);
	set(f, 2, 2, 20);
	checkpoint(f, 2, 15);
	lac__pages_stats(f->pages, &stats);
	assert_int_equal(stats.dirty, 1);
	fresh_cache(f, 8, 2);
	assert_int_equal(value(f, 1, &lsn), 1);
	assert_int_equal(value(f, 2, &lsn), 0);
}

static void test_budget(void **state)
{
	struct fixture *f = *state;
	struct lac__pages_stats stats;
	uint64_t lsn;

	for (uint64_t no = 0; no < 40; no++)
		set(f, no, (uint8_t)(no + 1), no + 1);
	lac__pages_stats(f->pages, &stats);
	assert_int_equal(stats.dirty, 40); /* I5: none may go before a checkpoint */
	checkpoint(f, 2, 100);
	for (uint64_t no = 0; no < 40; no++)
		assert_int_equal(value(f, no, &lsn), no + 1);
	lac__pages_stats(f->pages, &stats);
	assert_int_equal(stats.dirty, 0);
	assert_true(stats.cached <= 8);
}

static void damage(struct fixture *f, uint64_t no, unsigned slot)
{
	uint64_t at = lac__page_slot_offset(no, slot) + 2000;
	uint8_t byte;

	assert_int_equal(lac__sim_peek(f->be, "index/00000000.idx", at, &byte, 1), 0);
	byte ^= 0x10;
	assert_int_equal(lac__sim_poke(f->be, "index/00000000.idx", at, &byte, 1), 0);
}

static void test_lost(void **state)
{
	struct fixture *f = *state;
	struct lac__page_ref ref = index_page(3);
	struct lac__cached *c;
	uint64_t lsn;

	set(f, 3, 10, 100);
	checkpoint(f, 2, 101);
	set(f, 3, 11, 101);
	checkpoint(f, 3, 102);
	damage(f, 3, 0);
	fresh_cache(f, 8, 3);
	/* The bad slot may be the newer: only redo, which has the chain of LSNs, may use the other.
	 */
	assert_int_equal(value(f, 3, &lsn), -EBADMSG);
	assert_int_equal(lac__pages_get_redo(f->pages, &ref, false, &c, NULL), 0);
	lac__pages_put(f->pages, c);
	damage(f, 3, 1);
	fresh_cache(f, 8, 3);
	assert_int_equal(value(f, 3, &lsn), -EBADMSG);
	/* Only redo of the page's first record may begin from zero. */
	assert_int_equal(lac__pages_get_redo(f->pages, &ref, false, &c, NULL), -EBADMSG);
	assert_int_equal(lac__pages_get_redo(f->pages, &ref, true, &c, NULL), 0);
	assert_int_equal(c->page.lsn, 0);
	assert_int_equal(c->page.body[0], 0);
	lac__pages_put(f->pages, c);
}

static void test_unreadable(void **state)
{
	struct fixture *f = *state;
	uint64_t lsn;

	set(f, 3, 10, 100);
	checkpoint(f, 2, 101);
	fresh_cache(f, 8, 2);
	lac__sim_arm(f->be, LAC__SIM_READ, NULL, 1, false, LAC__SIM_ERRNO, EIO);
	assert_int_equal(value(f, 3, &lsn), -EIO);
	assert_int_equal(value(f, 3, &lsn), 10); /* and it is tried again */
}

static void test_drop_container(void **state)
{
	struct fixture *f = *state;
	struct lac__page_ref ref = {.kind = LAC__PAGE_MAP, .container = 7};
	struct lac__pages_stats stats;
	struct lac__cached *c;

	assert_int_equal(lac__pages_get(f->pages, &ref, &c, NULL), 0);
	lac__pages_lock(f->pages);
	lac__pages_changed(f->pages, c, 5);
	lac__pages_unlock(f->pages);
	lac__pages_put(f->pages, c);
	set(f, 1, 1, 6);
	lac__pages_drop_container(f->pages, 7);
	lac__pages_stats(f->pages, &stats);
	assert_int_equal(stats.dirty, 1);
	checkpoint(f, 2, 10); /* would fail to find the map's file */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_never_written, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slots, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_durable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drop_container, setup, teardown),
	};

	return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
