/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/manifest.c - the list of imported files; see manifest.h for how it survives a kill.
 *
 * The pending file is overwritten in place, so after a power cut it may hold anything: only one
 * whose last line has the hash of the others counts. One that does not was never synced, and the
 * commit comes after the sync.
 */
#include "cli/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- lines ---- */

/* Undoes the escapes in place. */
static int unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text != '\\') {
			*to++ = *text;
			continue;
		}
		switch (*++text) {
		case 't': *to++ = '\t'; break;
		case 'n': *to++ = '\n'; break;
		case 'r': *to++ = '\r'; break;
		case '\\': *to++ = '\\'; break;
		default: return -EBADMSG;
		}
	}
	*to = '\0';
	return 0;
}

int cli_manifest_parse(char *text, size_t size, struct cli_manifest_line *ret_line)
{
	char *length = memchr(text, '\t', size), *path;

	if (!length || strlen(text) != size)
		return -EBADMSG;
	*length++ = '\0';
	path = strchr(length, '\t');
	if (!path)
		return -EBADMSG;
	*path++ = '\0';
	if (cli_parse_number(text, &ret_line->id) < 0 ||
		cli_parse_number(length, &ret_line->length) < 0 || strchr(path, '\t') || !*path)
		return -EBADMSG;
	ret_line->path = path;
	return unescape(path);
}

int cli_manifest_next(struct cli_manifest_reader *reader, struct cli_manifest_line *ret_line)
{
	ssize_t size;

	errno = 0;
	size = getline(&reader->text, &reader->room, reader->in);
	if (size < 0)
		return feof(reader->in) ? 1 : errno ? -errno : -EIO;
	reader->number++;
	if (reader->text[size - 1] != '\n')
		return -ENODATA;
	reader->end_bytes += (uint64_t)size;
	reader->text[size - 1] = '\0';
	return cli_manifest_parse(reader->text, (size_t)size - 1, ret_line);
}

/* Room for more bytes of the open batch. */
static int make_room(struct cli_manifest *manifest, size_t more)
{
	size_t room = manifest->room ? manifest->room : 4096;
	char *lines;

	while (room - manifest->used < more)
		room *= 2;
	if (room == manifest->room)
		return CLI_DONE;
	lines = realloc(manifest->lines, room);
	if (!lines)
		return cli_fail(-ENOMEM, NULL, NULL);
	manifest->lines = lines;
	manifest->room = room;
	return CLI_DONE;
}

int cli_manifest_add(struct cli_manifest *manifest, uint64_t id, uint64_t length, const char *path)
{
	char *at;

	if (make_room(manifest, 2 * strlen(path) + 64) != CLI_DONE)
		return CLI_FAILED;
	at = manifest->lines + manifest->used;
	at += sprintf(at, "%" PRIu64 "\t%" PRIu64 "\t", id, length);
	for (; *path; path++) {
		static const char plain[] = "\t\n\r\\", escape[] = "tnr\\";
		const char *special = strchr(plain, *path);

		if (special)
			*at++ = '\\';
		*at++ = special ? escape[special - plain] : *path;
	}
	*at++ = '\n';
	manifest->used = (size_t)(at - manifest->lines);
	manifest->count++;
	return CLI_DONE;
}

void cli_manifest_drop(struct cli_manifest *manifest)
{
	manifest->used = 0;
	manifest->count = 0;
}

/* ---- files ---- */

static int fail(const char *verb, const char *path)
{
	cli_message("%s %s: %s", verb, path, strerror(errno));
	return CLI_FAILED;
}

static int write_all(int fd, const char *path, const char *bytes, size_t length)
{
	while (length) {
		ssize_t n = write(fd, bytes, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail("write", path);
		bytes += n;
		length -= (size_t)n;
	}
	return CLI_DONE;
}

static uint64_t hash_bytes(const char *bytes, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
	return hash;
}

int cli_manifest_prepare(struct cli_manifest *manifest)
{
	char seal[128];
	int length = snprintf(seal, sizeof(seal), "sealed\t%s\t%" PRIu64 "\t%016" PRIx64 "\n",
		manifest->uuid, manifest->count, hash_bytes(manifest->lines, manifest->used));

	if (ftruncate(manifest->pending_fd, 0) < 0 || lseek(manifest->pending_fd, 0, SEEK_SET) < 0)
		return fail("write", manifest->pending_path);
	if (write_all(manifest->pending_fd, manifest->pending_path, manifest->lines,
		    manifest->used) != CLI_DONE ||
		write_all(manifest->pending_fd, manifest->pending_path, seal, (size_t)length) !=
			CLI_DONE)
		return CLI_FAILED;
	/* Before this nothing of the batch may be in the store; after it everything may be. */
	if (fdatasync(manifest->pending_fd) < 0)
		return fail("sync", manifest->pending_path);
	return CLI_DONE;
}

int cli_manifest_confirm(struct cli_manifest *manifest)
{
	if (write_all(manifest->fd, manifest->path, manifest->lines, manifest->used) != CLI_DONE)
		return CLI_FAILED;
	/* Before this the pending file is the only durable name of the batch. */
	if (fdatasync(manifest->fd) < 0)
		return fail("sync", manifest->path);
	if (ftruncate(manifest->pending_fd, 0) < 0)
		return fail("write", manifest->pending_path);
	cli_manifest_drop(manifest);
	return CLI_DONE;
}

/* Makes the names of the two files durable. */
static int sync_directory(const char *path)
{
	char *copy = strdup(path);
	int fd, code = CLI_DONE;

	if (!copy)
		return cli_fail(-ENOMEM, NULL, NULL);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		code = fail("sync the directory of", path);
	if (fd >= 0)
		close(fd);
	free(copy);
	return code;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_paths(struct cli_manifest *manifest)
{
	if (manifest->path_count)
		qsort(manifest->paths, manifest->path_count, sizeof(*manifest->paths),
			compare_paths);
}

static int keep_path(struct cli_manifest *manifest, const struct cli_manifest_line *line)
{
	if (manifest->path_count == manifest->path_room) {
		size_t room = manifest->path_room ? 2 * manifest->path_room : 1024;
		char **paths = reallocarray(manifest->paths, room, sizeof(*paths));

		if (!paths)
			return cli_fail(-ENOMEM, NULL, NULL);
		manifest->paths = paths;
		manifest->path_room = room;
	}
	manifest->paths[manifest->path_count] = strdup(line->path);
	if (!manifest->paths[manifest->path_count])
		return cli_fail(-ENOMEM, NULL, NULL);
	manifest->path_count++;
	if (line->id > manifest->highest_id)
		manifest->highest_id = line->id;
	return CLI_DONE;
}

/* Opens path once more for reading lines; the reader's text and file are the caller's to free. */
static int open_reader(struct cli_manifest_reader *reader, int fd, const char *path)
{
	int copy = dup(fd);

	*reader = (struct cli_manifest_reader){0};
	if (copy >= 0)
		reader->in = fdopen(copy, "r");
	if (!reader->in || fseek(reader->in, 0, SEEK_SET) < 0) {
		int code = fail("read", path);

		if (reader->in)
			fclose(reader->in);
		else if (copy >= 0)
			close(copy);
		reader->in = NULL;
		return code;
	}
	return CLI_DONE;
}

static void close_reader(struct cli_manifest_reader *reader)
{
	if (reader->in)
		fclose(reader->in);
	free(reader->text);
}

static int read_lines(struct cli_manifest *manifest)
{
	struct cli_manifest_reader reader;
	struct cli_manifest_line line;
	int rc = 0, code = open_reader(&reader, manifest->fd, manifest->path);

	while (code == CLI_DONE && (rc = cli_manifest_next(&reader, &line)) == 0)
		code = keep_path(manifest, &line);
	if (code == CLI_DONE && rc == -ENODATA) {
		if (ftruncate(manifest->fd, (off_t)reader.end_bytes) < 0)
			code = fail("cut the unfinished last line off", manifest->path);
	} else if (code == CLI_DONE && rc < 0) {
		cli_message("read %s: line %" PRIu64 ": %s", manifest->path, reader.number,
			rc == -EBADMSG ? "not ID, tab, LENGTH, tab, PATH" : strerror(-rc));
		code = CLI_FAILED;
	}
	close_reader(&reader);
	sort_paths(manifest);
	return code;
}

bool cli_manifest_has(const struct cli_manifest *manifest, const char *path)
{
	return manifest->path_count &&
	       bsearch(&path, manifest->paths, manifest->path_count, sizeof(path), compare_paths);
}

bool cli_manifest_is(const struct cli_manifest *manifest, dev_t device, ino_t inode)
{
	struct stat st;

	return (fstat(manifest->fd, &st) == 0 && st.st_dev == device && st.st_ino == inode) ||
	       (fstat(manifest->pending_fd, &st) == 0 && st.st_dev == device && st.st_ino == inode);
}

/* ---- resuming ---- */

/* The whole pending file as a string, or NULL after a message. */
static char *read_pending(const struct cli_manifest *manifest, size_t *ret_size)
{
	struct stat st;
	char *text;
	size_t done = 0;

	if (fstat(manifest->pending_fd, &st) < 0) {
		fail("read", manifest->pending_path);
		return NULL;
	}
	text = malloc((size_t)st.st_size + 1);
	if (!text) {
		cli_fail(-ENOMEM, NULL, NULL);
		return NULL;
	}
	while (done < (size_t)st.st_size) {
		ssize_t n = pread(
			manifest->pending_fd, text + done, (size_t)st.st_size - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			fail("read", manifest->pending_path);
			free(text);
			return NULL;
		}
		if (n == 0)
			break;
		done += (size_t)n;
	}
	text[done] = '\0';
	*ret_size = done;
	return text;
}

/* Length of the lines before the seal, or 0 when it is not sealed or another store's. */
static size_t sealed_length(const struct cli_manifest *manifest, const char *text, size_t size)
{
	char want[128];
	size_t at = size ? size - 1 : 0;
	int length;

	if (size == 0 || text[size - 1] != '\n')
		return 0;
	while (at > 0 && text[at - 1] != '\n')
		at--;
	length = snprintf(want, sizeof(want), "sealed\t%s\t", manifest->uuid);
	if (size - at < (size_t)length + 18 || memcmp(text + at, want, (size_t)length) != 0)
		return 0;
	snprintf(want, sizeof(want), "\t%016" PRIx64 "\n", hash_bytes(text, at));
	return strcmp(text + size - 18, want) == 0 ? at : 0;
}

/* Adds a pending line to the batch when the store has its block. */
static int adopt_line(
	struct cli_manifest *manifest, struct lac_store *store, char *text, size_t size)
{
	struct cli_manifest_line line;
	struct lac_block_info info;
	struct lac_error err = {0};
	int rc;

	if (cli_manifest_parse(text, size, &line) < 0) {
		cli_message("read %s: sealed, but a line is malformed", manifest->pending_path);
		return CLI_FAILED;
	}
	/* Ids only grow, so this one is in the manifest already. */
	if (line.id <= manifest->highest_id)
		return CLI_DONE;
	rc = lac_block_stat(store, line.id, &info, &err);
	if (rc == -ENOENT)
		return CLI_DONE;
	if (rc < 0)
		return cli_fail(rc, &err, manifest->pending_path);
	if (info.length != line.length)
		return CLI_DONE;
	if (keep_path(manifest, &line) != CLI_DONE)
		return CLI_FAILED;
	return cli_manifest_add(manifest, line.id, line.length, line.path);
}

/* Settles the batch that was open when an earlier import ended. */
static int adopt_pending(struct cli_manifest *manifest, struct lac_store *store)
{
	size_t size = 0, end;
	char *text = read_pending(manifest, &size), *line = text;
	int code = text ? CLI_DONE : CLI_FAILED;

	end = text ? sealed_length(manifest, text, size) : 0;
	while (code == CLI_DONE && end && line < text + end) {
		char *next = strchr(line, '\n');

		if (!next)
			break;
		*next = '\0';
		code = adopt_line(manifest, store, line, (size_t)(next - line));
		line = next + 1;
	}
	free(text);
	if (code != CLI_DONE || manifest->count == 0)
		return code;
	sort_paths(manifest);
	cli_message("%s: %" PRIu64 " blocks of an interrupted batch are in the store; added",
		manifest->path, manifest->count);
	return cli_manifest_confirm(manifest);
}

/* A manifest of another store would make us pass over files that this one does not have. */
static int check_store(struct cli_manifest *manifest, struct lac_store *store)
{
	struct lac_store_stats stats = {.size = sizeof(stats)};
	struct lac_error err = {0};
	int rc = lac_store_stat(store, &stats, &err);

	if (rc < 0)
		return cli_fail(rc, &err, NULL);
	for (size_t i = 0; i < sizeof(stats.uuid); i++)
		sprintf(manifest->uuid + 2 * i, "%02x", stats.uuid[i]);
	if (manifest->highest_id < stats.next_id)
		return CLI_DONE;
	cli_message("%s: names block %" PRIu64 ", but this store gave out none from %" PRIu64
		    " on: it is another store's",
		manifest->path, manifest->highest_id, stats.next_id);
	return CLI_FAILED;
}

int cli_manifest_open(struct cli_manifest *manifest, const char *path, struct lac_store *store)
{
	struct stat st;
	int code;

	*manifest = (struct cli_manifest){.path = path, .fd = -1, .pending_fd = -1};
	if (asprintf(&manifest->pending_path, "%s.pending", path) < 0) {
		manifest->pending_path = NULL;
		return cli_fail(-ENOMEM, NULL, NULL);
	}
	manifest->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (manifest->fd < 0)
		return fail("open", path);
	manifest->pending_fd = open(manifest->pending_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (manifest->pending_fd < 0)
		return fail("open", manifest->pending_path);
	if (fstat(manifest->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		cli_message("open %s: not a regular file", path);
		return CLI_FAILED;
	}
	code = sync_directory(path);
	if (code == CLI_DONE)
		code = read_lines(manifest);
	if (code == CLI_DONE)
		code = check_store(manifest, store);
	return code == CLI_DONE ? adopt_pending(manifest, store) : code;
}

void cli_manifest_close(struct cli_manifest *manifest)
{
	struct stat st;

	if (!manifest->pending_path)
		return;
	if (manifest->pending_fd >= 0) {
		if (fstat(manifest->pending_fd, &st) == 0 && st.st_size == 0)
			unlink(manifest->pending_path);
		close(manifest->pending_fd);
	}
	if (manifest->fd >= 0)
		close(manifest->fd);
	for (size_t i = 0; i < manifest->path_count; i++)
		free(manifest->paths[i]);
	free(manifest->paths);
	free(manifest->lines);
	free(manifest->pending_path);
	*manifest = (struct cli_manifest){0};
}
