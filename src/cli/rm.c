/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/rm.c - lacuna rm: deletes blocks.
 *
 * A list is read to its end before the first block is deleted: a line that is no id means that it
 * is not the list that was meant.
 */
#include "cli/cli.h"
#include "cli/json.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"usage: lacuna rm STORE ID...\n"
	"       lacuna rm STORE --from FILE\n"
	"       lacuna rm STORE --owner N\n"
	"\n"
	"Deletes blocks and prints how many were deleted and how many were not there, which makes "
	"the\n"
	"exit status 1. An id named twice is missing the second time. The space comes back in the\n"
	"background or by lacuna reclaim.\n"
	"\n"
	"  --from FILE  ids from FILE (- is standard input), one a line; what follows a tab is\n"
	"               passed over, so a manifest will do. Nothing is deleted if a line is no id\n"
	"  --owner N    every block of owner N\n"
	"  --batch N    blocks in one transaction, which goes as a whole; default 1000\n"
	"\n"
	"example: lacuna rm /srv/blocks 42 43\n";

struct rm_job {
	struct lac_store *store;
	uint64_t batch;
	uint64_t *ids;
	size_t count, room;
	uint64_t deleted, missing;
};

static int add_id(struct rm_job *job, uint64_t id)
{
	if (job->count == job->room) {
		size_t room = job->room ? 2 * job->room : 1024;
		uint64_t *ids = reallocarray(job->ids, room, sizeof(*ids));

		if (!ids)
			return cli_fail(-ENOMEM, NULL, NULL);
		job->ids = ids;
		job->room = room;
	}
	job->ids[job->count++] = id;
	return CLI_DONE;
}

static int read_ids(struct rm_job *job, const char *name, FILE *in)
{
	char *line = NULL;
	size_t room = 0;
	uint64_t number = 0, id;
	ssize_t length;
	int code = CLI_DONE;

	while (code == CLI_DONE && (length = getline(&line, &room, in)) >= 0) {
		number++;
		if (length && line[length - 1] == '\n')
			line[--length] = '\0';
		line[strcspn(line, "\t")] = '\0';
		if (cli_parse_number(line, &id) < 0)
			code = cli_usage("%s: line %" PRIu64 ": \"%.100s\" is not a block's id",
				name, number, line);
		else
			code = add_id(job, id);
	}
	if (code == CLI_DONE && ferror(in)) {
		cli_message("read %s: %s", name, strerror(errno));
		code = CLI_FAILED;
	}
	free(line);
	return code;
}

static int read_list(struct rm_job *job, const char *name)
{
	bool standard_input = strcmp(name, "-") == 0;
	FILE *in = standard_input ? stdin : fopen(name, "re");
	int code;

	if (!in) {
		cli_message("read %s: %s", name, strerror(errno));
		return CLI_FAILED;
	}
	code = read_ids(job, name, in);
	if (!standard_input)
		fclose(in);
	return code;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Deletes ids[0..count), which are sorted, in one transaction, or in more where the library finds
   it too big: the pages of widely scattered ids may be too many for the memory it has. */
static int delete_sorted(struct rm_job *job, const uint64_t *ids, size_t count)
{
	struct lac_error err = {0};
	struct lac_txn *txn = NULL;
	uint64_t deleted = 0, missing = 0;
	int rc = lac_txn_begin(job->store, &txn, &err);

	for (size_t i = 0; i < count && rc == 0; i++) {
		if (i && ids[i] == ids[i - 1]) {
			missing++;
			continue;
		}
		rc = lac_txn_delete(txn, ids[i], &err);
		if (rc == -ENOENT) {
			missing++;
			rc = 0;
		}
	}
	if (rc == 0)
		rc = lac_txn_commit(txn, &deleted, &err);
	else
		lac_txn_abort(txn);
	if (rc == -E2BIG && count > 1) {
		int code = delete_sorted(job, ids, count / 2);

		return code == CLI_DONE ? delete_sorted(job, ids + count / 2, count - count / 2)
					: code;
	}
	if (rc < 0)
		return cli_worse(CLI_FAILED, cli_fail(rc, &err, NULL));
	job->deleted += deleted;
	job->missing += missing;
	return CLI_DONE;
}

static int delete_batch(struct rm_job *job, uint64_t *ids, size_t count)
{
	/* Sorted, because the library need not notice the second delete of a block before the
	   commit, and neighbours share an index page. */
	qsort(ids, count, sizeof(*ids), compare_ids);
	return delete_sorted(job, ids, count);
}

static int delete_listed(struct rm_job *job)
{
	struct cli_progress progress;
	int code = CLI_DONE;

	cli_progress_start(&progress, "blocks");
	progress.items_total = job->count;
	for (size_t at = 0; at < job->count && code == CLI_DONE && !cli_stopped();) {
		size_t count = job->count - at < job->batch ? job->count - at : (size_t)job->batch;

		code = delete_batch(job, job->ids + at, count);
		at += count;
		cli_progress_update(&progress, at, 0);
	}
	cli_progress_end(&progress);
	return code;
}

/* Takes up to a batch of ids of the iterator; *ret_end when there are no more. */
static int next_of_owner(struct rm_job *job, struct lac_iter *iter, bool *ret_end)
{
	struct lac_error err = {0};
	struct lac_block_info info;
	int rc, code = CLI_DONE;

	job->count = 0;
	while (code == CLI_DONE && job->count < job->batch) {
		rc = lac_iter_next(iter, &info, &err);
		if (rc < 0)
			return cli_fail(rc, &err, NULL);
		*ret_end = rc > 0;
		if (*ret_end)
			break;
		code = add_id(job, info.id);
	}
	return code;
}

static int delete_of_owner(struct rm_job *job, uint64_t owner)
{
	struct lac_iter_options options = {
		.size = sizeof(options), .by_owner = true, .owner = owner};
	struct cli_progress progress;
	struct lac_error err = {0};
	struct lac_iter *iter = NULL;
	bool end = false;
	int code = CLI_DONE, rc = lac_iter_open(job->store, &options, &iter, &err);

	if (rc < 0)
		return cli_fail(rc, &err, NULL);
	cli_progress_start(&progress, "blocks");
	while (code == CLI_DONE && !end && !cli_stopped()) {
		code = next_of_owner(job, iter, &end);
		if (code == CLI_DONE && job->count)
			code = delete_batch(job, job->ids, job->count);
		cli_progress_update(&progress, job->deleted, 0);
	}
	cli_progress_end(&progress);
	lac_iter_close(iter);
	return code;
}

static void print_result(const struct rm_job *job)
{
	struct cli_json json = {0};

	if (!cli_context.json) {
		printf("deleted %" PRIu64 ", missing %" PRIu64 "\n", job->deleted, job->missing);
		return;
	}
	cli_json_open(&json, NULL, '{');
	cli_json_number(&json, "deleted", job->deleted);
	cli_json_number(&json, "missing", job->missing);
	cli_json_close(&json, '}', true);
}

/* Collects the ids that were named in one of the three ways. */
static int collect(struct rm_job *job, const char *from, bool owner_given, char **ids, int count)
{
	uint64_t id;
	int code = CLI_DONE;

	if ((count > 0) + (from != NULL) + owner_given != 1)
		return cli_usage("wants ids, or --from, or --owner, and only one of them");
	if (from)
		return read_list(job, from);
	for (int i = 0; i < count && code == CLI_DONE; i++)
		code = cli_parse_number(ids[i], &id) < 0
			       ? cli_usage("\"%s\" is not a block's id", ids[i])
			       : add_id(job, id);
	return code;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct rm_job job = {.batch = 1000};
	const char *from = NULL;
	uint64_t owner = 0;
	bool owner_given = false;
	const struct cli_option options[] = {
		{"from", 0, CLI_TEXT, &from, NULL, false},
		{"owner", 0, CLI_NUMBER, &owner, &owner_given, false},
		{"batch", 0, CLI_NUMBER, &job.batch, NULL, false},
		{0},
	};
	int first, code = cli_parse(verb, options, argc, argv, 0, INT_MAX, &first);

	if (code >= 0)
		return code;
	if (job.batch == 0)
		return cli_usage("--batch 0: a transaction has at least one block");
	if (job.batch > CLI_BATCH_MOST)
		job.batch = CLI_BATCH_MOST;
	code = collect(&job, from, owner_given, argv + first, argc - first);
	if (code == CLI_DONE) {
		cli_catch_signals();
		code = cli_store_open(false, &job.store);
	}
	if (job.store) {
		code = owner_given ? delete_of_owner(&job, owner) : delete_listed(&job);
		/* Also after a failure: the batches before it are deleted. */
		print_result(&job);
		if (job.missing)
			code = cli_worse(code, CLI_MISSING);
		code = cli_store_close(job.store, code);
	}
	free(job.ids);
	return code;
}

const struct cli_verb cli_verb_rm = {"rm", "delete blocks", help, run};
