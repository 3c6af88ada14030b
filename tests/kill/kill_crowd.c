/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/kill/kill_crowd.c - kills kill_writer, whose threads have several transactions under way,
 * and verifies by its log what the store holds.
 *
 *   kill_crowd run WRITER STORE LOG ROUNDS SEED  kills ROUNDS writers and more in their recovery
 *   kill_crowd shutdown WRITER STORE LOG SEED    shuts the filesystem down below a writer, without
 *                                                flushing its journal
 *   kill_crowd verify STORE LOG                  what has to follow it, mounted again
 *
 * Verified: lac_check with data finds nothing wrong before recovery and after; every acknowledged
 * block is there byte for byte; every acknowledged delete holds; each transaction that was under
 * way is there whole or not at all; nothing else is there. What became of those under way is
 * appended to the log ("= N" or "! N"), so that one log tells the story of all sessions.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/blocks.h"
#include "lacuna/check.h"
#include "lacuna/lacuna.h"

enum { OPEN_MAX = 16, IDS_MAX = 4 << 20, LENGTH_MAX = 4 << 20, PATIENCE_MS = 4000 };

#define SHUTDOWN_WITHOUT_FLUSH _IOR('X', 125, uint32_t) /* XFS and ext4 alike; argument 2 */

struct block {
	uint64_t seed, length;
	bool live;
};

/* A transaction under way: its line in the log without "? N". */
struct open_txn {
	uint64_t number;
	char *words;
};

static struct block *blocks; /* by id */
static uint64_t ids_end;     /* above the largest id */
static struct open_txn open_txns[OPEN_MAX];
static unsigned open_count;
static uint64_t acknowledged;
static uint8_t got[LENGTH_MAX];

static void die(const char *what, uint64_t number, const struct lac_error *err)
{
	fprintf(stderr, "kill_crowd: %s %" PRIu64 ": %s\n", what, number,
		err ? err->message : strerror(errno));
	exit(1);
}

/* ---- the log ---- */

/* The next "+ID:SEED:LENGTH" or "-ID"; false at the end of the line. */
static bool next_word(char **at, bool *ret_put, uint64_t *ret_id, struct block *ret)
{
	char *s = *at;

	while (*s == ' ')
		s++;
	if (*s != '+' && *s != '-')
		return false;
	*ret_put = *s == '+';
	*ret_id = strtoull(s + 1, &s, 10);
	if (*ret_put) {
		ret->seed = strtoull(s + 1, &s, 10);
		ret->length = strtoull(s + 1, &s, 10);
	}
	if (*ret_id >= IDS_MAX || (*s != ' ' && *s != '\n'))
		die("log: unexpected word at id", *ret_id, &(struct lac_error){0});
	*at = s;
	return true;
}

static void close_txn(uint64_t number, bool done)
{
	unsigned i = 0;
	struct block b;
	uint64_t id;
	bool is_put;
	char *at;

	while (i < open_count && open_txns[i].number != number)
		i++;
	if (i == open_count)
		die("log: nothing is known of transaction", number, &(struct lac_error){0});
	at = open_txns[i].words;
	while (done && next_word(&at, &is_put, &id, &b)) {
		if (is_put)
			blocks[id] = b;
		blocks[id].live = is_put;
		if (id >= ids_end)
			ids_end = id + 1;
	}
	acknowledged += done;
	free(open_txns[i].words);
	open_txns[i] = open_txns[--open_count];
}

static void read_log(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL, *rest;
	size_t room = 0;
	ssize_t n;

	blocks = calloc(IDS_MAX, sizeof *blocks);
	if (!blocks)
		die("calloc", 0, NULL);
	ids_end = open_count = 0;
	acknowledged = 0;
	/* A line without an end was cut by the kill, before the commit that it announces. */
	while (f && (n = getline(&line, &room, f)) > 0 && line[n - 1] == '\n') {
		uint64_t number = strtoull(line + 1, &rest, 10);

		if (line[0] != '?') {
			close_txn(number, line[0] == '=');
			continue;
		}
		if (open_count == OPEN_MAX)
			die("log: too many under way at", number, &(struct lac_error){0});
		open_txns[open_count++] =
			(struct open_txn){.number = number, .words = strdup(rest)};
	}
	free(line);
	if (f)
		fclose(f);
}

static void forget_log(void)
{
	while (open_count > 0)
		free(open_txns[--open_count].words);
	free(blocks);
	blocks = NULL;
}

/* ---- what the store holds ---- */

static int on_finding(void *arg, const struct lac_finding *finding)
{
	(void)arg;
	if (finding->severity == LAC_SEVERITY_NOTE)
		return 0;
	fprintf(stderr, "kill_crowd: check: %d %s at %" PRIu64 ": %s\n", finding->id, finding->path,
		finding->offset, finding->text);
	exit(1);
}

static void check(const char *dir)
{
	struct lac_check_options options = {
		.size = sizeof options, .data = true, .finding = on_finding};
	struct lac_check_result result;
	struct lac_error err = {0};

	if (lac_check(dir, &options, &result, &err) < 0)
		die("check", 0, &err);
}

static bool is_there(struct lac_store *s, uint64_t id, const struct block *want)
{
	struct lac_block_info info;
	struct lac_error err = {0};
	int64_t n = lac_block_stat(s, id, &info, &err);

	if (n == -ENOENT)
		return false;
	if (n == 0)
		n = lac_block_read(s, id, got, sizeof got, 0, &err);
	if (n < 0)
		die("read block", id, &err);
	if (info.owner != want->seed || (uint64_t)n != want->length ||
		!test_matches(got, (size_t)n, want->seed, 0))
		die("other bytes than were put in block", id, &err);
	return true;
}

/* That block id is gone tells nothing of a transaction that deletes it, when a later session, which
   found it there, deleted it too: acknowledged, or under way as well. */
static bool no_evidence(uint64_t id)
{
	unsigned deleters = 0;

	if (id < ids_end && blocks[id].seed != 0 && !blocks[id].live)
		return true;
	for (unsigned i = 0; i < open_count; i++) {
		char *at = open_txns[i].words;
		uint64_t other;
		struct block b;
		bool is_put;

		while (next_word(&at, &is_put, &other, &b))
			deleters += !is_put && other == id;
	}
	return deleters > 1;
}

/* Appends to the log what became of the transactions under way. */
static void settle(struct lac_store *s, const char *log)
{
	FILE *f = fopen(log, "a");

	/* A cut line gets an end, with a word that is none. */
	if (!f)
		die("open log", 0, NULL);
	while (open_count > 0) {
		struct open_txn *t = &open_txns[0];
		uint64_t id, words = 0, done = 0, number = t->number;
		char *at = t->words;
		struct block b;
		bool is_put;

		while (next_word(&at, &is_put, &id, &b)) {
			if (!is_put && no_evidence(id))
				continue;
			words++;
			done += is_there(s, id, is_put ? &b : &blocks[id]) == is_put;
		}
		if (done != 0 && done != words)
			die("there in part: transaction", number, &(struct lac_error){0});
		fprintf(f, "%c %" PRIu64 "\n", done ? '=' : '!', number);
		close_txn(number, done != 0);
	}
	if (fclose(f) != 0)
		die("write log", 0, NULL);
}

/* Cuts off a line without an end: what comes next must begin one. */
static void cut_log(const char *log)
{
	int fd = open(log, O_RDWR | O_CREAT, 0666);
	off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	char c = '\n';

	while (end > 0 && pread(fd, &c, 1, end - 1) == 1 && c != '\n')
		end--;
	if (end < 0 || ftruncate(fd, end) < 0)
		die("cut log", 0, NULL);
	close(fd);
}

static void verify(const char *dir, const char *log)
{
	struct lac_open_options options = {.size = sizeof options, .no_background = true};
	struct lac_error err = {0};
	struct lac_block_info info;
	struct lac_store *s;
	struct lac_iter *it;
	int rc;

	cut_log(log);
	read_log(log);
	check(dir);
	if (lac_store_open(dir, &options, &s, &err) < 0)
		die("open", 0, &err);
	settle(s, log);
	for (uint64_t id = 1; id < ids_end; id++)
		if (blocks[id].seed != 0 && is_there(s, id, &blocks[id]) != blocks[id].live)
			die(blocks[id].live ? "gone: acknowledged block"
					    : "back: acknowledged delete of block",
				id, &err);
	if (lac_iter_open(s, NULL, &it, &err) < 0)
		die("iterate", 0, &err);
	while ((rc = lac_iter_next(it, &info, &err)) == 0)
		if (info.id >= ids_end || !blocks[info.id].live)
			die("never committed: block", info.id, &err);
	lac_iter_close(it);
	if (rc < 0)
		die("iterate", 0, &err);
	if (lac_store_close(s, &err) < 0)
		die("close", 0, &err);
	check(dir);
	forget_log();
}

/* ---- the kill ---- */

static pid_t start_writer(
	const char *writer, const char *dir, const char *log, uint64_t session, uint64_t seed)
{
	char numbers[2][32];
	pid_t pid;

	snprintf(numbers[0], sizeof numbers[0], "%" PRIu64, session);
	snprintf(numbers[1], sizeof numbers[1], "%" PRIu64, seed);
	pid = fork();
	if (pid < 0)
		die("fork", 0, NULL);
	if (pid == 0) {
		execl(writer, writer, dir, log, numbers[0], numbers[1], (char *)NULL);
		_exit(127);
	}
	return pid;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t log_bytes(const char *log)
{
	struct stat st;

	return stat(log, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Until the writer has logged so much more; a slow disk ends it too. */
static void wait_for_log(const char *log, uint64_t more)
{
	uint64_t until = now_ms() + PATIENCE_MS, from = log_bytes(log);

	while (log_bytes(log) < from + more && now_ms() < until)
		usleep(500);
}

static void sleep_up_to(uint64_t *random, uint64_t us)
{
	usleep((useconds_t)(test_random(random) % us));
}

static void strike(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
		die("the writer ended by itself, status", (uint64_t)status, &(struct lac_error){0});
}

static void create(const char *dir)
{
	struct lac_create_options options = {
		.size = sizeof options, .container_bytes = 4 << 20, .segment_bytes = 1 << 20};
	struct lac_error err = {0};

	if (lac_store_create(dir, &options, &err) < 0)
		die("create", 0, &err);
}

/* Session numbers must not repeat within a log. */
static uint64_t next_session(const char *log)
{
	return log_bytes(log) + 1;
}

static void run(char **argv)
{
	const char *writer = argv[2], *dir = argv[3], *log = argv[4];
	uint64_t rounds = strtoull(argv[5], NULL, 10), random = strtoull(argv[6], NULL, 10);
	unsigned kills = 0;

	create(dir);
	for (uint64_t i = 0; i < rounds; i++) {
		pid_t pid = start_writer(writer, dir, log, next_session(log), test_random(&random));

		wait_for_log(log, 1 + test_random(&random) % 30000);
		sleep_up_to(&random, 20000);
		strike(pid);
		kills++;
		/* Every other time nobody but the next writer recovers, and is killed at that. */
		for (unsigned again = 0; i % 2 == 1 && again < 2; again++, kills++) {
			cut_log(log);
			pid = start_writer(
				writer, dir, log, next_session(log) + again, test_random(&random));
			sleep_up_to(&random, 30000);
			strike(pid);
		}
		verify(dir, log);
	}
	printf("%u kills, %" PRIu64 " commits, all there\n", kills, acknowledged);
}

static void shut_down(char **argv)
{
	const char *writer = argv[2], *dir = argv[3], *log = argv[4];
	uint64_t random = strtoull(argv[5], NULL, 10);
	uint32_t without_flush = 2;
	int fd, status;
	pid_t pid;

	if (access(dir, F_OK) != 0)
		create(dir);
	fd = open(dir, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die("open directory", 0, NULL);
	pid = start_writer(writer, dir, log, next_session(log), test_random(&random));
	wait_for_log(log, 1 + test_random(&random) % 60000);
	sleep_up_to(&random, 50000);
	if (ioctl(fd, SHUTDOWN_WITHOUT_FLUSH, &without_flush) < 0)
		die("shut the filesystem down", 0, NULL);
	close(fd);
	sleep_up_to(&random, 100000);
	kill(pid, SIGKILL); /* when it did not notice */
	waitpid(pid, &status, 0);
}

int main(int argc, char **argv)
{
	if (argc == 7 && strcmp(argv[1], "run") == 0) {
		run(argv);
	} else if (argc == 6 && strcmp(argv[1], "shutdown") == 0) {
		shut_down(argv);
	} else if (argc == 4 && strcmp(argv[1], "verify") == 0) {
		verify(argv[2], argv[3]);
		printf("%" PRIu64 " commits, all there\n", acknowledged);
	} else {
		return 16;
	}
	return 0;
}
