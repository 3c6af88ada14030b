/* SPDX-License-Identifier: Apache-2.0 */
/* cli/get.c - lacuna get: a block's payload to standard output or into a file. */
#include "cli/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
	"usage: lacuna get STORE ID [-o FILE] [--offset B] [--length B]\n"
	"\n"
	"Writes the payload of block ID to standard output, or to FILE. Every byte is verified "
	"before\n"
	"it is written; FILE gets its name only when all of them are there, so a damaged block "
	"leaves\n"
	"no half file. Exit status 1: there is no such block; 4: it is damaged.\n"
	"\n"
	"  -o, --output FILE  write to FILE, replacing it; - is standard output\n"
	"  --offset B         begin at this byte; beyond the end there is nothing\n"
	"  --length B         at most this many bytes\n"
	"\n"
	"example: lacuna get /srv/blocks 42 -o photo.jpg\n";

struct get_job {
	uint64_t id, offset, length;
	const char *output;
	uint8_t *buffer;
};

/* A pipe, a terminal or /dev/null is written as it stands: replacing it is not what is meant. */
static bool is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static int get_to_special(struct lac_store *store, const struct get_job *job)
{
	uint64_t bytes;
	int code, fd = open(job->output, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0) {
		cli_message("write %s: %s", job->output, strerror(errno));
		return CLI_FAILED;
	}
	code = cli_block_copy(
		store, job->id, job->offset, job->length, fd, job->output, job->buffer, &bytes);
	if (close(fd) < 0 && code == CLI_DONE) {
		cli_message("write %s: %s", job->output, strerror(errno));
		code = CLI_FAILED;
	}
	return code;
}

static int get_to_file(struct lac_store *store, const struct get_job *job)
{
	/* The file that a symbolic link leads to is replaced, not the link. */
	char *path = realpath(job->output, NULL);
	char *for_dir = strdup(path ? path : job->output),
	     *for_name = strdup(path ? path : job->output);
	struct cli_target target;
	uint64_t bytes;
	int code = CLI_FAILED, dir_fd = -1;

	if (!for_dir || !for_name) {
		cli_fail(-ENOMEM, NULL, NULL);
		goto out;
	}
	dir_fd = open(dirname(for_dir), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0) {
		cli_message("write %s: %s", job->output, strerror(errno));
		goto out;
	}
	code = cli_target_open(&target, dir_fd, basename(for_name), job->output);
	if (code != CLI_DONE)
		goto out;
	code = cli_block_copy(store, job->id, job->offset, job->length, target.fd, job->output,
		job->buffer, &bytes);
	if (code == CLI_DONE)
		code = cli_target_commit(&target, true);
	else
		cli_target_abort(&target);
out:
	if (dir_fd >= 0)
		close(dir_fd);
	free(for_name);
	free(for_dir);
	free(path);
	return code;
}

static int get(const struct get_job *job)
{
	struct lac_store *store = NULL;
	struct lac_error err = {0};
	struct lac_block_info info;
	uint64_t bytes;
	int rc, code = cli_store_open(true, &store);

	if (code != CLI_DONE)
		return code;
	/* Asked first, so that an empty block and a missing one differ. */
	rc = lac_block_stat(store, job->id, &info, &err);
	if (rc < 0)
		code = cli_fail(rc, &err, NULL);
	else if (!job->output)
		code = cli_block_copy(store, job->id, job->offset, job->length, STDOUT_FILENO,
			"standard output", job->buffer, &bytes);
	else if (is_special(job->output))
		code = get_to_special(store, job);
	else
		code = get_to_file(store, job);
	return cli_store_close(store, code);
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct get_job job = {.length = UINT64_MAX};
	const struct cli_option options[] = {
		{"output", 'o', CLI_TEXT, &job.output, NULL, false},
		{"offset", 0, CLI_SIZE, &job.offset, NULL, false},
		{"length", 0, CLI_SIZE, &job.length, NULL, false},
		{0},
	};
	int first, code = cli_parse(verb, options, argc, argv, 1, 1, &first);

	if (code >= 0)
		return code;
	if (cli_parse_number(argv[first], &job.id) < 0)
		return cli_usage("\"%s\" is not a block's id", argv[first]);
	if (job.output && strcmp(job.output, "-") == 0)
		job.output = NULL;
	if (job.output && !*job.output)
		return cli_usage("the name of the output is empty");
	cli_catch_signals();
	job.buffer = malloc(CLI_PIECE_BYTES);
	code = job.buffer ? get(&job) : cli_fail(-ENOMEM, NULL, NULL);
	free(job.buffer);
	return code;
}

const struct cli_verb cli_verb_get = {"get", "write a block's payload to a file", help, run};
