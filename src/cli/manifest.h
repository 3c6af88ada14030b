/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/manifest.h - the list of imported files: ID, tab, LENGTH, tab, PATH, newline, with tab,
 * newline, carriage return and backslash in PATH as \t \n \r \\ .
 */
#ifndef LAC_CLI_MANIFEST_H
#define LAC_CLI_MANIFEST_H

#include "cli/cli.h"

#include <stdio.h>
#include <sys/types.h>

struct cli_manifest_line {
	uint64_t id, length;
	char *path; /* unescaped, in the line's own memory */
};

/* Takes a line without its newline apart, in place. 0, or -EBADMSG. */
int cli_manifest_parse(char *text, size_t size, struct cli_manifest_line *ret_line);

struct cli_manifest_reader {
	FILE *in;
	char *text;
	size_t room;
	uint64_t number;    /* of the line that was read last */
	uint64_t end_bytes; /* where it ends */
};
/* 0 and a line, valid until the next call; 1 at the end; -EBADMSG for a line that is none; -ENODATA
   when the last one has no newline, which is how a killed writer leaves it; another negative errno
   from the system. */
int cli_manifest_next(struct cli_manifest_reader *reader, struct cli_manifest_line *ret_line);

/*
 * The writer of an import.
 *
 * Between the commit and the line in the manifest the process can be killed, and the store would
 * hold blocks that no line names. So the lines of a batch are first made durable in PATH.pending,
 * sealed by a last line with the store's uuid, a count and a hash; then the batch is committed;
 * then they go to the manifest and the pending file is emptied. Whoever resumes asks the store
 * whether it has the blocks of a sealed pending file: all of them (then the lines go to the
 * manifest) or, since a commit is all or nothing and ids are never used twice, none. Nothing is
 * ever deleted.
 */
struct cli_manifest {
	const char *path;
	char *pending_path;
	int fd, pending_fd;
	char uuid[33]; /* of the store, in hexadecimal */
	char *lines;   /* of the open batch */
	size_t used, room;
	uint64_t count;
	/* What was there when it was opened: */
	char **paths; /* sorted */
	size_t path_count, path_room;
	uint64_t highest_id;
};

/*
 * Opens or makes the manifest at path and reads it; a last line that was cut off is taken away; a
 * sealed pending batch whose blocks are in the store is added. All functions: CLI_DONE, or the exit
 * code after a message.
 */
int cli_manifest_open(struct cli_manifest *manifest, const char *path, struct lac_store *store);
bool cli_manifest_has(const struct cli_manifest *manifest, const char *path);
/* Is it the manifest itself or its pending file? */
bool cli_manifest_is(const struct cli_manifest *manifest, dev_t device, ino_t inode);
int cli_manifest_add(struct cli_manifest *manifest, uint64_t id, uint64_t length, const char *path);
/* Before the commit, and after it. */
int cli_manifest_prepare(struct cli_manifest *manifest);
int cli_manifest_confirm(struct cli_manifest *manifest);
/* Forgets the open batch, which was not committed. */
void cli_manifest_drop(struct cli_manifest *manifest);
/* Removes the pending file when nothing in it is open. Fine for one that was never opened, when
 * zeroed. */
void cli_manifest_close(struct cli_manifest *manifest);

#endif
