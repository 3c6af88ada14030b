/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/import.c - lacuna import: every regular file below a directory becomes a block.
 *
 * The order of one batch is the whole point: put the blocks, make their lines durable aside,
 * commit, add the lines to the manifest (see manifest.h). A kill at any moment leaves a manifest
 * that names only what is in the store, and the next import with it makes up for the rest.
 */
#include "cli/json.h"
#include "cli/manifest.h"
#include "cli/source.h"

#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char help[] =
	"usage: lacuna import STORE DIR --manifest FILE [--batch N] [--owner N]\n"
	"\n"
	"Puts every regular file below DIR into the store, in order of name, and writes a line for "
	"each\n"
	"to FILE once it is durable: ID, tab, LENGTH, tab, PATH relative to DIR, with tab, "
	"newline,\n"
	"return and backslash as \\t \\n \\r \\\\. Symbolic links are not followed; other "
	"filesystems below\n"
	"DIR are included; the store, if it is below DIR, is not, and neither is FILE.\n"
	"\n"
	"Where FILE exists, the files that it names are passed over. So an import that was "
	"interrupted,\n"
	"killed even, is resumed by the same command, and no block is in the store twice or "
	"without a\n"
	"line: while it runs, FILE.pending holds what is being committed.\n"
	"\n"
	"Files that vanish, are not readable or shrink while read are named and passed over; the "
	"exit\n"
	"status is then 1.\n"
	"\n"
	"  --manifest FILE  the list\n"
	"  --batch N        files in one transaction; default 1000; also cut at 32M of payload\n"
	"  --owner N        a number of your own to find the blocks by; default 0\n"
	"\n"
	"example: lacuna import /srv/blocks /usr/share --manifest share.list\n";

struct import_job {
	struct lac_store *store;
	struct lac_txn *txn;
	struct cli_manifest manifest;
	struct cli_progress progress;
	uint8_t *buffer;
	char *root; /* DIR without slashes at its end */
	dev_t store_device;
	ino_t store_inode;
	uint64_t batch, owner;
	uint64_t batch_bytes;	   /* payload of the open batch */
	uint64_t files, bytes;	   /* imported and durable */
	uint64_t seen, seen_bytes; /* for progress, those passed over included */
	uint64_t skipped, failed;
};

/* ---- batches ---- */

static int commit(struct import_job *job)
{
	struct lac_error err = {0};
	struct lac_txn *txn = job->txn;
	uint64_t count = job->manifest.count;
	int rc;

	job->txn = NULL;
	if (!txn)
		return CLI_DONE;
	if (count == 0 || cli_manifest_prepare(&job->manifest) != CLI_DONE) {
		lac_txn_abort(txn);
		return count ? CLI_FAILED : CLI_DONE;
	}
	rc = lac_txn_commit(txn, NULL, &err);
	if (rc == -E2BIG)
		cli_message("a smaller --batch or a larger --cache will do");
	if (rc < 0)
		return cli_worse(CLI_FAILED, cli_fail(rc, &err, "commit"));
	if (cli_manifest_confirm(&job->manifest) != CLI_DONE)
		return CLI_FAILED;
	job->files += count;
	job->bytes += job->batch_bytes;
	job->batch_bytes = 0;
	return CLI_DONE;
}

/* CLI_MISSING: this file was passed over and that was said. */
static int import_file(struct import_job *job, const char *path, const char *relative)
{
	struct cli_source source;
	struct lac_error err = {0};
	uint64_t id;
	int rc = 0, code = cli_source_open(&source, path, true, job->buffer);

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
		return cli_worse(CLI_FAILED, cli_fail(rc, &err, path));
	if (cli_manifest_add(&job->manifest, id, source.length, relative) != CLI_DONE)
		return CLI_FAILED;
	job->batch_bytes += source.length;
	if (job->manifest.count >= job->batch || job->batch_bytes >= CLI_BATCH_BYTES)
		return commit(job);
	return CLI_DONE;
}

/* ---- the walk ---- */

static int compare_names(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static FTS *open_walk(struct import_job *job, bool sorted)
{
	char *roots[] = {job->root, NULL};
	/* No chdir: the store's path may be relative. */
	FTS *walk = fts_open(
		roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, sorted ? compare_names : NULL);

	if (!walk)
		cli_message("%s: %s", job->root, strerror(errno));
	return walk;
}

static bool is_store(const struct import_job *job, const FTSENT *entry)
{
	return entry->fts_statp->st_ino == job->store_inode &&
	       entry->fts_statp->st_dev == job->store_device;
}

/* One regular file of the walk. */
static int visit_file(struct import_job *job, const FTSENT *entry)
{
	const char *relative = entry->fts_path + strlen(job->root);
	int code;

	while (*relative == '/')
		relative++;
	if (cli_manifest_is(&job->manifest, entry->fts_statp->st_dev, entry->fts_statp->st_ino))
		return CLI_DONE;
	job->seen++;
	job->seen_bytes += (uint64_t)entry->fts_statp->st_size;
	if (cli_manifest_has(&job->manifest, relative)) {
		job->skipped++;
		return CLI_DONE;
	}
	code = import_file(job, entry->fts_path, relative);
	if (code == CLI_MISSING && !cli_stopped())
		job->failed++;
	cli_progress_update(&job->progress, job->seen, job->seen_bytes);
	return code;
}

static int visit(struct import_job *job, FTS *walk, FTSENT *entry)
{
	switch (entry->fts_info) {
	case FTS_D:
		if (is_store(job, entry))
			fts_set(walk, entry, FTS_SKIP);
		return CLI_DONE;
	case FTS_F: return visit_file(job, entry);
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		cli_message("%s: %s", entry->fts_path, strerror(entry->fts_errno));
		job->failed++;
		return entry->fts_errno == ENOMEM || entry->fts_errno == EMFILE ? CLI_FAILED
										: CLI_MISSING;
	default: /* the end of a directory, links, sockets, devices */ return CLI_DONE;
	}
}

static int import_tree(struct import_job *job)
{
	FTS *walk = open_walk(job, true);
	FTSENT *entry;
	int code = CLI_DONE, worst = CLI_DONE;

	if (!walk)
		return CLI_FAILED;
	while (code <= CLI_MISSING && !cli_stopped()) {
		errno = 0;
		entry = fts_read(walk);
		if (!entry && errno) {
			cli_message("%s: %s", job->root, strerror(errno));
			code = CLI_FAILED;
		}
		if (!entry)
			break;
		code = visit(job, walk, entry);
		worst = cli_worse(worst, code);
	}
	worst = cli_worse(worst, code);
	fts_close(walk);
	/* Also after a failure: what did go in before it is worth keeping. */
	return cli_worse(worst, commit(job));
}

/* A first walk, so that the second can say how much is left. */
static void count_tree(struct import_job *job)
{
	FTS *walk = job->progress.on ? open_walk(job, false) : NULL;
	FTSENT *entry;

	while (walk && !cli_stopped() && (entry = fts_read(walk)) != NULL) {
		if (entry->fts_info == FTS_D && is_store(job, entry))
			fts_set(walk, entry, FTS_SKIP);
		if (entry->fts_info != FTS_F)
			continue;
		job->progress.items_total++;
		job->progress.bytes_total += (uint64_t)entry->fts_statp->st_size;
	}
	if (walk)
		fts_close(walk);
	job->progress.start_ns = cli_clock_ns();
}

/* ---- the verb ---- */

static void print_result(const struct import_job *job, uint64_t ns)
{
	double seconds = (double)ns / 1e9;
	char human[32], rate[32];
	struct cli_json json = {0};

	if (!cli_context.json) {
		printf("imported %" PRIu64 " files, %s in %.1f s (%s/s); %" PRIu64
		       " were there, %" PRIu64 " could not be read\n",
			job->files, cli_human(job->bytes, human), seconds,
			cli_human(
				(uint64_t)((double)job->bytes / (seconds > 0 ? seconds : 1)), rate),
			job->skipped, job->failed);
		return;
	}
	cli_json_open(&json, NULL, '{');
	cli_json_number(&json, "files", job->files);
	cli_json_number(&json, "bytes", job->bytes);
	cli_json_number(&json, "skipped", job->skipped);
	cli_json_number(&json, "failed", job->failed);
	cli_json_seconds(&json, "seconds", ns);
	cli_json_close(&json, '}', true);
}

/* Where the walk must not go, and that DIR is one. */
static int look_around(struct import_job *job)
{
	struct stat st;

	if (stat(job->root, &st) < 0) {
		cli_message("%s: %s", job->root, strerror(errno));
		return CLI_FAILED;
	}
	if (!S_ISDIR(st.st_mode)) {
		cli_message("%s: not a directory", job->root);
		return CLI_FAILED;
	}
	if (stat(cli_context.store, &st) == 0) {
		job->store_device = st.st_dev;
		job->store_inode = st.st_ino;
	}
	return CLI_DONE;
}

static int import(struct import_job *job, const char *manifest_path)
{
	uint64_t start_ns;
	int code = look_around(job);

	if (code == CLI_DONE)
		code = cli_store_open(false, &job->store);
	if (code == CLI_DONE)
		code = cli_manifest_open(&job->manifest, manifest_path, job->store);
	if (code == CLI_DONE) {
		cli_progress_start(&job->progress, "files");
		count_tree(job);
		start_ns = cli_clock_ns();
		code = import_tree(job);
		cli_progress_end(&job->progress);
		print_result(job, cli_clock_ns() - start_ns);
	}
	cli_manifest_close(&job->manifest);
	return cli_store_close(job->store, code);
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct import_job job = {.batch = 1000};
	const char *manifest_path = NULL;
	const struct cli_option options[] = {
		{"manifest", 0, CLI_TEXT, &manifest_path, NULL, false},
		{"batch", 0, CLI_NUMBER, &job.batch, NULL, false},
		{"owner", 0, CLI_NUMBER, &job.owner, NULL, false},
		{0},
	};
	size_t length;
	int first, code = cli_parse(verb, options, argc, argv, 1, 1, &first);

	if (code >= 0)
		return code;
	if (!manifest_path || !*manifest_path)
		return cli_usage("--manifest is missing");
	if (job.batch == 0)
		return cli_usage("--batch 0: a transaction has at least one file");
	if (job.batch > CLI_BATCH_MOST)
		job.batch = CLI_BATCH_MOST;
	cli_catch_signals();
	job.buffer = malloc(CLI_PIECE_BYTES);
	job.root = strdup(argv[first]);
	if (!job.buffer || !job.root) {
		code = cli_fail(-ENOMEM, NULL, NULL);
	} else {
		for (length = strlen(job.root); length > 1 && job.root[length - 1] == '/'; length--)
			job.root[length - 1] = '\0';
		code = import(&job, manifest_path);
	}
	free(job.root);
	free(job.buffer);
	return code;
}

const struct cli_verb cli_verb_import = {"import", "put a whole directory into it", help, run};
