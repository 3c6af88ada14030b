/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/superblock.c - phase 1: both copies, and what stands in the store's directory.
 *
 * A copy that can't be read may be the current one, so the older one proves nothing then: such a
 * check says so and ends. A copy that was read and does not verify is another matter: the store
 * would open by the other one, and so do we.
 */
#include "check/checker.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum copy_state {
	COPY_OK,
	COPY_BAD,
	COPY_NEWER,
	COPY_UNREADABLE,
};

struct copy {
	enum copy_state state;
	struct lac__super super;
	struct lac_error why;
};

static int read_copy(struct lac__checker *c, struct lac__held *held, uint32_t n, struct copy *ret)
{
	const uint64_t offset = (uint64_t)n * LAC__SLOT_STRIDE_BYTES;
	uint8_t page[LAC__PAGE_BYTES] = {0};
	ssize_t got;
	int rc;

	ret->state = COPY_UNREADABLE;
	got = lac__read_up_to(lac__held_file(held), page, sizeof(page), offset);
	if (got < 0)
		return lac__check_failed(c, LAC__NAME_SUPER, offset, (int)got);
	rc = lac__super_decode(page, n, &ret->super, &ret->why);
	if (rc == 0)
		ret->state = COPY_OK;
	else if (rc == -EOPNOTSUPP)
		ret->state = COPY_NEWER;
	else
		ret->state = COPY_BAD;
	return lac__report_progress(&c->report, 1, sizeof(page));
}

static int report_copy(
	struct lac__checker *c, enum lac_finding_id id, uint32_t n, const struct lac_error *why)
{
	return lac__report_finding(&c->report, id, LAC__NAME_SUPER,
		(uint64_t)n * LAC__SLOT_STRIDE_BYTES, "copy %" PRIu32 ": %s", n, why->message);
}

/* One copy is good; says what is wrong with the other. */
static int judge_other(struct lac__checker *c, uint32_t n, const struct copy *other)
{
	if (other->state == COPY_BAD)
		return report_copy(c, LAC_FINDING_SUPER_COPY_BAD, n, &other->why);
	if (other->state == COPY_OK &&
		(memcmp(&other->super.uuid, &c->super.uuid, sizeof(c->super.uuid)) != 0 ||
			other->super.granule_bytes != c->super.granule_bytes))
		return lac__report_finding(&c->report, LAC_FINDING_SUPER_MISMATCH, LAC__NAME_SUPER,
			(uint64_t)n * LAC__SLOT_STRIDE_BYTES,
			"copy %" PRIu32 " of checkpoint %" PRIu64 " against checkpoint %" PRIu64, n,
			other->super.checkpoint, c->super.checkpoint);
	return 0;
}

static int choose(struct lac__checker *c, const struct copy copies[LAC__SUPER_COPIES])
{
	uint32_t best;

	for (uint32_t n = 0; n < LAC__SUPER_COPIES; n++) {
		if (copies[n].state == COPY_NEWER) {
			c->hopeless = true;
			return report_copy(c, LAC_FINDING_SUPER_FORMAT, n, &copies[n].why);
		}
	}
	if (copies[0].state == COPY_UNREADABLE || copies[1].state == COPY_UNREADABLE) {
		c->hopeless = true;
		return 0;
	}
	best = copies[0].state == COPY_OK ? 0 : 1;
	if (copies[best].state != COPY_OK) {
		c->hopeless = true;
		return report_copy(c, LAC_FINDING_SUPER_LOST, 0, &copies[0].why);
	}
	if (best == 0 && copies[1].state == COPY_OK &&
		copies[1].super.checkpoint > copies[0].super.checkpoint)
		best = 1;
	c->super = copies[best].super;
	return judge_other(c, 1 - best, &copies[1 - best]);
}

static int check_copies(struct lac__checker *c, bool store_likely)
{
	struct copy copies[LAC__SUPER_COPIES] = {0};
	struct lac__held *held;
	uint64_t size;
	int rc = lac__check_hold(c, LAC__NAME_SUPER, &held, &size);

	if (rc < 0) {
		c->hopeless = true;
		return lac__check_failed(c, LAC__NAME_SUPER, 0, rc);
	}
	if (!held && !store_likely)
		return lac__error_set(c->err, -ENOENT, LAC_REASON_NOT_A_STORE, 0, 0,
			"read " LAC__NAME_SUPER ": there is none, and no directory of a store");
	if (!held) {
		c->hopeless = true;
		return lac__report_finding(&c->report, LAC_FINDING_SUPER_LOST, LAC__NAME_SUPER, 0,
			"the file is missing");
	}
	if (size < LAC__SUPER_FILE_BYTES)
		rc = lac__report_finding(&c->report, LAC_FINDING_FILE_SHORT, LAC__NAME_SUPER, size,
			"%" PRIu64 " bytes, want %" PRIu64, size, LAC__SUPER_FILE_BYTES);
	for (uint32_t n = 0; n < LAC__SUPER_COPIES && rc == 0; n++)
		rc = read_copy(c, held, n, &copies[n]);
	lac__files_release(held);
	return rc < 0 ? rc : choose(c, copies);
}

static int check_dir(struct lac__checker *c, const char *path, bool *ret_missing)
{
	struct lac_file_info info;
	int rc = c->be->ops->path_info(c->be, path, &info);

	*ret_missing = rc < 0 || (info.mode & S_IFMT) != S_IFDIR;
	if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR)
		return lac__check_failed(c, path, 0, rc);
	return 0;
}

static int report_dirs(struct lac__checker *c)
{
	const struct {
		const char *path;
		bool missing;
	} dirs[] = {
		{LAC__NAME_JOURNAL, c->journal_missing},
		{LAC__NAME_INDEX, c->index_missing},
		{LAC__NAME_SPACE, c->space_missing},
		{LAC__NAME_DATA, c->data_missing},
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && rc == 0; i++) {
		if (dirs[i].missing)
			rc = lac__report_finding(&c->report, LAC_FINDING_FILE_MISSING, dirs[i].path,
				0, "no such directory");
	}
	return rc;
}

static int check_names(struct lac__checker *c)
{
	static const char *const known[] = {LAC__NAME_SUPER, LAC__NAME_JOURNAL, LAC__NAME_INDEX,
		LAC__NAME_SPACE, LAC__NAME_DATA, LAC__NAME_QUARANTINE, "lock"};
	struct lac__names names;
	int rc = lac__check_list(c, "", &names);

	for (size_t i = 0; i < names.count && rc == 0; i++) {
		bool expected = false;

		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]) && !expected; k++)
			expected = strcmp(names.at[i], known[k]) == 0;
		if (!expected)
			rc = lac__check_extra(c, "", names.at[i], "not of a store");
	}
	lac__names_free(&names);
	return rc;
}

/* "0123456789abcdef.seg" */
static bool is_segment_name(const char *name)
{
	return strspn(name, "0123456789abcdef") == 16 && strcmp(name + 16, ".seg") == 0;
}

static bool is_index_name(const char *name)
{
	uint32_t number;

	return strcmp(name, "retired") == 0 || lac__check_name_parse(name, ".idx", &number);
}

static int check_dir_names(
	struct lac__checker *c, const char *dir, bool (*expected)(const char *name))
{
	struct lac__names names;
	int rc = lac__check_list(c, dir, &names);

	for (size_t i = 0; i < names.count && rc == 0; i++) {
		if (!expected(names.at[i]))
			rc = lac__check_extra(c, dir, names.at[i], "left over, or not of a store");
	}
	lac__names_free(&names);
	return rc;
}

int lac__check_superblock(struct lac__checker *c)
{
	int rc = lac__report_begin(&c->report, 1, "superblock and files", LAC__SUPER_COPIES);

	if (rc == 0)
		rc = check_dir(c, LAC__NAME_JOURNAL, &c->journal_missing);
	if (rc == 0)
		rc = check_dir(c, LAC__NAME_INDEX, &c->index_missing);
	if (rc == 0)
		rc = check_dir(c, LAC__NAME_SPACE, &c->space_missing);
	if (rc == 0)
		rc = check_dir(c, LAC__NAME_DATA, &c->data_missing);
	if (rc == 0)
		rc = check_copies(c, !c->journal_missing || !c->index_missing ||
					     !c->space_missing || !c->data_missing);
	if (rc == 0)
		rc = report_dirs(c);
	if (rc == 0)
		rc = check_names(c);
	if (rc == 0)
		rc = check_dir_names(c, LAC__NAME_JOURNAL, is_segment_name);
	if (rc == 0)
		rc = check_dir_names(c, LAC__NAME_INDEX, is_index_name);
	c->high_water = c->super.id_high_water;
	c->next_container = c->super.next_container;
	return rc < 0 ? rc : lac__report_end(&c->report);
}
