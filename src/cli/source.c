/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/source.c - a file, a pipe or standard input as the payload of one block.
 *
 * A block's length is fixed before its first byte, so a source is measured first. A file that
 * grows meanwhile is taken up to the length it had, which is a state it was in; one that shrinks
 * has no such state, and its block is given up.
 */
#include "cli/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads until length bytes or the end; the count, or a negative errno. */
static ssize_t read_full(int fd, uint8_t *buffer, size_t length)
{
	size_t done = 0;

	while (done < length) {
		ssize_t n = read(fd, buffer + done, length - done);

		if (n < 0 && errno == EINTR && !cli_stopped())
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int write_full(int fd, const uint8_t *buffer, size_t length)
{
	while (length) {
		ssize_t n = write(fd, buffer, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buffer += n;
		length -= (size_t)n;
	}
	return 0;
}

static int open_temporary(void)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];
	int fd;

	if (!dir || !*dir)
		dir = "/var/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	/* Not every filesystem has unnamed files. */
	if (snprintf(path, sizeof(path), "%s/lacuna-XXXXXX", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

/* Takes the whole of source->fd, whose first `have` bytes are in the buffer, into a temporary file
   that takes its place. */
static int spool_to_file(struct cli_source *source, size_t have)
{
	int rc = 0, spool = open_temporary();

	if (spool < 0) {
		cli_message("%s: make a temporary file: %s", source->name, strerror(-spool));
		return CLI_FAILED;
	}
	while (have && rc == 0) {
		ssize_t n;

		rc = write_full(spool, source->buffer, have);
		if (rc < 0)
			break;
		source->length += have;
		n = read_full(source->fd, source->buffer, CLI_PIECE_BYTES);
		rc = n < 0 ? (int)n : 0;
		have = n < 0 ? 0 : (size_t)n;
	}
	if (rc == 0 && lseek(spool, 0, SEEK_SET) < 0)
		rc = -errno;
	if (rc < 0) {
		if (!cli_stopped())
			cli_message(
				"%s: copy to a temporary file: %s", source->name, strerror(-rc));
		close(spool);
		return CLI_FAILED;
	}
	if (source->fd != STDIN_FILENO)
		close(source->fd);
	source->fd = spool;
	return CLI_DONE;
}

static int spool(struct cli_source *source)
{
	ssize_t n = read_full(source->fd, source->buffer, CLI_PIECE_BYTES);

	if (n < 0) {
		if (!cli_stopped())
			cli_message("%s: read: %s", source->name, strerror((int)-n));
		return CLI_MISSING;
	}
	if (n == CLI_PIECE_BYTES)
		return spool_to_file(source, (size_t)n);
	source->length = (uint64_t)n;
	source->in_memory = true;
	return CLI_DONE;
}

int cli_source_open(struct cli_source *source, const char *path, bool tree, uint8_t *buffer)
{
	bool standard_input = !tree && strcmp(path, "-") == 0;
	struct stat st;
	int code;

	*source = (struct cli_source){.name = path, .fd = STDIN_FILENO, .buffer = buffer};
	if (!standard_input)
		source->fd = open(path,
			O_RDONLY | O_CLOEXEC | O_NOCTTY | (tree ? O_NOFOLLOW | O_NONBLOCK : 0));
	if (source->fd < 0 || fstat(source->fd, &st) < 0) {
		cli_message("%s: %s", path, strerror(errno));
		code = errno == EMFILE || errno == ENFILE || errno == ENOMEM ? CLI_FAILED
									     : CLI_MISSING;
		goto out;
	}
	code = CLI_MISSING;
	if (S_ISDIR(st.st_mode) || (tree && !S_ISREG(st.st_mode))) {
		cli_message("%s: %s", path, tree ? "no longer a regular file" : "is a directory");
		goto out;
	}
	if (S_ISREG(st.st_mode) && st.st_size > 0 && !standard_input) {
		source->length = (uint64_t)st.st_size;
		return CLI_DONE;
	}
	code = spool(source);
out:
	if (code != CLI_DONE)
		cli_source_close(source);
	return code;
}

/* Reads the next `length` bytes into the buffer, all of them. */
static int next_piece(struct cli_source *source, size_t length, uint64_t at)
{
	ssize_t n = read_full(source->fd, source->buffer, length);

	if (n == (ssize_t)length)
		return 0;
	if (n < 0 && cli_stopped())
		return CLI_MISSING;
	if (n < 0)
		cli_message("%s: read: %s", source->name, strerror((int)-n));
	else
		cli_message("%s: shrank while it was read: %llu bytes, was %llu", source->name,
			(unsigned long long)(at + (uint64_t)n), (unsigned long long)source->length);
	return CLI_MISSING;
}

static int put_whole(struct cli_source *source, struct lac_txn *txn, uint64_t owner,
	uint64_t *ret_id, struct lac_error *err)
{
	int rc = 0;

	if (!source->in_memory)
		rc = next_piece(source, (size_t)source->length, 0);
	if (rc != 0)
		return rc;
	return lac_txn_put(txn, source->buffer, (size_t)source->length, owner, ret_id, err);
}

int cli_source_put(struct cli_source *source, struct lac_txn *txn, uint64_t owner, uint64_t *ret_id,
	struct lac_error *err)
{
	struct lac_put *put = NULL;
	uint64_t at = 0;
	int rc;

	if (source->length <= CLI_PIECE_BYTES)
		return put_whole(source, txn, owner, ret_id, err);
	rc = lac_put_begin(txn, source->length, owner, &put, err);
	if (rc < 0)
		return rc;
	while (rc == 0 && at < source->length) {
		size_t length = source->length - at < CLI_PIECE_BYTES
					? (size_t)(source->length - at)
					: CLI_PIECE_BYTES;

		/* A block of terabytes must not hold up Ctrl-C; it was not acknowledged. */
		rc = cli_stopped() ? CLI_MISSING : next_piece(source, length, at);
		if (rc == 0)
			rc = lac_put_write(put, source->buffer, length, err);
		at += length;
	}
	if (rc != 0) {
		lac_put_abort(put);
		return rc;
	}
	return lac_put_finish(put, ret_id, err);
}

void cli_source_close(struct cli_source *source)
{
	if (source->fd > STDERR_FILENO)
		close(source->fd);
	source->fd = -1;
}
