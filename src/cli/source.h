/* SPDX-License-Identifier: Apache-2.0 */
/* cli/source.h - a file, a pipe or standard input as the payload of one block. */
#ifndef LAC_CLI_SOURCE_H
#define LAC_CLI_SOURCE_H

#include "cli/cli.h"

struct cli_source {
	const char *name; /* for messages */
	int fd;
	uint64_t length;
	bool in_memory;	 /* the whole payload is in buffer */
	uint8_t *buffer; /* CLI_PIECE_BYTES of the caller's; free between two sources */
};

/*
 * Opens path ("-" = standard input) and finds out its length; what tells no length (a pipe, a file
 * of /proc) is read to its end, into buffer or into an unnamed temporary file in $TMPDIR or
 * /var/tmp. With `tree` only regular files are taken and symbolic links are not followed. CLI_DONE,
 * or the failure was said: CLI_MISSING where the file is not there or not readable, CLI_FAILED for
 * everything else.
 */
int cli_source_open(struct cli_source *source, const char *path, bool tree, uint8_t *buffer);

/*
 * Adds the payload to txn. 0; a negative code of the library with *err filled; or CLI_MISSING after
 * a message when the source could not be read to the length it had. In both failures the
 * transaction is without this block.
 */
int cli_source_put(struct cli_source *source, struct lac_txn *txn, uint64_t owner, uint64_t *ret_id,
	struct lac_error *err);

void cli_source_close(struct cli_source *source);

#endif
