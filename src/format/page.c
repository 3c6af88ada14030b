/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/page.c - slots of metadata pages: where they stand, what proves one, which of two counts.
 *
 * The choice of the base slot (rule 4.5) lives here and nowhere else: opening and check must
 * never disagree on it.
 */
#include "format/page.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/checked.h"
#include "format/internal.h"
#include "format/limits.h"

#define MAGIC UINT32_C(0x5043414c) /* "LACP" */

struct disk_page {
	lac_le32 magic;			    /* 0..4 */
	lac_le32 crc;			    /* 4..8, of the page with this field as zero */
	lac_le16 kind;			    /* 8..10 */
	lac_le16 version;		    /* 10..12 */
	lac_le32 container;		    /* 12..16 */
	lac_le64 no;			    /* 16..24 */
	struct lac__uuid uuid;		    /* 24..40 */
	lac_le64 lsn;			    /* 40..48 */
	lac_le64 checkpoint;		    /* 48..56 */
	lac_le64 reserved;		    /* 56..64 */
	uint8_t body[LAC__PAGE_BODY_BYTES]; /* 64..4096 */
};
_Static_assert(sizeof(struct disk_page) == LAC__PAGE_BYTES, "a page is a page");
_Static_assert(offsetof(struct disk_page, crc) == 4, "checksum of a page");
_Static_assert(offsetof(struct disk_page, lsn) == 40, "layout of a page header");
_Static_assert(offsetof(struct disk_page, body) == LAC__PAGE_HEADER_BYTES, "body of a page");

/* Sixteen pages' slots 0, a stride apart from their slots 1, make a group. */
#define GROUP_PAGES (LAC__SLOT_STRIDE_BYTES / LAC__PAGE_BYTES)
#define GROUP_BYTES (2 * (uint64_t)LAC__SLOT_STRIDE_BYTES)

uint64_t lac__page_slot_offset(uint64_t page_in_file, unsigned slot)
{
	assert(slot < 2);
	return page_in_file / GROUP_PAGES * GROUP_BYTES + slot * (uint64_t)LAC__SLOT_STRIDE_BYTES +
	       page_in_file % GROUP_PAGES * LAC__PAGE_BYTES;
}

uint64_t lac__page_file_bytes(uint64_t pages)
{
	return (pages / GROUP_PAGES + (pages % GROUP_PAGES != 0)) * GROUP_BYTES;
}

void lac__page_encode(const struct lac__page *page, const struct lac__uuid *uuid,
	uint64_t checkpoint, void *ret_bytes)
{
	struct disk_page *d = ret_bytes;

	d->magic = lac__put32(MAGIC);
	d->kind = lac__put16((uint16_t)page->ref.kind);
	d->version = lac__put16(LAC__FORMAT_VERSION);
	d->container = lac__put32(page->ref.container);
	d->no = lac__put64(page->ref.no);
	d->uuid = *uuid;
	d->lsn = lac__put64(page->lsn);
	d->checkpoint = lac__put64(checkpoint);
	d->reserved = lac__put64(0);
	memcpy(d->body, page->body, sizeof(d->body));
	d->crc = lac__put32(lac__disk_page_crc(d, offsetof(struct disk_page, crc)));
}

static int check_proof(const struct disk_page *d, struct lac_error *err)
{
	uint32_t got, want = lac__get32(d->crc);

	if (lac__get32(d->magic) != MAGIC)
		return lac__error_set(err, -EBADMSG, LAC_REASON_BAD_MAGIC, 0, LAC__PAGE_BYTES,
			"magic %08" PRIx32 ", want %08" PRIx32, lac__get32(d->magic), MAGIC);
	got = lac__disk_page_crc(d, offsetof(struct disk_page, crc));
	if (got != want)
		return lac__error_set(err, -EBADMSG, LAC_REASON_BAD_CHECKSUM, 0, LAC__PAGE_BYTES,
			"crc32c %08" PRIx32 ", want %08" PRIx32, got, want);
	if (lac__get16(d->version) != LAC__FORMAT_VERSION)
		return lac__error_set(err, -EOPNOTSUPP, LAC_REASON_FORMAT_UNKNOWN, 0,
			LAC__PAGE_BYTES, "page version %u, want %u", lac__get16(d->version),
			LAC__FORMAT_VERSION);
	return 0;
}

static int check_identity(const struct disk_page *d, const struct lac__page_ref *ref,
	const struct lac__uuid *uuid, struct lac_error *err)
{
	if (!lac__uuid_equal(&d->uuid, uuid))
		return LAC__BAD_IDENTITY(err, "page of another store");
	if (lac__get16(d->kind) != ref->kind || lac__get32(d->container) != ref->container ||
		lac__get64(d->no) != ref->no)
		return LAC__BAD_IDENTITY(err,
			"page of kind %u, container %" PRIu32 ", number %" PRIu64 ", want %" PRIu32
			", %" PRIu32 ", %" PRIu64,
			lac__get16(d->kind), lac__get32(d->container), lac__get64(d->no), ref->kind,
			ref->container, ref->no);
	if (lac__get64(d->lsn) < 1 || lac__get64(d->lsn) >= LAC__LSN_LIMIT)
		return LAC__BAD_FIELD(err, "page lsn %" PRIu64, lac__get64(d->lsn));
	if (lac__get64(d->checkpoint) < 1 || lac__get64(d->checkpoint) >= LAC__CHECKPOINT_LIMIT)
		return LAC__BAD_FIELD(err, "page checkpoint %" PRIu64, lac__get64(d->checkpoint));
	if (lac__get64(d->reserved) != 0)
		return LAC__BAD_FIELD(err, "reserved bytes are not zero");
	return 0;
}

static void page_load(const struct disk_page *d, struct lac__page *ret_page)
{
	ret_page->ref = (struct lac__page_ref){
		lac__get16(d->kind), lac__get32(d->container), lac__get64(d->no)};
	ret_page->lsn = lac__get64(d->lsn);
	ret_page->checkpoint = lac__get64(d->checkpoint);
	memcpy(ret_page->body, d->body, sizeof(d->body));
}

int lac__page_decode(const void *bytes, const struct lac__page_ref *ref,
	const struct lac__uuid *uuid, struct lac__page *ret_page, struct lac_error *err)
{
	const struct disk_page *d = bytes;
	int rc;

	if (lac__disk_is_zero(bytes, LAC__PAGE_BYTES))
		return 1;
	rc = check_proof(d, err);
	if (rc == 0)
		rc = check_identity(d, ref, uuid, err);
	if (rc == 0)
		page_load(d, ret_page);
	return rc;
}

static void slot_judge(const struct disk_page *d, const struct lac__page_ref *ref,
	const struct lac__uuid *uuid, unsigned slot, struct lac__slot_choice *choice)
{
	choice->checkpoint[slot] = choice->lsn[slot] = 0;
	if (lac__disk_is_zero(d, LAC__PAGE_BYTES)) {
		choice->state[slot] = LAC__SLOT_ZERO;
		return;
	}
	if (check_proof(d, NULL) < 0 || check_identity(d, ref, uuid, NULL) < 0) {
		choice->state[slot] = LAC__SLOT_BAD;
		return;
	}
	choice->state[slot] = LAC__SLOT_OK;
	choice->checkpoint[slot] = lac__get64(d->checkpoint);
	choice->lsn[slot] = lac__get64(d->lsn);
}

/* True when slot is valid and not of the future. */
static bool slot_counts(const struct lac__slot_choice *choice, unsigned slot, uint64_t checkpoint)
{
	return choice->state[slot] == LAC__SLOT_OK && choice->checkpoint[slot] <= checkpoint;
}

void lac__page_choose(const void *slot0, const void *slot1, const struct lac__page_ref *ref,
	const struct lac__uuid *uuid, uint64_t super_checkpoint, struct lac__page *ret_page,
	struct lac__slot_choice *ret_choice)
{
	struct lac__slot_choice *c = ret_choice;

	slot_judge(slot0, ref, uuid, 0, c);
	slot_judge(slot1, ref, uuid, 1, c);
	c->base = slot_counts(c, 0, super_checkpoint) ? 0 : -1;
	if (slot_counts(c, 1, super_checkpoint) &&
		(c->base < 0 || c->checkpoint[1] > c->checkpoint[0]))
		c->base = 1;
	c->write = c->base == 0 ? 1 : 0;
	c->lost = c->base < 0 && (c->state[0] == LAC__SLOT_BAD || c->state[1] == LAC__SLOT_BAD);
	if (c->base >= 0) {
		page_load(c->base == 0 ? slot0 : slot1, ret_page);
		return;
	}
	memset(ret_page, 0, sizeof(*ret_page));
	ret_page->ref = *ref;
}
