/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/corrupt - a real store on the lying backend, damaged in every way that one write can damage
 * it, over samples of all its metadata. Whatever the bytes (P12): no crash; and a store that does
 * not read right, or does not open, has a check that said so.
 *
 * The one exception is P3's blind spot: when the last group before a crash does not verify, and
 * nothing later says that it was durable, that group is gone; with luck check has a note of it.
 * Harm done to a whole page may hit several small groups, and those that would confirm them.
 *
 * Damage is made on clones, so that a case costs no more than the bytes it touches. SEED in the
 * environment varies the samples, and is printed by a failure; ONLY names one test; VERBOSE shows
 * the findings.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/names.h"
#include "format/super.h"
#include "io/io.h"
#include "io/sim.h"
#include "lacuna/check.h"
#include "lacuna/lacuna.h"
#include "store/internal.h"

#define BLOCKS_MAX 600

static uint64_t seed = 1;

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* ---- a store and what is in it ---- */

enum { SAFE, LATE, LAST };

struct block {
	uint64_t id;
	size_t length;
	bool live;
	int when; /* LATE: after the last checkpoint; LAST: in the last group */
};

struct world {
	struct lac_backend *be;
	struct block blocks[BLOCKS_MAX];
	unsigned count;
	uint64_t random;
	int when; /* of what comes now */
};

static uint8_t *content(uint64_t id, size_t length)
{
	uint8_t *bytes = malloc(length + 1);

	assert_non_null(bytes);
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(id * 197 + i * 31 + (i >> 9));
	return bytes;
}

static struct lac_store *open_store(struct lac_backend *be, struct lac_error *err)
{
	const struct lac_open_options options = {
		.size = sizeof(options), .no_background = true, .backend = be};
	struct lac_store *store = NULL;

	return lac_store_open("store", &options, &store, err) == 0 ? store : NULL;
}

/* The id is known once the block is put, so the content can't depend on it: it depends on the
 * number. */
static void put_some(struct world *w, struct lac_store *s, unsigned count, size_t length_max)
{
	struct lac_error err = {0};
	struct lac_txn *txn;

	assert_int_equal(lac_txn_begin(s, &txn, &err), 0);
	for (unsigned i = 0; i < count; i++) {
		struct block *b = &w->blocks[w->count];
		uint8_t *bytes;

		assert_true(w->count < BLOCKS_MAX);
		b->length = (size_t)(next_random(&w->random) % (length_max + 1));
		b->live = true;
		b->when = w->when;
		bytes = content(w->count, b->length);
		if (lac_txn_put(txn, bytes, b->length, w->count % 5, &b->id, &err) != 0)
			fail_msg("put: %s", err.message);
		free(bytes);
		w->count++;
	}
	if (lac_txn_commit(txn, NULL, &err) != 0)
		fail_msg("commit: %s", err.message);
}

static void delete_some(struct world *w, struct lac_store *s, unsigned one_in)
{
	struct lac_error err = {0};
	struct lac_txn *txn;

	assert_int_equal(lac_txn_begin(s, &txn, &err), 0);
	for (unsigned i = 0; i < w->count; i++) {
		if (!w->blocks[i].live || next_random(&w->random) % one_in)
			continue;
		assert_int_equal(lac_txn_delete(txn, w->blocks[i].id, &err), 0);
		w->blocks[i].live = false;
		w->blocks[i].when = w->when;
	}
	assert_int_equal(lac_txn_commit(txn, NULL, &err), 0);
}

static void work(struct world *w, struct lac_store *s)
{
	struct lac_error err = {0};

	/* An index page that is retired, and containers that come and go. */
	put_some(w, s, 140, 100);
	for (unsigned i = 0; i < 4; i++)
		put_some(w, s, 2, 500000);
	delete_some(w, s, 1);
	assert_int_equal(lac_store_reclaim(s, NULL, &err), 0);
	put_some(w, s, 60, 300);
	put_some(w, s, 8, 9000);
	delete_some(w, s, 3);
	assert_int_equal(lac_store_checkpoint(s, &err), 0);
	put_some(w, s, 2, 300000);
	put_some(w, s, 60, 200);
	delete_some(w, s, 4);
	assert_int_equal(lac_store_reclaim(s, NULL, &err), 0);
	assert_int_equal(lac_store_checkpoint(s, &err), 0);
	w->when = LATE;
	put_some(w, s, 20, 2000);
	put_some(w, s, 1, 200000);
	delete_some(w, s, 5);
}

static void create(struct world *w)
{
	const struct lac_create_options options = {.size = sizeof(options),
		.container_bytes = 1 << 20,
		.segment_bytes = 256 << 10,
		.inline_max_bytes = 32 << 10};
	struct lac_error err = {0};

	memset(w, 0, sizeof(*w));
	w->random = seed;
	assert_int_equal(lac__sim_new(NULL, &w->be), 0);
	if (lac__store_create_on(w->be, &options, &err) != 0)
		fail_msg("create: %s", err.message);
}

static void make_closed(struct world *w)
{
	struct lac_error err = {0};
	struct lac_store *s;

	create(w);
	s = open_store(w->be, &err);
	assert_non_null(s);
	work(w, s);
	assert_int_equal(lac_store_close(s, &err), 0);
}

/* As a power cut leaves it that spares everything: all that follows the checkpoint is to be redone.
 */
static void make_cut(struct world *w)
{
	struct lac_error err = {0};
	struct lac_backend *after;
	struct lac_store *s;

	create(w);
	s = open_store(w->be, &err);
	assert_non_null(s);
	work(w, s);
	w->when = LAST;
	put_some(w, s, 1, 100);
	assert_int_equal(lac__sim_crash(w->be, LAC__SIM_KEEP_ALL, 0, &after), 0);
	lac_store_close(s, NULL);
	lac__sim_free(w->be);
	w->be = after;
}

/* ---- what check and the store say ---- */

struct said {
	struct lac_check_result result;
	int rc;
	char first[600]; /* damage */
};

static int on_finding(void *arg, const struct lac_finding *f)
{
	struct said *said = arg;

	assert_non_null(f->path);
	assert_string_equal(lac_finding_text(f->id) ? "" : "none", "");
	if (getenv("VERBOSE"))
		print_message("    %s %s %llu: %s\n", lac_finding_name(f->id), f->path,
			(unsigned long long)f->offset, f->text);
	if (f->severity != LAC_SEVERITY_NOTE && !said->first[0])
		snprintf(said->first, sizeof(said->first), "%s %s %llu: %s",
			lac_finding_name(f->id), f->path, (unsigned long long)f->offset, f->text);
	return 0;
}

static struct said run_check(struct lac_backend *be, bool data)
{
	struct said said = {0};
	const struct lac_check_options options = {.size = sizeof(options),
		.data = data,
		.backend = be,
		.finding = on_finding,
		.arg = &said};
	struct lac_error err = {0};
	const uint64_t before = lac__sim_digest(be);

	said.rc = lac_check("store", &options, &said.result, &err);
	if (said.rc < 0)
		snprintf(said.first, sizeof(said.first), "%s", err.message);
	assert_true(lac__sim_digest(be) == before);
	return said;
}

static bool damaged(const struct said *said)
{
	return said->rc < 0 || said->result.damages + said->result.fatals > 0;
}

/* lost_from: blocks of that time and later may be as they were before. NULL when all blocks read as
 * they were put and none else is there, else what is wrong. */
static const char *read_all(
	const struct world *w, struct lac_backend *be, int lost_from, char *what, size_t size)
{
	struct lac_error err = {0};
	struct lac_store *s = open_store(be, &err);
	const char *wrong = NULL;
	uint8_t *buffer;

	if (!s) {
		snprintf(what, size, "%s", err.message);
		return what;
	}
	buffer = malloc(400000);
	assert_non_null(buffer);
	for (unsigned i = 0; i < w->count && !wrong; i++) {
		const struct block *b = &w->blocks[i];
		int64_t n = lac_block_read(s, b->id, buffer, 400000, 0, &err);
		uint8_t *want = content(i, b->length);
		bool right = b->live ? n == (int64_t)b->length && !memcmp(buffer, want, b->length)
				     : n == -ENOENT;

		free(want);
		if (n >= 0 && b->live && !right) /* P4, whatever check says */
			fail_msg("block %llu: wrong bytes (seed %llu)", (unsigned long long)b->id,
				(unsigned long long)seed);
		if (!right && b->when < lost_from) {
			snprintf(what, size, "block %llu: %lld %s", (unsigned long long)b->id,
				(long long)n, err.message);
			wrong = what;
		}
	}
	free(buffer);
	lac_store_close(s, NULL);
	return wrong;
}

struct tally {
	unsigned cases, found, harmless;
};

/* be is damaged, and gone afterwards. lost_from: as in read_all. */
static void judge(const struct world *w, struct lac_backend *be, int lost_from, struct tally *tally,
	const char *name)
{
	struct said said = run_check(be, true);
	char what[600];
	const char *wrong = read_all(w, be, lost_from, what, sizeof(what));

	tally->cases++;
	if (damaged(&said))
		tally->found++;
	else if (!wrong)
		tally->harmless++;
	else
		fail_msg("%s: check is content, but %s (seed %llu)", name, wrong,
			(unsigned long long)seed);
	lac__sim_free(be);
}

/* ---- what is damaged ---- */

struct file_list {
	char path[64][80];
	unsigned count;
	const char *dir;
};

static int take_file(void *arg, const char *name)
{
	struct file_list *list = arg;

	assert_true(list->count < 64);
	snprintf(list->path[list->count++], 80, "%s/%s", list->dir, name);
	return 0;
}

static void list_metadata(struct lac_backend *be, struct file_list *list)
{
	static const char *const dirs[] = {LAC__NAME_JOURNAL, LAC__NAME_INDEX, LAC__NAME_SPACE};

	memset(list, 0, sizeof(*list));
	strcpy(list->path[list->count++], LAC__NAME_SUPER);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		list->dir = dirs[i];
		assert_int_equal(be->ops->list(be, dirs[i], take_file, list), 0);
	}
}

static uint64_t size_of(struct lac_backend *be, const char *path)
{
	struct lac_file_info info;

	assert_int_equal(be->ops->path_info(be, path, &info), 0);
	return info.size_bytes;
}

enum harm {
	HARM_BIT,	/* one bit */
	HARM_ZERO_PAGE, /* a page of zeros */
	HARM_GARBAGE,	/* a sector of garbage */
	HARM_MISPLACED, /* a page of the same file, at another place */
	HARM_KINDS
};

static void do_harm(struct lac_backend *be, const char *path, uint64_t size, uint64_t page,
	enum harm harm, uint64_t *random)
{
	uint8_t bytes[LAC__PAGE_BYTES] = {0};
	uint64_t at = page * LAC__PAGE_BYTES, other;
	size_t n = sizeof(bytes);

	assert_int_equal(lac__sim_peek(be, path, at, bytes, n), 0);
	switch (harm) {
	case HARM_BIT:
		bytes[next_random(random) % n] ^= (uint8_t)(1u << next_random(random) % 8);
		break;
	case HARM_ZERO_PAGE: memset(bytes, 0, n); break;
	case HARM_GARBAGE:
		for (size_t i = next_random(random) % 8 * 512, end = i + 512; i < end; i++)
			bytes[i] = (uint8_t)next_random(random);
		break;
	default:
		other = next_random(random) % (size / LAC__PAGE_BYTES) * LAC__PAGE_BYTES;
		assert_int_equal(lac__sim_peek(be, path, other, bytes, n), 0);
		break;
	}
	assert_int_equal(lac__sim_poke(be, path, at, bytes, n), 0);
}

static bool is_zero(struct lac_backend *be, const char *path, uint64_t page)
{
	uint8_t bytes[LAC__PAGE_BYTES];

	assert_int_equal(lac__sim_peek(be, path, page * LAC__PAGE_BYTES, bytes, sizeof(bytes)), 0);
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, sizeof(bytes) - 1) == 0;
}

/* Pages that hold something, each with each kind of harm; of those that hold nothing, a few. */
static void harm_file(struct world *w, const char *path, struct tally *tally, uint64_t *random)
{
	/* A clean close has sealed the journal. */
	const bool unsealed = w->when == LAST && strncmp(path, LAC__NAME_JOURNAL, 7) == 0;
	const uint64_t size = size_of(w->be, path);
	char name[160];

	for (uint64_t page = 0; page < size / LAC__PAGE_BYTES; page++) {
		const bool zero = is_zero(w->be, path, page);

		for (enum harm harm = 0; harm < HARM_KINDS; harm++) {
			struct lac_backend *be;

			if (next_random(random) % (zero ? 64 : 2))
				continue;
			assert_int_equal(lac__sim_clone(w->be, &be), 0);
			do_harm(be, path, size, page, harm, random);
			snprintf(name, sizeof(name), "%s page %llu harm %d", path,
				(unsigned long long)page, harm);
			judge(w, be,
				!unsealed				   ? LAST + 1
				: harm == HARM_BIT || harm == HARM_GARBAGE ? LAST
									   : LATE,
				tally, name);
		}
	}
}

static void harm_all(struct world *w)
{
	struct tally tally = {0};
	struct file_list list;
	uint64_t random = seed * 77;

	list_metadata(w->be, &list);
	for (unsigned i = 0; i < list.count; i++)
		harm_file(w, list.path[i], &tally, &random);
	print_message("%u cases: %u found by check, %u harmless\n", tally.cases, tally.found,
		tally.harmless);
	assert_true(tally.found > 10 && tally.harmless > 10);
}

/* ---- tests ---- */

static void expect_sound(const struct world *w, struct lac_backend *be)
{
	struct said said = run_check(be, true);
	uint64_t live = 0;

	for (unsigned i = 0; i < w->count; i++)
		live += w->blocks[i].live;
	if (damaged(&said))
		fail_msg("%s (seed %llu)", said.first, (unsigned long long)seed);
	assert_int_equal(said.result.blocks, live);
}

static void sound(void **state)
{
	struct world w;

	make_closed(&w);
	expect_sound(&w, w.be);
	lac__sim_free(w.be);
	make_cut(&w);
	expect_sound(&w, w.be);
	lac__sim_free(w.be);
}

static void closed(void **state)
{
	struct world w;

	make_closed(&w);
	harm_all(&w);
	lac__sim_free(w.be);
}

static void cut(void **state)
{
	struct world w;

	make_cut(&w);
	harm_all(&w);
	lac__sim_free(w.be);
}

/* A missing or a cut file, whichever. */
static void files(void **state)
{
	struct tally tally = {0};
	struct file_list list;
	char name[160];
	struct world w;

	make_closed(&w);
	list_metadata(w.be, &list);
	list.dir = LAC__NAME_DATA;
	assert_int_equal(w.be->ops->list(w.be, LAC__NAME_DATA, take_file, &list), 0);
	for (unsigned i = 0; i < list.count; i++) {
		struct lac_backend *be;
		struct lac_file *file;

		assert_int_equal(lac__sim_clone(w.be, &be), 0);
		assert_int_equal(be->ops->unlink(be, list.path[i]), 0);
		snprintf(name, sizeof(name), "%s missing", list.path[i]);
		judge(&w, be, LAST + 1, &tally, name);
		assert_int_equal(lac__sim_clone(w.be, &be), 0);
		assert_int_equal(lac__open(be, list.path[i], LAC_OPEN_WRITE, &file), 0);
		assert_int_equal(lac__truncate(file, size_of(be, list.path[i]) / 3), 0);
		assert_int_equal(lac__close(file), 0);
		snprintf(name, sizeof(name), "%s cut", list.path[i]);
		judge(&w, be, LAST + 1, &tally, name);
	}
	lac__sim_free(w.be);
}

/* Every byte of a live block counts. */
static void payloads(void **state)
{
	struct lac_error err = {0};
	struct lac_store *s;
	struct world w;

	make_closed(&w);
	for (unsigned i = 0; i < w.count; i += 3) {
		struct lac_block_info info;
		struct lac_backend *be;
		char path[LAC__NAME_BYTES];
		struct said said;
		uint8_t byte;

		if (!w.blocks[i].live || !w.blocks[i].length)
			continue;
		assert_int_equal(lac__sim_clone(w.be, &be), 0);
		s = open_store(be, &err);
		assert_non_null(s);
		assert_int_equal(lac_block_stat(s, w.blocks[i].id, &info, &err), 0);
		assert_int_equal(lac_store_close(s, &err), 0);
		lac__name_container(info.container, path);
		info.offset += next_random(&w.random) % info.length;
		assert_int_equal(lac__sim_peek(be, path, info.offset, &byte, 1), 0);
		byte ^= 1;
		assert_int_equal(lac__sim_poke(be, path, info.offset, &byte, 1), 0);
		said = run_check(be, true);
		assert_int_equal(said.result.damages, 1);
		said = run_check(be, false);
		assert_int_equal(said.result.damages, 0);
		lac__sim_free(be);
	}
	lac__sim_free(w.be);
}

/* Write number n to a file of that prefix goes astray during the last checkpoint; false when there
   are no more. */
static bool stray_write(const char *prefix, unsigned n, enum lac__sim_fault fault, int64_t value)
{
	struct lac_error err = {0};
	struct lac_store *s;
	struct said said;
	struct world w;
	bool hit;

	create(&w);
	s = open_store(w.be, &err);
	assert_non_null(s);
	work(&w, s);
	assert_true(lac__sim_arm(w.be, LAC__SIM_WRITE, prefix, n, false, fault, value));
	assert_int_equal(lac_store_close(s, &err), 0);
	hit = lac__sim_struck(w.be) > 0;
	lac__sim_heal(w.be);
	said = run_check(w.be, false);
	lac__sim_free(w.be);
	if (hit && !damaged(&said))
		fail_msg("%s write %u, fault %d: check is content", prefix, n, fault);
	return hit;
}

/* A page write that the disk acknowledged and lost: no slot is bad, and no record is left to say
   so; only what the pages say of one another. And one that went to another place of the file. */
static void lost_writes(void **state)
{
	static const char *const prefixes[] = {"index/0", "space/0", "space/table"};
	unsigned struck = 0;

	for (size_t p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++) {
		for (unsigned n = 0; stray_write(prefixes[p], n, LAC__SIM_LOST, 0); n++)
			struck++;
		for (unsigned n = 0; stray_write(prefixes[p], n, LAC__SIM_MISDIRECT, 4096); n++)
			struck++;
	}
	print_message("%u writes lost or misdirected, all found\n", struck);
	assert_true(struck > 6);
}

/* ---- power cuts: what a crash may leave is no damage ---- */

struct cuts {
	struct world *w;
	uint64_t random;
	unsigned checked, depth;
};

static void cut_here(void *arg, uint64_t number);

/* Recovery, cut once more now and then, and what it leaves. */
static void recover_and_check(struct cuts *cuts, struct lac_backend *be)
{
	struct cuts again = {.random = next_random(&cuts->random), .depth = cuts->depth + 1};
	struct lac_error err = {0};
	struct lac_store *s;
	struct said said;
	struct world w;

	if (again.depth > 2)
		return;
	w.be = be;
	again.w = &w;
	lac__sim_on_change(be, cut_here, &again);
	s = open_store(be, &err);
	lac__sim_on_change(be, NULL, NULL);
	if (!s)
		fail_msg("open after a cut: %s (seed %llu)", err.message, (unsigned long long)seed);
	if (lac_store_close(s, &err) != 0)
		fail_msg(
			"close after a cut: %s (seed %llu)", err.message, (unsigned long long)seed);
	said = run_check(be, true);
	if (damaged(&said))
		fail_msg("after recovery: %s (seed %llu)", said.first, (unsigned long long)seed);
}

static void cut_here(void *arg, uint64_t number)
{
	static const enum lac__sim_crash_mode modes[] = {
		LAC__SIM_DROP_ALL, LAC__SIM_SEEDED, LAC__SIM_PREFIX, LAC__SIM_KILL};
	struct cuts *cuts = arg;
	struct lac_backend *after;
	struct said said;
	uint64_t how;

	if (next_random(&cuts->random) % (cuts->depth ? 40 : 10))
		return;
	how = next_random(&cuts->random);
	assert_int_equal(lac__sim_crash(cuts->w->be, modes[how % 4], how / 4, &after), 0);
	said = run_check(after, true);
	if (damaged(&said))
		fail_msg("change %llu, mode %d, seed %llu of %llu: %s", (unsigned long long)number,
			modes[how % 4], (unsigned long long)how / 4, (unsigned long long)seed,
			said.first);
	cuts->checked++;
	if (next_random(&cuts->random) % 3 == 0)
		recover_and_check(cuts, after);
	lac__sim_free(after);
}

static void power_cuts(void **state)
{
	struct lac_error err = {0};
	struct lac_store *s;
	struct world w;
	struct cuts cuts = {.w = &w, .random = seed * 31};

	create(&w);
	s = open_store(w.be, &err);
	assert_non_null(s);
	lac__sim_on_change(w.be, cut_here, &cuts);
	work(&w, s);
	assert_int_equal(lac_store_close(s, &err), 0);
	lac__sim_on_change(w.be, NULL, NULL);
	print_message("%u moments checked\n", cuts.checked);
	assert_true(cuts.checked > 20);
	lac__sim_free(w.be);
}

int main(void)
{
	const char *text = getenv("SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sound),
		cmocka_unit_test(closed),
		cmocka_unit_test(cut),
		cmocka_unit_test(files),
		cmocka_unit_test(payloads),
		cmocka_unit_test(lost_writes),
		cmocka_unit_test(power_cuts),
	};

	if (text)
		seed = strtoull(text, NULL, 10);
	if (getenv("ONLY"))
		cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests_name("corrupt", tests, NULL, NULL);
}
