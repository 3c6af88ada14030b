/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/export.c - lacuna export: the files of a manifest back into a directory.
 *
 * A manifest may come from anyone, so nothing is written outside DIR: a path has plain parts only,
 * and each directory is entered by openat without following links.
 */
#include "cli/json.h"
#include "cli/manifest.h"
#include "cli/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] = "usage: lacuna export STORE --manifest FILE DIR\n"
			   "\n"
			   "Writes each block that FILE names to DIR/PATH, as import found it, "
			   "making directories where\n"
			   "they are missing and replacing files. Every byte is verified before it "
			   "is written, and a file\n"
			   "gets its name only when it is whole. A block that is missing or "
			   "damaged is named and passed\n"
			   "over (exit status 1 or 4), and so is a path that leads out of DIR (8). "
			   "Links inside DIR are\n"
			   "not followed.\n"
			   "\n"
			   "  --manifest FILE  the list that import wrote\n"
			   "\n"
			   "example: lacuna export /srv/blocks --manifest share.list /tmp/share\n";

struct export_job {
	struct lac_store *store;
	struct cli_progress progress;
	uint8_t *buffer;
	int root_fd;
	char *parent;  /* the path whose directory parent_fd is; "" is DIR */
	int parent_fd; /* kept from one file to the next, which mostly are neighbours */
	uint64_t files, bytes, missing, damaged, refused;
};

/* Plain parts between single slashes, nothing absolute, no dots. */
static bool is_inside(const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");

		if (length == 0 || (length == 1 && path[0] == '.') ||
			(length == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += length;
		if (*path == '/' && *++path == '\0')
			return false;
	}
	return true;
}

/* The directory of the first `length` bytes of path, made where it is missing; a new descriptor, or
   a negative errno. */
static int enter_parent(const struct export_job *job, const char *path, size_t length)
{
	char part[256];
	int fd = dup(job->root_fd);

	while (fd >= 0 && length) {
		size_t size = strcspn(path, "/");
		int next;

		if (size > length)
			size = length;
		if (size >= sizeof(part)) {
			close(fd);
			return -ENAMETOOLONG;
		}
		memcpy(part, path, size);
		part[size] = '\0';
		next = openat(fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && errno == ENOENT &&
			(mkdirat(fd, part, 0777) == 0 || errno == EEXIST))
			next = openat(fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			next = -errno;
		close(fd);
		if (next < 0)
			return next;
		fd = next;
		size += size < length;
		path += size;
		length -= size;
	}
	return fd < 0 ? -errno : fd;
}

/* Sets parent_fd to the directory of path. */
static int set_parent(struct export_job *job, const char *path, size_t length)
{
	char *parent;
	int fd;

	if (job->parent && strlen(job->parent) == length && memcmp(job->parent, path, length) == 0)
		return CLI_DONE;
	parent = strndup(path, length);
	fd = parent ? enter_parent(job, path, length) : -ENOMEM;
	if (fd < 0) {
		cli_message("write %s: %s", path,
			fd == -ELOOP || fd == -ENOTDIR ? "a part of the path is not a directory"
						       : strerror(-fd));
		free(parent);
		return CLI_FAILED;
	}
	if (job->parent_fd >= 0)
		close(job->parent_fd);
	free(job->parent);
	job->parent = parent;
	job->parent_fd = fd;
	return CLI_DONE;
}

static int export_block(struct export_job *job, const struct cli_manifest_line *line)
{
	const char *slash = strrchr(line->path, '/');
	const char *name = slash ? slash + 1 : line->path;
	struct cli_target target;
	struct lac_block_info info;
	struct lac_error err = {0};
	uint64_t bytes = 0;
	int rc, code;

	rc = lac_block_stat(job->store, line->id, &info, &err);
	if (rc < 0)
		return cli_fail(rc, &err, line->path);
	if (info.length != line->length) {
		cli_message("%s: block %" PRIu64 " has %" PRIu64
			    " bytes, the manifest says %" PRIu64,
			line->path, line->id, info.length, line->length);
		return CLI_FAILED;
	}
	code = set_parent(job, line->path, slash ? (size_t)(slash - line->path) : 0);
	if (code == CLI_DONE)
		code = cli_target_open(&target, job->parent_fd, name, line->path);
	if (code != CLI_DONE)
		return code;
	code = cli_block_copy(
		job->store, line->id, 0, info.length, target.fd, line->path, job->buffer, &bytes);
	if (code == CLI_DONE) {
		code = cli_target_commit(&target, false);
	} else {
		/* The message named the block only. */
		if (code == CLI_DAMAGE || code == CLI_MISSING)
			cli_message("%s: not written", line->path);
		cli_target_abort(&target);
	}
	if (code == CLI_DONE)
		job->bytes += bytes;
	return code;
}

/* One line; what it says about the whole is in the counts. CLI_FAILED ends the verb. */
static int export_line(struct export_job *job, const struct cli_manifest_line *line)
{
	int code;

	if (!is_inside(line->path)) {
		cli_message("%s: refused, not a plain path below the directory", line->path);
		job->refused++;
		return CLI_DONE;
	}
	code = export_block(job, line);
	job->files += code == CLI_DONE;
	job->missing += code == CLI_MISSING;
	job->damaged += code == CLI_DAMAGE;
	return code == CLI_FAILED ? CLI_FAILED : CLI_DONE;
}

static int export_lines(struct export_job *job, const char *path)
{
	struct cli_manifest_reader reader = {0};
	struct cli_manifest_line line;
	int rc, code = CLI_DONE;

	reader.in = fopen(path, "re");
	if (!reader.in) {
		cli_message("read %s: %s", path, strerror(errno));
		return CLI_FAILED;
	}
	while (code == CLI_DONE && !cli_stopped() &&
		(rc = cli_manifest_next(&reader, &line)) != 1) {
		if (rc == 0) {
			code = export_line(job, &line);
		} else if (rc == -ENODATA) {
			cli_message("read %s: line %" PRIu64 " is cut off, passed over", path,
				reader.number);
			job->missing++;
		} else {
			cli_message("read %s: line %" PRIu64 ": %s", path, reader.number,
				rc == -EBADMSG ? "not ID, tab, LENGTH, tab, PATH" : strerror(-rc));
			code = CLI_FAILED;
		}
		cli_progress_update(&job->progress, job->files, job->bytes);
	}
	free(reader.text);
	fclose(reader.in);
	return code;
}

static void print_result(const struct export_job *job, uint64_t ns)
{
	double seconds = (double)ns / 1e9;
	char human[32];
	struct cli_json json = {0};

	if (!cli_context.json) {
		printf("exported %" PRIu64 " files, %s in %.1f s; %" PRIu64 " missing, %" PRIu64
		       " damaged, %" PRIu64 " refused\n",
			job->files, cli_human(job->bytes, human), seconds, job->missing,
			job->damaged, job->refused);
		return;
	}
	cli_json_open(&json, NULL, '{');
	cli_json_number(&json, "files", job->files);
	cli_json_number(&json, "bytes", job->bytes);
	cli_json_number(&json, "missing", job->missing);
	cli_json_number(&json, "damaged", job->damaged);
	cli_json_number(&json, "refused", job->refused);
	cli_json_seconds(&json, "seconds", ns);
	cli_json_close(&json, '}', true);
}

static int export_all(struct export_job *job, const char *manifest_path, const char *dir)
{
	uint64_t start_ns = cli_clock_ns();
	int code;

	if ((mkdir(dir, 0777) < 0 && errno != EEXIST) ||
		(job->root_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		cli_message("%s: %s", dir, strerror(errno));
		return CLI_FAILED;
	}
	cli_progress_start(&job->progress, "files");
	code = export_lines(job, manifest_path);
	/* One sync for all of them: a sync a file would cost more than the whole copy. */
	if (syncfs(job->root_fd) < 0) {
		cli_message("sync %s: %s", dir, strerror(errno));
		code = CLI_FAILED;
	}
	cli_progress_end(&job->progress);
	print_result(job, cli_clock_ns() - start_ns);
	if (job->missing)
		code = cli_worse(code, CLI_MISSING);
	if (job->damaged)
		code = cli_worse(code, CLI_DAMAGE);
	if (job->refused)
		code = cli_worse(code, CLI_FAILED);
	return code;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct export_job job = {.root_fd = -1, .parent_fd = -1};
	const char *manifest_path = NULL;
	const struct cli_option options[] = {
		{"manifest", 0, CLI_TEXT, &manifest_path, NULL, false},
		{0},
	};
	int first, code = cli_parse(verb, options, argc, argv, 1, 1, &first);

	if (code >= 0)
		return code;
	if (!manifest_path || !*manifest_path)
		return cli_usage("--manifest is missing");
	cli_catch_signals();
	job.buffer = malloc(CLI_PIECE_BYTES);
	code = job.buffer ? cli_store_open(true, &job.store) : cli_fail(-ENOMEM, NULL, NULL);
	if (code == CLI_DONE)
		code = export_all(&job, manifest_path, argv[first]);
	code = cli_store_close(job.store, code);
	if (job.parent_fd >= 0)
		close(job.parent_fd);
	if (job.root_fd >= 0)
		close(job.root_fd);
	free(job.parent);
	free(job.buffer);
	return code;
}

const struct cli_verb cli_verb_export = {"export", "write the files of a manifest back", help, run};
