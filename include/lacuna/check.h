/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lacuna/check.h - is what is on disk sound? A second, independent reader: it never writes, needs
 * no lock, and does not use the store's code. A store that only needs recovery is sound: the
 * journal is applied in memory.
 */
#ifndef LACUNA_CHECK_H
#define LACUNA_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/backend.h"
#include "lacuna/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum lac_severity {
	LAC_SEVERITY_NOTE,   /* nothing is wrong: recovery will do it, space waits, ... */
	LAC_SEVERITY_DAMAGE, /* something is lost or contradicts itself */
	LAC_SEVERITY_FATAL,  /* the store can't be opened for writing as it is */
};

/*
 * Findings are permanent: an id is never renumbered or given a new meaning.
 * X(name, number, severity, repairable, text)
 */
#define LAC_FINDINGS(X)                                                                            \
	X(SUPER_COPY_BAD, 101, NOTE, true, "one superblock copy does not verify")                  \
	X(SUPER_LOST, 102, FATAL, true, "no superblock copy verifies")                             \
	X(SUPER_FORMAT, 103, FATAL, false, "the format is newer than this release")                \
	X(SUPER_MISMATCH, 104, DAMAGE, true, "the superblock copies are of different stores")      \
	X(FILE_MISSING, 110, DAMAGE, true, "a file that metadata names is missing")                \
	X(FILE_EXTRA, 111, NOTE, true, "a file that metadata does not name")                       \
	X(FILE_SHORT, 112, DAMAGE, true, "a file ends before what it must hold")                   \
	X(FILE_UNREADABLE, 113, DAMAGE, false, "reading a file failed")                            \
	X(CONTAINER_HEADER, 120, DAMAGE, true, "a container's header does not verify")             \
	X(JOURNAL_TORN, 201, NOTE, true, "the journal ends in an unfinished group")                \
	X(JOURNAL_CORRUPT, 202, FATAL, true, "the journal is damaged below what was durable")      \
	X(JOURNAL_REDO, 203, NOTE, true, "the journal holds what recovery will apply")             \
	X(RECORD_BAD, 204, FATAL, true, "a journal record does not decode or apply")               \
	X(PAGE_LOST, 301, DAMAGE, true, "no slot of a metadata page verifies")                     \
	X(PAGE_SLOT_BAD, 302, NOTE, true, "the slot that is not the base does not verify")         \
	X(PAGE_STALE, 303, DAMAGE, true, "a metadata page is older than the journal says")         \
	X(PAGE_ZERO, 304, DAMAGE, true,                                                            \
		"an index page below the high-water mark was never written")                       \
	X(PAGE_ROTTEN, 305, DAMAGE, true,                                                          \
		"a slot does not verify, and no unfinished checkpoint explains it")                \
	X(ENTRY_BAD, 401, DAMAGE, true, "an index entry is out of its bounds")                     \
	X(ENTRY_OVERLAP, 402, DAMAGE, true, "two blocks claim the same bytes")                     \
	X(ENTRY_CONTAINER, 403, DAMAGE, true, "an entry names a container that can't hold it")     \
	X(ENTRY_ID, 404, DAMAGE, true, "a live block at or above the id high-water mark")          \
	X(BLOCK_DESCRIPTION, 405, DAMAGE, true, "the description of a live block does not verify") \
	X(BLOCK_PAYLOAD, 406, DAMAGE, true, "the payload of a live block does not verify")         \
	X(MAP_WRONG, 501, DAMAGE, true, "the space map contradicts the blocks")                    \
	X(TABLE_WRONG, 502, DAMAGE, true, "the container table contradicts the blocks")            \
	X(SPACE_WAITS, 503, NOTE, true, "space of deleted blocks waits for reclaim")               \
	X(LSN_AHEAD, 701, FATAL, true, "a metadata page carries an LSN beyond the journal's end")

enum lac_finding_id {
#define LAC_FINDING_ENUM(name, number, severity, repairable, text) LAC_FINDING_##name = number,
	LAC_FINDINGS(LAC_FINDING_ENUM)
#undef LAC_FINDING_ENUM
};

struct lac_finding {
	int id;	      /* enum lac_finding_id */
	int severity; /* enum lac_severity */
	bool repairable;
	const char *path; /* in the store; valid during the call */
	uint64_t offset;  /* byte in path */
	const char *text; /* one line; valid during the call */
};

struct lac_phase {
	int number; /* as in the documentation: 1, 2, 4, 5, ... */
	const char *name;
	uint64_t start_ns, end_ns; /* monotonic; end 0 while it runs */
	uint64_t items, bytes;
	uint64_t items_total; /* 0 = unknown */
};

struct lac_check_options {
	size_t size;
	bool data;		     /* read every payload too */
	struct lac_backend *backend; /* NULL = plain files at path */
	/* Called for every finding, and when a phase begins, about ten times a second, and ends;
	   from the calling thread. Non-zero from either stops the check with -ECANCELED. */
	int (*finding)(void *arg, const struct lac_finding *finding);
	int (*phase)(void *arg, const struct lac_phase *phase);
	void *arg;
};

struct lac_check_result {
	uint64_t notes, damages, fatals;
	uint64_t blocks, live_bytes;
	uint64_t max_lsn;  /* largest LSN on any page whose checksum, identity and bounds hold */
	uint64_t head_lsn; /* last LSN of the journal */
};

/* 0 whatever was found; negative when the check itself could not be carried out. Memory: 24 bytes a
 * live block and description granule, and the pages that redo changes. */
int lac_check(const char *path, const struct lac_check_options *options,
	struct lac_check_result *ret_result, struct lac_error *err);

/* NULL for a number that is no finding. */
const char *lac_finding_name(int id);
const char *lac_finding_text(int id);

#ifdef __cplusplus
}
#endif
#endif
