/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/containers.c - phase 3: the container table as redo leaves it, and the files it names.
 *
 * Only ACTIVE and SEALED containers must have their files: in all other states recovery creates or
 * unlinks them (rule 4.17). A file may be shorter than the container's tail, because a dead tail
 * is truncated; that it holds its live blocks is for the index to say.
 */
#include "check/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool has_files(const struct lac__check_container *container)
{
	return container->unknown || container->entry.state == LAC__CONTAINER_ACTIVE ||
	       container->entry.state == LAC__CONTAINER_SEALED;
}

struct lac__check_container *lac__check_container_find(
	struct lac__checker *c, uint32_t id, bool *ret_unknown)
{
	size_t low = 0, high = c->container_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->containers[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_unknown = lac__page_ranges_has(&c->table_unknown, id / LAC__TABLE_ENTRIES);
	return low < c->container_count && c->containers[low].id == id ? &c->containers[low] : NULL;
}

static int table_wrong(
	struct lac__checker *c, const struct lac__page_view *view, unsigned slot, const char *what)
{
	return lac__report_finding(&c->report, LAC_FINDING_TABLE_WRONG, view->path,
		view->offset + LAC__PAGE_HEADER_BYTES +
			slot * (LAC__PAGE_BODY_BYTES / LAC__TABLE_ENTRIES),
		"container %" PRIu64 ": %s", view->no * LAC__TABLE_ENTRIES + slot, what);
}

static int take_entry(struct lac__checker *c, const struct lac__page_view *view, unsigned slot)
{
	const uint64_t id = view->no * LAC__TABLE_ENTRIES + slot;
	struct lac__check_container container = {.id = (uint32_t)id};
	struct lac_error why = {0};
	int rc;

	rc = lac__table_get(view->page, slot, &container.entry, &why);
	if (rc < 0) {
		container.unknown = true;
		rc = table_wrong(c, view, slot, why.message);
	} else if (container.entry.state == LAC__CONTAINER_NONE) {
		return 0;
	} else if (id == 0 || id >= c->next_container) {
		rc = table_wrong(c, view, slot, "such an id was never given out");
	}
	if (rc < 0)
		return rc;
	if (!lac__check_grow((void **)&c->containers, &c->container_room, c->container_count,
		    sizeof(*c->containers)))
		return lac__error_nomem(c->err);
	c->containers[c->container_count++] = container;
	return lac__report_progress(&c->report, 1, 0);
}

static int take_table_page(struct lac__checker *c, void *arg, const struct lac__page_view *view)
{
	int rc = 0;

	if (view->no > UINT32_MAX / LAC__TABLE_ENTRIES)
		return 0; /* no container has such an id */
	if (!view->page) {
		rc = lac__page_ranges_add(&c->table_unknown, view->no, view->count);
		return rc < 0 ? lac__error_nomem(c->err) : 0;
	}
	for (unsigned slot = 0; slot < LAC__TABLE_ENTRIES && rc == 0; slot++)
		rc = take_entry(c, view, slot);
	return rc;
}

static int check_header(struct lac__checker *c, const struct lac__check_container *container,
	const char *path, const uint8_t *page)
{
	const struct lac__container_header expect = {
		.uuid = c->super.uuid,
		.container = container->id,
		.kind = container->entry.kind,
		.granule_bytes = c->super.granule_bytes,
		.birth_lsn = container->entry.birth_lsn,
	};
	struct lac__container_header header;
	struct lac_error why = {0};

	if (lac__container_header_decode(page, &expect, &header, &why) < 0)
		return lac__report_finding(
			&c->report, LAC_FINDING_CONTAINER_HEADER, path, 0, "%s", why.message);
	if (header.birth_lsn != expect.birth_lsn)
		return lac__report_finding(&c->report, LAC_FINDING_CONTAINER_HEADER, path, 0,
			"birth lsn %" PRIu64 ", want %" PRIu64, header.birth_lsn, expect.birth_lsn);
	return 0;
}

static int check_file(struct lac__checker *c, struct lac__check_container *container)
{
	uint8_t page[LAC__PAGE_BYTES];
	char path[LAC__NAME_BYTES];
	struct lac__held *held;
	uint64_t size;
	int rc;

	container->file_bytes = UINT64_MAX;
	if (c->data_missing)
		return 0;
	lac__name_container(container->id, path);
	rc = lac__check_hold(c, path, &held, &size);
	if (rc < 0)
		return lac__check_failed(c, path, 0, rc);
	if (!held)
		return lac__report_finding(&c->report, LAC_FINDING_FILE_MISSING, path, 0,
			"container %" PRIu32, container->id);
	container->file_bytes = size;
	rc = lac__read_full(lac__held_file(held), page, sizeof(page), 0);
	lac__files_release(held);
	if (rc == -ENODATA)
		return lac__report_finding(&c->report, LAC_FINDING_FILE_SHORT, path, size,
			"the header needs %u bytes", LAC__PAGE_BYTES);
	if (rc < 0)
		return lac__check_failed(c, path, 0, rc);
	rc = check_header(c, container, path, page);
	return rc < 0 ? rc : lac__report_progress(&c->report, 0, sizeof(page));
}

/* A map that recovery is about to write has no file yet. */
static int check_map_file(struct lac__checker *c, struct lac__check_container *container)
{
	const struct lac__page_ref ref = {.kind = LAC__PAGE_MAP, .container = container->id};
	struct lac_file_info info;
	char path[LAC__NAME_BYTES];
	uint64_t no;
	int rc;

	if (c->space_missing || lac__overlay_find(&c->overlay, &ref))
		return 0;
	lac__name_page(&ref, path, &no);
	rc = c->be->ops->path_info(c->be, path, &info);
	if (rc != -ENOENT)
		return rc < 0 ? lac__check_failed(c, path, 0, rc) : 0;
	container->map_missing = true;
	return lac__report_finding(&c->report, LAC_FINDING_FILE_MISSING, path, 0,
		"space map of container %" PRIu32, container->id);
}

static int check_files(struct lac__checker *c)
{
	int rc = 0;

	for (size_t i = 0; i < c->container_count && rc == 0; i++) {
		struct lac__check_container *container = &c->containers[i];

		if (container->unknown || !has_files(container))
			continue;
		rc = check_file(c, container);
		if (rc == 0)
			rc = check_map_file(c, container);
	}
	return rc;
}

/* Files of a directory that are named after containers, with suffix, or are called other. */
static int check_extra_files(
	struct lac__checker *c, const char *dir, const char *suffix, const char *other)
{
	struct lac__names names;
	bool unknown;
	uint32_t id;
	int rc = lac__check_list(c, dir, &names);

	for (size_t i = 0; i < names.count && rc == 0; i++) {
		const struct lac__check_container *container;

		if (other && strcmp(names.at[i], other) == 0)
			continue;
		if (!lac__check_name_parse(names.at[i], suffix, &id)) {
			rc = lac__check_extra(c, dir, names.at[i], "left over, or not of a store");
			continue;
		}
		container = lac__check_container_find(c, id, &unknown);
		if (!unknown && (!container || !has_files(container)))
			rc = lac__check_extra(c, dir, names.at[i], "no such container");
	}
	lac__names_free(&names);
	return rc;
}

int lac__check_containers(struct lac__checker *c)
{
	int rc = lac__report_begin(&c->report, 3, "containers", 0);

	if (rc == 0)
		rc = lac__check_pages_visit(c, LAC__PAGE_TABLE, 0, take_table_page, NULL);
	if (rc == 0)
		rc = check_files(c);
	if (rc == 0)
		rc = check_extra_files(c, LAC__NAME_DATA, ".lac", NULL);
	if (rc == 0)
		rc = check_extra_files(c, LAC__NAME_SPACE, ".map", "table");
	return rc < 0 ? rc : lac__report_end(&c->report);
}
