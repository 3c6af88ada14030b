/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/payload.c - a live block's bytes in its container: does its description name it, and do its
 * payload's bytes have the checksum that the index has?
 *
 * A payload is read in pieces of whole chunks, its chunk table along with it, so that the length
 * of a block costs time and no memory. Zeros where bytes should be are worth a word of their own:
 * that is what a hole under a live block, or a write that never came, looks like.
 */
#include "check/checker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "format/block.h"

#define PIECE_CHUNKS 4u
#define PIECE_BYTES  ((size_t)PIECE_CHUNKS * LAC__CHUNK_BYTES)

struct reading {
	struct lac__checker *c;
	struct lac__held *held;
	char path[LAC__NAME_BYTES];
	uint64_t id;
	uint32_t container;
	const struct lac__entry *entry;
	uint8_t *bytes;	 /* PIECE_BYTES */
	bool unreadable; /* reported: nothing more can be said of this block */
};

static bool all_zero(const uint8_t *bytes, size_t length)
{
	return length > 0 && bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static int read_at(struct reading *r, void *bytes, size_t length, uint64_t offset)
{
	int rc = lac__read_full(lac__held_file(r->held), bytes, length, offset);

	if (rc == 0)
		return lac__report_progress(&r->c->report, 0, length);
	r->unreadable = true;
	return lac__check_failed(r->c, r->path, offset, rc);
}

/* ---- description ---- */

static int description_wrong(struct reading *r, uint64_t offset, const char *why)
{
	return lac__report_finding(&r->c->report, LAC_FINDING_BLOCK_DESCRIPTION, r->path, offset,
		"block %" PRIu64 ": %s", r->id, why);
}

static bool describes(const struct reading *r, const struct lac__description *d)
{
	const struct lac__entry *e = r->entry;

	return d->id == r->id && d->owner == e->owner && d->length == e->length &&
	       d->offset == e->offset && d->checksum == e->checksum;
}

static int check_packed_description(struct reading *r)
{
	const uint64_t offset = r->entry->offset - LAC__DESCRIPTION_BYTES;
	struct lac__description d;
	struct lac_error why = {0};
	int rc = read_at(r, r->bytes, LAC__DESCRIPTION_BYTES, offset);

	if (rc < 0 || r->unreadable)
		return rc;
	if (lac__description_decode(r->bytes, r->container, offset, &r->c->super.uuid, &d, &why) <
		0)
		return description_wrong(r, offset, why.message);
	return describes(r, &d) ? 0 : description_wrong(r, offset, "it contradicts the index");
}

/* Which of its granule's descriptions is the block's only the description itself says. */
static int check_aligned_description(struct reading *r)
{
	const uint32_t granule = r->c->super.granule_bytes;
	const uint64_t start = r->entry->offset - (uint64_t)r->entry->distance * granule;
	struct lac__description d;
	bool contradicts = false;
	int rc = read_at(r, r->bytes, granule, start);

	if (rc < 0 || r->unreadable)
		return rc;
	for (uint32_t at = 0; at < granule; at += LAC__DESCRIPTION_BYTES) {
		if (lac__description_decode(r->bytes + at, r->container, start + at,
			    &r->c->super.uuid, &d, NULL) < 0)
			continue;
		if (describes(r, &d))
			return 0;
		contradicts = contradicts || d.id == r->id;
	}
	return description_wrong(r, start,
		contradicts ? "it contradicts the index" : "none in the granule verifies");
}

/* ---- payload ---- */

static int payload_wrong(struct reading *r, uint64_t offset, const char *what, bool zeros)
{
	return lac__report_finding(&r->c->report, LAC_FINDING_BLOCK_PAYLOAD, r->path, offset,
		"block %" PRIu64 ": %s, length %" PRIu64 ": checksum%s", r->id, what,
		r->entry->length, zeros ? ", all bytes are zeros" : "");
}

static int check_short_payload(struct reading *r, uint32_t seed)
{
	const struct lac__entry *e = r->entry;
	const size_t length = (size_t)e->length;
	int rc = read_at(r, r->bytes, length, e->offset);

	if (rc < 0 || r->unreadable ||
		lac__block_checksum(seed, length, r->bytes, length) == e->checksum)
		return rc;
	return payload_wrong(r, e->offset, "payload", all_zero(r->bytes, length));
}

/* The block checksum is that of the table; it is chained over pieces of the table. */
static int check_table(struct reading *r, uint32_t seed, bool *ret_good)
{
	const struct lac__entry *e = r->entry;
	uint64_t at = e->offset + lac__chunk_table_offset(e->length);
	uint64_t left = lac__chunk_table_bytes(e->length);
	uint32_t crc = lac__block_checksum(seed, e->length, "", 0);
	const uint64_t table_at = at;
	bool zeros = true;

	*ret_good = false;
	while (left) {
		size_t piece = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
		int rc = read_at(r, r->bytes, piece, at);

		if (rc < 0 || r->unreadable)
			return rc;
		zeros = zeros && all_zero(r->bytes, piece);
		crc = lac__crc32c(crc, r->bytes, piece);
		at += piece;
		left -= piece;
	}
	*ret_good = crc == e->checksum;
	return *ret_good ? 0 : payload_wrong(r, table_at, "chunk table", zeros);
}

/* Chunks [first, first + PIECE_CHUNKS); the first bad one is reported. */
static int check_chunks(struct reading *r, uint32_t seed, uint64_t first, bool *ret_good)
{
	const struct lac__entry *e = r->entry;
	const uint64_t at = first * LAC__CHUNK_BYTES;
	const size_t length = e->length - at < PIECE_BYTES ? (size_t)(e->length - at) : PIECE_BYTES;
	const uint64_t table_at = e->offset + lac__chunk_table_offset(e->length) + first * 4;
	uint8_t table[PIECE_CHUNKS * 4];
	char what[64];
	int rc = read_at(r, r->bytes, length, e->offset + at);

	*ret_good = false;
	if (rc == 0 && !r->unreadable)
		rc = read_at(
			r, table, (length + LAC__CHUNK_BYTES - 1) / LAC__CHUNK_BYTES * 4, table_at);
	if (rc < 0 || r->unreadable)
		return rc;
	for (size_t i = 0; i * LAC__CHUNK_BYTES < length; i++) {
		const uint8_t *bytes = r->bytes + i * LAC__CHUNK_BYTES;
		size_t n = length - i * LAC__CHUNK_BYTES;

		if (n > LAC__CHUNK_BYTES)
			n = LAC__CHUNK_BYTES;
		if (lac__chunk_checksum(seed, first + i, bytes, n) ==
			lac__chunk_table_get(table, i))
			continue;
		snprintf(what, sizeof(what), "chunk %" PRIu64, first + i);
		return payload_wrong(
			r, e->offset + at + i * LAC__CHUNK_BYTES, what, all_zero(bytes, n));
	}
	*ret_good = true;
	return 0;
}

static int check_payload(struct reading *r)
{
	const uint32_t seed = lac__block_seed(&r->c->super.uuid, r->id);
	const uint64_t chunks = lac__chunk_count(r->entry->length);
	bool good;
	int rc;

	if (!chunks)
		return check_short_payload(r, seed);
	rc = check_table(r, seed, &good);
	for (uint64_t first = 0; first < chunks && rc == 0 && good; first += PIECE_CHUNKS)
		rc = check_chunks(r, seed, first, &good);
	return rc;
}

int lac__check_block_data(struct lac__checker *c, const struct lac__check_container *container,
	uint64_t id, const struct lac__entry *entry)
{
	struct reading r = {.c = c, .id = id, .container = container->id, .entry = entry};
	uint64_t size;
	int rc;

	lac__name_container(container->id, r.path);
	rc = lac__check_hold(c, r.path, &r.held, &size);
	if (rc < 0 || !r.held)
		return lac__check_failed(c, r.path, 0, rc < 0 ? rc : -ENOENT);
	if (!c->piece)
		c->piece = malloc(PIECE_BYTES);
	r.bytes = c->piece;
	if (!r.bytes)
		rc = lac__error_nomem(c->err);
	else
		rc = entry->distance ? check_aligned_description(&r) : check_packed_description(&r);
	if (rc == 0 && !r.unreadable)
		rc = check_payload(&r);
	lac__files_release(r.held);
	return rc;
}
