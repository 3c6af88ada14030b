/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/helpers.c - opening and listing, with the one decision that must not be made twice: whether
 * a failed call says something about the store, or about us (P13).
 */
#include "check/checker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool our_fault(int rc)
{
	switch (-rc) {
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case EACCES:
	case EPERM:
	case ECANCELED: return true;
	default: return false;
	}
}

int lac__check_failed(struct lac__checker *c, const char *path, uint64_t offset, int rc)
{
	char reason[80];

	if (our_fault(rc))
		return lac__error_sys(
			c->err, rc, "read %s", path[0] ? path : "the store's directory");
	return lac__report_finding(&c->report, LAC_FINDING_FILE_UNREADABLE, path, offset, "%s",
		strerror_r(-rc, reason, sizeof(reason)));
}

int lac__check_hold(struct lac__checker *c, const char *path, struct lac__held **ret_held,
	uint64_t *ret_size_bytes)
{
	struct lac_file_info info;
	struct lac_file *file;
	struct lac__held *held = NULL;
	int rc;

	*ret_held = NULL;
	*ret_size_bytes = 0;
	rc = lac__files_hold(c->files, path, 0, &held, NULL);
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;
	file = lac__held_file(held);
	rc = file->backend->ops->file_info(file, &info);
	if (rc < 0) {
		lac__files_release(held);
		return rc;
	}
	*ret_size_bytes = info.size_bytes;
	*ret_held = held;
	return 0;
}

bool lac__check_grow(void **at, size_t *room, size_t count, size_t item_bytes)
{
	size_t more;
	void *bigger;

	if (count < *room)
		return true;
	more = *room ? *room * 2 : 16;
	bigger = reallocarray(*at, more, item_bytes);
	if (!bigger)
		return false;
	*at = bigger;
	*room = more;
	return true;
}

static int take_name(void *arg, const char *name)
{
	struct lac__names *names = arg;

	if (!lac__check_grow((void **)&names->at, &names->room, names->count, sizeof(char *)))
		return -ENOMEM;
	names->at[names->count] = strdup(name);
	if (!names->at[names->count])
		return -ENOMEM;
	names->count++;
	return 0;
}

static int name_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int lac__check_list(struct lac__checker *c, const char *path, struct lac__names *ret)
{
	int rc;

	*ret = (struct lac__names){0};
	rc = c->be->ops->list(c->be, path, take_name, ret);
	if (rc != 0) {
		lac__names_free(ret);
		ret->unknown = rc != -ENOENT && rc != -ENOTDIR;
		return ret->unknown ? lac__check_failed(c, path, 0, rc) : 0;
	}
	if (ret->count)
		qsort(ret->at, ret->count, sizeof(char *), name_compare);
	return 0;
}

void lac__names_free(struct lac__names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->at[i]);
	free(names->at);
	*names = (struct lac__names){0};
}

bool lac__check_name_parse(const char *name, const char *suffix, uint32_t *ret_number)
{
	uint32_t number = 0;

	for (int i = 0; i < 8; i++) {
		char ch = name[i];

		if (ch >= '0' && ch <= '9')
			number = number << 4 | (uint32_t)(ch - '0');
		else if (ch >= 'a' && ch <= 'f')
			number = number << 4 | (uint32_t)(ch - 'a' + 10);
		else
			return false;
	}
	*ret_number = number;
	return strcmp(name + 8, suffix) == 0;
}

int lac__check_extra(struct lac__checker *c, const char *dir, const char *name, const char *why)
{
	char path[LAC__CHECK_PATH_BYTES];

	snprintf(path, sizeof(path), "%s%s%s", dir, dir[0] ? "/" : "", name);
	return lac__report_finding(&c->report, LAC_FINDING_FILE_EXTRA, path, 0, "%s", why);
}

int lac__page_ranges_add(struct lac__page_ranges *ranges, uint64_t no, uint64_t count)
{
	if (!lac__check_grow((void **)&ranges->at, &ranges->room, ranges->count,
		    sizeof(struct lac__page_range)))
		return -ENOMEM;
	ranges->at[ranges->count++] = (struct lac__page_range){.no = no, .count = count};
	return 0;
}

bool lac__page_ranges_has(const struct lac__page_ranges *ranges, uint64_t no)
{
	size_t low = 0, high = ranges->count;

	/* The last range that begins at or below no. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->at[middle].no <= no)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && no - ranges->at[low - 1].no < ranges->at[low - 1].count;
}
