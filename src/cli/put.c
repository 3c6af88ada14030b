/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/put.c - lacuna put: files become blocks.
 *
 * A line is printed only when its block is durable, so whoever reads the lines has the truth even
 * when the command is killed. Those of a batch that was not committed are not printed at all.
 */
#include "cli/json.h"
#include "cli/source.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"usage: lacuna put STORE FILE... [--owner N] [--batch N]\n"
	"\n"
	"Puts each FILE (- is standard input) into the store as a block and prints a line for "
	"each,\n"
	"once it is durable: ID, tab, FILE with tab, newline, return and backslash as \\t \\n \\r "
	"\\\\.\n"
	"A file that is not there, is not readable or shrinks while it is read is passed over and "
	"the\n"
	"exit status is 1. One that grows is taken up to the length it had.\n"
	"\n"
	"  --owner N  a number of your own to find the blocks by; default 0\n"
	"  --batch N  files in one transaction, which is durable as a whole; default 1\n"
	"\n"
	"example: lacuna put /srv/blocks photo.jpg --owner 7\n";

struct put_job {
	struct lac_store *store;
	struct lac_txn *txn;
	uint8_t *buffer;
	uint64_t *ids;	    /* of the open transaction */
	const char **names; /* beside them */
	uint64_t count, batch, bytes, owner;
};

static void print_block(uint64_t id, const char *name)
{
	struct cli_json json = {0};

	if (!cli_context.json) {
		printf("%" PRIu64 "\t", id);
		cli_put_escaped(name);
		putchar('\n');
		return;
	}
	cli_json_open(&json, NULL, '{');
	cli_json_id(&json, "id", id);
	cli_json_text(&json, "file", name);
	cli_json_close(&json, '}', true);
}

/* Commits what is in the transaction and prints it. */
static int commit(struct put_job *job)
{
	struct lac_error err = {0};
	struct lac_txn *txn = job->txn;
	int rc;

	job->txn = NULL;
	if (!txn)
		return CLI_DONE;
	if (job->count == 0) {
		lac_txn_abort(txn);
		return CLI_DONE;
	}
	rc = lac_txn_commit(txn, NULL, &err);
	if (rc == -E2BIG)
		cli_message("a smaller --batch or a larger --cache will do");
	if (rc < 0)
		return cli_worse(CLI_FAILED, cli_fail(rc, &err, "commit"));
	for (uint64_t i = 0; i < job->count; i++)
		print_block(job->ids[i], job->names[i]);
	job->count = job->bytes = 0;
	return cli_flush() ? CLI_DONE : CLI_FAILED;
}

/* Puts one file; CLI_MISSING and CLI_DONE go on, everything else ends the verb. */
static int put_file(struct put_job *job, const char *name)
{
	struct cli_source source;
	struct lac_error err = {0};
	uint64_t id;
	int code, rc = 0;

	code = cli_source_open(&source, name, false, job->buffer);
	if (code != CLI_DONE)
		return code;
	if (!job->txn)
		rc = lac_txn_begin(job->store, &job->txn, &err);
	if (rc == 0)
		rc = cli_source_put(&source, job->txn, job->owner, &id, &err);
	cli_source_close(&source);
	if (rc > 0)
		return rc;
	if (rc < 0)
		return cli_worse(CLI_FAILED, cli_fail(rc, &err, name));
	job->ids[job->count] = id;
	job->names[job->count++] = name;
	job->bytes += source.length;
	if (job->count >= job->batch || job->bytes >= CLI_BATCH_BYTES)
		return commit(job);
	return CLI_DONE;
}

static int put_files(struct put_job *job, char **names, int count)
{
	int code = CLI_DONE, worst = CLI_DONE;

	for (int i = 0; i < count && code <= CLI_MISSING && !cli_stopped(); i++) {
		code = put_file(job, names[i]);
		worst = cli_worse(worst, code);
	}
	/* What did go in before a failure is worth keeping. */
	return cli_worse(worst, commit(job));
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct put_job job = {.batch = 1};
	const struct cli_option options[] = {
		{"owner", 0, CLI_NUMBER, &job.owner, NULL, false},
		{"batch", 0, CLI_NUMBER, &job.batch, NULL, false},
		{0},
	};
	int first, code = cli_parse(verb, options, argc, argv, 1, INT_MAX, &first);

	if (code >= 0)
		return code;
	if (job.batch == 0)
		return cli_usage("--batch 0: a transaction has at least one file");
	if (job.batch > CLI_BATCH_MOST)
		job.batch = CLI_BATCH_MOST;
	cli_catch_signals();
	job.buffer = malloc(CLI_PIECE_BYTES);
	job.ids = calloc(job.batch, sizeof(*job.ids));
	job.names = calloc(job.batch, sizeof(*job.names));
	if (!job.buffer || !job.ids || !job.names)
		code = cli_fail(-ENOMEM, NULL, NULL);
	else
		code = cli_store_open(false, &job.store);
	if (code == CLI_DONE)
		code = put_files(&job, argv + first, argc - first);
	code = cli_store_close(job.store, code);
	free(job.buffer);
	free(job.ids);
	free(job.names);
	return code;
}

const struct cli_verb cli_verb_put = {"put", "put files into it, a block each", help, run};
