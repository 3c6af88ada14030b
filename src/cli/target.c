/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/target.c - a block's payload into a file or to standard output.
 *
 * A file gets its name only once every byte of it was verified and written, so a damaged block or
 * a full disk leaves whatever had the name before.
 */
#include "cli/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fail(const struct cli_target *target, const char *verb)
{
	cli_message("%s %s: %s", verb, target->shown, strerror(errno));
	return CLI_FAILED;
}

int cli_target_open(struct cli_target *target, int dir_fd, const char *name, const char *shown)
{
	static unsigned serial;

	*target = (struct cli_target){.dir_fd = dir_fd, .name = name, .shown = shown};
	/* A name left by a killed process with our pid is passed over. */
	do {
		snprintf(target->temporary, sizeof(target->temporary), ".lacuna-%ld-%u",
			(long)getpid(), serial++);
		target->fd = openat(
			dir_fd, target->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	} while (target->fd < 0 && errno == EEXIST);
	return target->fd < 0 ? fail(target, "write") : CLI_DONE;
}

int cli_target_commit(struct cli_target *target, bool durable)
{
	int fd = target->fd;

	if (durable && fsync(fd) < 0) {
		cli_message("sync %s: %s", target->shown, strerror(errno));
		cli_target_abort(target);
		return CLI_FAILED;
	}
	target->fd = -1;
	if (close(fd) < 0 ||
		renameat(target->dir_fd, target->temporary, target->dir_fd, target->name) < 0) {
		int code = fail(target, "write");

		unlinkat(target->dir_fd, target->temporary, 0);
		return code;
	}
	return CLI_DONE;
}

void cli_target_abort(struct cli_target *target)
{
	if (target->fd < 0)
		return;
	close(target->fd);
	target->fd = -1;
	unlinkat(target->dir_fd, target->temporary, 0);
}

static int write_piece(int fd, const uint8_t *buffer, size_t length, const char *shown)
{
	while (length) {
		ssize_t n = write(fd, buffer, length);

		if (n < 0 && errno == EINTR && !cli_stopped())
			continue;
		if (n < 0) {
			/* A reader that went away, like head(1), knows why. */
			if (errno != EPIPE && errno != EINTR)
				cli_message("write %s: %s", shown, strerror(errno));
			return CLI_FAILED;
		}
		buffer += n;
		length -= (size_t)n;
	}
	return CLI_DONE;
}

int cli_block_copy(struct lac_store *store, uint64_t id, uint64_t offset, uint64_t length, int fd,
	const char *shown, uint8_t *buffer, uint64_t *ret_bytes)
{
	*ret_bytes = 0;
	while (length) {
		size_t want = length < CLI_PIECE_BYTES ? (size_t)length : CLI_PIECE_BYTES;
		struct lac_error err = {0};
		int64_t n;

		if (cli_stopped())
			return CLI_FAILED;
		n = lac_block_read(store, id, buffer, want, offset, &err);
		if (n < 0) {
			char what[32];

			snprintf(what, sizeof(what), "block %" PRIu64, id);
			return cli_fail((int)n, &err, what);
		}
		if (n == 0)
			break;
		if (write_piece(fd, buffer, (size_t)n, shown) != CLI_DONE)
			return CLI_FAILED;
		offset += (uint64_t)n;
		length -= (uint64_t)n;
		*ret_bytes += (uint64_t)n;
	}
	return CLI_DONE;
}
