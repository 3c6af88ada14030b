/* SPDX-License-Identifier: Apache-2.0 */
/* cli/target.h - a block's payload into a file or to standard output. */
#ifndef LAC_CLI_TARGET_H
#define LAC_CLI_TARGET_H

#include "cli/cli.h"

struct cli_target {
	int dir_fd;
	const char *name;  /* in dir_fd */
	const char *shown; /* for messages */
	char temporary[64];
	int fd;
};

/* Makes a temporary file beside name. CLI_DONE, or CLI_FAILED after a message. */
int cli_target_open(struct cli_target *target, int dir_fd, const char *name, const char *shown);
/* Gives it its name, replacing what has it; `durable` syncs the content first. The target is gone.
 */
int cli_target_commit(struct cli_target *target, bool durable);
void cli_target_abort(struct cli_target *target);

/*
 * Copies [offset, offset + length) of block id to fd, as far as the block goes, in pieces that were
 * verified before they are written. CLI_DONE, or the exit code after a message; CLI_FAILED without
 * one when a signal came. *ret_bytes is what was written, in every case.
 */
int cli_block_copy(struct lac_store *store, uint64_t id, uint64_t offset, uint64_t length, int fd,
	const char *shown, uint8_t *buffer, uint64_t *ret_bytes);

#endif
