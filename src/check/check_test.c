/* SPDX-License-Identifier: Apache-2.0 */
/* check/check_test.c - stores with nothing wrong, superblock and files, and failures of our own. */
#include "check/expect_test.h"

/* ---- nothing wrong ---- */

static void sound(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	expect(m, &s, 0);
	assert_int_equal(s.phases, 6);
	assert_int_equal(s.result.blocks, 6);
	assert_int_equal(s.result.live_bytes, 100 + 1000 + 5000 + 300000 + 4096);
	assert_int_equal(s.result.damages + s.result.fatals + s.result.notes, 0);
	assert_int_equal(s.result.head_lsn, m->lsn);
	assert_int_equal(s.result.max_lsn, m->lsn);
	mini_checkpoint(m, true); /* closed cleanly */
	expect(m, &s, 0);
	assert_int_equal(s.result.head_lsn, m->lsn);
}

static void sound_when_empty(void **state)
{
	struct mini *m = mini_new();
	struct seen s = {0};

	mini_checkpoint(m, true);
	expect(m, &s, 1, LAC_FINDING_SUPER_COPY_BAD); /* copy 0 was never written */
	mini_checkpoint(m, true);
	expect(m, &s, 0);
	mini_free(m);
}

static void sound_without_options(void **state)
{
	struct lac_error err = {0};

	assert_int_equal(lac_check("/nonexistent/store", NULL, NULL, &err), -ENOENT);
	assert_true(err.message[0] != 0);
}

static void redo_is_no_damage(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};
	struct lac__op op[3];
	uint8_t zeros[LAC__PAGE_BYTES] = {0}, payload[300];

	op[0] = mini_delete(&blocks[3]);
	op[1] = mini_block(m, 7, 1, 5504, sizeof(payload), 0);
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = mini_byte(7, i);
	op[1].has_payload = true;
	op[1].payload = payload;
	mini_commit(m, op, 2);
	/* What the container has is nobody's business before recovery. */
	mini_write(m->be, "data/00000001.lac", 5504, zeros, sizeof(payload));
	expect(m, &s, 2, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_SPACE_WAITS);
	assert_int_equal(s.result.blocks, 6);
	assert_int_equal(s.result.damages + s.result.fatals, 0);
	/* The same, with new index pages and a new container. */
	mini_high_water(m, 301, 300);
	mini_container(m, 3, LAC__CONTAINER_PACKED);
	op[0] = mini_block(m, 400, 3, 4160, 10, 0);
	mini_commit(m, op, 1);
	expect(m, &s, 2, LAC_FINDING_JOURNAL_REDO, LAC_FINDING_SPACE_WAITS);
	assert_int_equal(s.result.blocks, 7);
	mini_checkpoint(m, false);
	m->super.id_high_water = 601;
	m->super.next_container = 4;
	mini_write_super(m);
	mini_write(m->be, "data/00000001.lac", 5504, payload, sizeof(payload));
	expect(m, &s, 1, LAC_FINDING_SPACE_WAITS);
}

/* ---- phase 1 ---- */

static void super_copy_bad(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_flip(m->be, "super", LAC__SLOT_STRIDE_BYTES * (1 - m->super.copy) + 30);
	expect(m, &s, 1, LAC_FINDING_SUPER_COPY_BAD);
	assert_string_equal(s.path[0], "super");
	assert_int_equal(s.offset[0], LAC__SLOT_STRIDE_BYTES * (1 - m->super.copy));
}

static void super_short(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_truncate(m->be, "super", LAC__SLOT_STRIDE_BYTES + 5000);
	expect(m, &s, 1, LAC_FINDING_FILE_SHORT);
}

static void super_lost(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_flip(m->be, "super", 30);
	mini_flip(m->be, "super", LAC__SLOT_STRIDE_BYTES + 30);
	expect(m, &s, 1, LAC_FINDING_SUPER_LOST);
	assert_int_equal(s.result.fatals, 1);
	assert_int_equal(m->be->ops->unlink(m->be, "super"), 0);
	expect(m, &s, 1, LAC_FINDING_SUPER_LOST);
}

static void super_format(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	m->super.incompat = UINT64_C(1) << 40;
	mini_write_super(m);
	expect(m, &s, 1, LAC_FINDING_SUPER_FORMAT);
}

static void super_mismatch(void **state)
{
	struct mini *m = *state;
	struct lac__super own = m->super;
	struct seen s = {0};

	m->super.copy = 1 - m->super.copy;
	m->super.checkpoint--;
	m->super.uuid.b[3] ^= 1;
	mini_write_super(m);
	m->super = own;
	expect(m, &s, 1, LAC_FINDING_SUPER_MISMATCH);
}

static void not_a_store(void **state)
{
	struct seen s = {0};
	struct mini m = {0};

	assert_int_equal(lac__sim_new(NULL, &m.be), 0);
	assert_int_equal(check(&m, &s), -ENOENT);
	assert_int_equal(s.err.reason, LAC_REASON_NOT_A_STORE);
	assert_int_equal(s.count, 0);
	lac__sim_free(m.be);
}

static void file_missing(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	assert_int_equal(m->be->ops->unlink(m->be, "data/00000002.lac"), 0);
	expect(m, &s, 1, LAC_FINDING_FILE_MISSING);
	assert_string_equal(s.path[0], "data/00000002.lac");
}

static void map_missing(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	assert_int_equal(m->be->ops->unlink(m->be, "space/00000001.map"), 0);
	expect(m, &s, 1, LAC_FINDING_FILE_MISSING);
	assert_string_equal(s.path[0], "space/00000001.map");
}

static void table_missing(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	assert_int_equal(m->be->ops->unlink(m->be, "space/table"), 0);
	check(m, &s);
	assert_true(s.result.damages > 0);
	assert_int_equal(s.ids[s.count - 1], LAC_FINDING_ENTRY_CONTAINER);
}

static void file_extra(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_write(m->be, "data/00000009.lac", 0, "x", 1);
	mini_write(m->be, "data/00000003.lac.tmp", 0, "x", 1);
	mini_write(m->be, "space/00000009.map", 0, "x", 1);
	mini_write(m->be, "super.tmp", 0, "x", 1);
	mini_write(m->be, "index/foo", 0, "x", 1);
	mini_write(m->be, "journal/foo", 0, "x", 1);
	mini_write(m->be, "lock", 0, "x", 1);
	expect(m, &s, 6, LAC_FINDING_FILE_EXTRA, LAC_FINDING_FILE_EXTRA, LAC_FINDING_FILE_EXTRA,
		LAC_FINDING_FILE_EXTRA, LAC_FINDING_FILE_EXTRA, LAC_FINDING_FILE_EXTRA);
	assert_int_equal(s.result.notes, 6);
}

static void file_short(void **state)
{
	struct mini *m = *state;
	struct seen s = {0};

	mini_truncate(m->be, "data/00000002.lac", UINT64_C(80) * 4096 + 4095);
	expect(m, &s, 1, LAC_FINDING_FILE_SHORT);
	mini_truncate(m->be, "data/00000002.lac", 100);
	expect(m, &s, 2, LAC_FINDING_FILE_SHORT, LAC_FINDING_FILE_SHORT);
}

static void file_unreadable(void **state)
{
	struct mini *m = *state;
	struct lac__page *index = index_page(m, 2);
	char path[LAC__NAME_BYTES];
	struct seen s = {0};
	uint64_t offset;

	page_place(index, base_of(m, index), path, &offset);
	assert_int_equal(lac__sim_unreadable(m->be, path, offset, 512), 0);
	expect(m, &s, 1, LAC_FINDING_FILE_UNREADABLE);
	assert_int_equal(s.offset[0], offset);
	assert_int_equal(lac__sim_unreadable(m->be, "data/00000002.lac", 20000, 512), 0);
	expect(m, &s, 2, LAC_FINDING_FILE_UNREADABLE, LAC_FINDING_FILE_UNREADABLE);
}

/* A lack of our own is no damage, at whatever call it strikes (P13). */
static void our_lack_is_no_damage(void **state)
{
	static const int64_t lacks[] = {EMFILE, ENOMEM, EACCES};
	static const enum lac__sim_op kinds[] = {LAC__SIM_OPEN, LAC__SIM_LIST, LAC__SIM_READ};
	struct mini *m = *state;

	for (unsigned k = 0; k < 3; k++) {
		for (uint64_t n = 0;; n++) {
			const uint64_t before = lac__sim_struck(m->be);
			struct seen s = {0};
			int rc;

			assert_true(lac__sim_arm(
				m->be, kinds[k], NULL, n, true, LAC__SIM_ERRNO, lacks[n % 3]));
			rc = check(m, &s);
			if (lac__sim_struck(m->be) == before) {
				assert_int_equal(rc, 0);
				lac__sim_heal(m->be);
				break;
			}
			if (rc != -lacks[n % 3])
				fail_msg("kind %u, call %u: %d", k, (unsigned)n, rc);
			assert_int_equal(s.count, 0);
			lac__sim_heal(m->be);
		}
	}
}

/* EIO at any read is a finding or two, never a crash, and never taken for damage. */
static void any_unreadable(void **state)
{
	struct mini *m = *state;

	for (uint64_t n = 0;; n++) {
		const uint64_t before = lac__sim_struck(m->be);
		struct seen s = {0};
		bool struck;
		int rc;

		assert_true(lac__sim_arm(m->be, LAC__SIM_READ, NULL, n, true, LAC__SIM_ERRNO, EIO));
		rc = check(m, &s);
		struck = lac__sim_struck(m->be) > before;
		lac__sim_heal(m->be);
		if (!struck)
			break;
		if (rc != 0 || s.count == 0)
			fail_msg("read %u: %d, %d findings", (unsigned)n, rc, s.count);
		for (int i = 0; i < s.count && i < SEEN_MAX; i++)
			assert_int_equal(s.ids[i], LAC_FINDING_FILE_UNREADABLE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(sound),
		cmocka_unit_test(sound_when_empty),
		cmocka_unit_test(sound_without_options),
		T(redo_is_no_damage),
		T(super_copy_bad),
		T(super_lost),
		T(super_short),
		T(super_format),
		T(super_mismatch),
		cmocka_unit_test(not_a_store),
		T(file_missing),
		T(map_missing),
		T(table_missing),
		T(file_extra),
		T(file_short),
		T(file_unreadable),
		T(our_lack_is_no_damage),
		T(any_unreadable),
	};

	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
