/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/container.c - the header of a container file: enough to know, with nothing else left of a
 * store, whose container this is and how its blocks are laid out.
 */
#include "format/container.h"

#include <errno.h>
#include <inttypes.h>

#include "base/checked.h"
#include "format/internal.h"
#include "format/limits.h"

#define MAGIC "LACCONT1"

struct disk_container {
	struct lac__disk_prefix prefix;		 /* 0..32 */
	lac_le32 container;			 /* 32..36 */
	lac_le32 kind;				 /* 36..40 */
	lac_le32 granule_bytes;			 /* 40..44 */
	lac_le32 reserved1;			 /* 44..48 */
	lac_le64 birth_lsn;			 /* 48..56 */
	uint8_t reserved2[LAC__PAGE_BYTES - 56]; /* 56..4096 */
};
_Static_assert(sizeof(struct disk_container) == LAC__PAGE_BYTES, "a container header is a page");
_Static_assert(offsetof(struct disk_container, birth_lsn) == 48, "layout of a container header");

void lac__container_header_encode(const struct lac__container_header *h, void *ret_page)
{
	struct disk_container *d = ret_page;

	memset(d, 0, sizeof(*d));
	d->container = lac__put32(h->container);
	d->kind = lac__put32(h->kind);
	d->granule_bytes = lac__put32(h->granule_bytes);
	d->birth_lsn = lac__put64(h->birth_lsn);
	lac__disk_seal(d, MAGIC, &h->uuid);
}

static int check_fields(const struct disk_container *d, const struct lac__container_header *h,
	struct lac_error *err)
{
	if (h->container == 0)
		return LAC__BAD_FIELD(err, "container 0");
	if (h->kind != LAC__CONTAINER_ALIGNED && h->kind != LAC__CONTAINER_PACKED)
		return LAC__BAD_FIELD(err, "container kind %" PRIu32, h->kind);
	if (!lac__is_power_of_two(h->granule_bytes) || h->granule_bytes < LAC__GRANULE_MIN_BYTES ||
		h->granule_bytes > LAC__GRANULE_MAX_BYTES)
		return LAC__BAD_FIELD(err, "granule of %" PRIu32 " bytes", h->granule_bytes);
	if (h->birth_lsn < 1 || h->birth_lsn >= LAC__LSN_LIMIT)
		return LAC__BAD_FIELD(err, "birth lsn %" PRIu64, h->birth_lsn);
	if (lac__get32(d->reserved1) != 0 || !lac__disk_is_zero(d->reserved2, sizeof(d->reserved2)))
		return LAC__BAD_FIELD(err, "reserved bytes are not zero");
	return 0;
}

static int check_identity(const struct lac__container_header *h,
	const struct lac__container_header *expect, struct lac_error *err)
{
	if (!lac__uuid_equal(&h->uuid, &expect->uuid))
		return LAC__BAD_IDENTITY(err, "container of another store");
	if (h->container != expect->container)
		return LAC__BAD_IDENTITY(err, "container %" PRIu32 ", want %" PRIu32, h->container,
			expect->container);
	if (h->kind != expect->kind)
		return LAC__BAD_IDENTITY(
			err, "container kind %" PRIu32 ", want %" PRIu32, h->kind, expect->kind);
	if (h->granule_bytes != expect->granule_bytes)
		return LAC__BAD_IDENTITY(err, "granule of %" PRIu32 " bytes, want %" PRIu32,
			h->granule_bytes, expect->granule_bytes);
	return 0;
}

int lac__container_header_decode(const void *page, const struct lac__container_header *expect,
	struct lac__container_header *ret, struct lac_error *err)
{
	const struct disk_container *d = page;
	struct lac__container_header h;
	int rc;

	rc = lac__disk_verify(page, MAGIC, err);
	if (rc < 0)
		return rc;
	h.uuid = d->prefix.uuid;
	h.container = lac__get32(d->container);
	h.kind = lac__get32(d->kind);
	h.granule_bytes = lac__get32(d->granule_bytes);
	h.birth_lsn = lac__get64(d->birth_lsn);
	rc = check_fields(d, &h, err);
	if (rc == 0 && expect)
		rc = check_identity(&h, expect, err);
	if (rc == 0)
		*ret = h;
	return rc;
}
