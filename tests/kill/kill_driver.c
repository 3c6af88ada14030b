/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/kill/kill_driver.c - a writer that is killed, and what its store holds afterwards.
 *
 *   kill_driver run DIR ROUNDS SEED     kills a writer ROUNDS times, verifies after each
 *   kill_driver shutdown DIR MODEL SEED shuts the filesystem down below a writer, without flushing
 * its journal, and saves what was acknowledged to MODEL kill_driver verify DIR MODEL verifies that,
 * after the filesystem was mounted again kill_driver full DIR                fills the disk,
 * deletes, reclaims, fills again
 *
 * The writer tells through a pipe what a transaction is about to do, and when it is acknowledged.
 * Bytes and length of a block follow from its owner tag.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/blocks.h"
#include "lacuna/check.h"
#include "lacuna/lacuna.h"

enum { BLOCKS_MAX = 60000, GROUP_MAX = 64, LENGTH_MAX = 1400000 };

#define SHUTDOWN_WITHOUT_FLUSH _IOR('X', 125, uint32_t) /* XFS and ext4 alike; argument 2 */

struct message {
	uint64_t type; /* 'P' a put to come, 'D' a delete to come, 'A' all of those are acknowledged
			*/
	uint64_t id, owner;
};

struct block {
	uint64_t id, owner;
	uint64_t live; /* 1 or 0 */
};

static struct model {
	uint64_t count, group_count;
	struct block blocks[BLOCKS_MAX];
	struct message group[GROUP_MAX]; /* not acknowledged: all of it or nothing */
} model;

static uint8_t bytes[LENGTH_MAX], got[LENGTH_MAX];

static void die(const char *what, const struct lac_error *err)
{
	fprintf(stderr, "kill_driver: %s: %s\n", what, err ? err->message : strerror(errno));
	exit(1);
}

static size_t length_of(uint64_t owner)
{
	uint64_t state = owner;

	switch (test_random(&state) % 16) {
	case 0: return 0;
	case 1: return 1048577 + test_random(&state) % 300000;
	case 2:
	case 3: return 4096;
	case 4:
	case 5:
	case 6: return test_random(&state) % 200000;
	default: return test_random(&state) % 5000;
	}
}

static int open_store(const char *dir, struct lac_store **ret, struct lac_error *err)
{
	struct lac_open_options open = {.size = sizeof open, .journal_bytes = 1 << 20};

	return lac_store_open(dir, &open, ret, err);
}

static void create_store(const char *dir)
{
	struct lac_create_options create = {
		.size = sizeof create, .container_bytes = 8 << 20, .segment_bytes = 1 << 20};
	struct lac_error err = {0};

	if (lac_store_create(dir, &create, &err) < 0)
		die("create", &err);
}

/* ---- the writer ---- */

static void tell(int fd, uint64_t type, uint64_t id, uint64_t owner)
{
	struct message m = {.type = type, .id = id, .owner = owner};

	if (write(fd, &m, sizeof m) != sizeof m)
		_exit(4);
}

static int one_transaction(struct lac_store *s, int fd, uint64_t *random, uint64_t *first_live)
{
	unsigned puts = 1 + (unsigned)(test_random(random) % 6);
	unsigned deletes = (unsigned)(test_random(random) % 5);
	struct lac_error err = {0};
	struct lac_txn *txn;
	int rc = lac_txn_begin(s, &txn, &err);

	for (unsigned i = 0; i < puts && rc == 0; i++) {
		uint64_t owner = test_random(random) | 1, id;

		test_fill(bytes, length_of(owner), owner);
		rc = lac_txn_put(txn, bytes, length_of(owner), owner, &id, &err);
		if (rc == 0)
			tell(fd, 'P', id, owner);
	}
	for (unsigned i = 0; i < deletes && rc == 0; i++) {
		uint64_t n = *first_live + test_random(random) % 40;

		if (n >= model.count || !model.blocks[n].live)
			continue;
		model.blocks[n].live = 0;
		rc = lac_txn_delete(txn, model.blocks[n].id, &err);
		if (rc == 0)
			tell(fd, 'D', model.blocks[n].id, 0);
	}
	while (*first_live < model.count && !model.blocks[*first_live].live)
		++*first_live;
	if (rc == 0)
		rc = lac_txn_commit(txn, NULL, &err);
	if (rc == 0)
		tell(fd, 'A', 0, 0);
	return rc;
}

static void writer(const char *dir, int fd, uint64_t random)
{
	struct lac_error err = {0};
	struct lac_store *s;
	uint64_t first_live = 0;
	int rc = open_store(dir, &s, &err);

	if (rc < 0) {
		fprintf(stderr, "writer: %s\n", err.message);
		_exit(3);
	}
	for (unsigned i = 0; rc == 0; i++) {
		rc = one_transaction(s, fd, &random, &first_live);
		if (rc == 0 && i % 40 == 17)
			rc = lac_store_reclaim(s, NULL, &err);
		if (rc == 0 && i % 60 == 31)
			rc = lac_store_checkpoint(s, &err);
	}
	_exit(2);
}

static pid_t start_writer(const char *dir, uint64_t seed, int *ret_fd)
{
	int fds[2];
	pid_t pid;

	if (pipe(fds) < 0)
		die("pipe", NULL);
	pid = fork();
	if (pid < 0)
		die("fork", NULL);
	if (pid == 0) {
		close(fds[0]);
		writer(dir, fds[1], seed);
	}
	close(fds[1]);
	*ret_fd = fds[0];
	return pid;
}

/* ---- what it said ---- */

static void forget_block(uint64_t id)
{
	for (uint64_t i = model.count; i-- > 0;)
		if (model.blocks[i].id == id) {
			model.blocks[i].live = 0;
			return;
		}
}

static void acknowledge(void)
{
	for (uint64_t i = 0; i < model.group_count; i++) {
		const struct message *m = &model.group[i];

		if (m->type == 'D') {
			forget_block(m->id);
			continue;
		}
		if (model.count == BLOCKS_MAX)
			die("too many blocks", &(struct lac_error){0});
		model.blocks[model.count++] =
			(struct block){.id = m->id, .owner = m->owner, .live = 1};
	}
	model.group_count = 0;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Listens until the pipe ends; calls strike once when `after_ms` have passed. */
static uint64_t listen_to(int fd, uint64_t after_ms, void (*strike)(void *arg), void *arg)
{
	uint64_t until = now_ms() + after_ms, acknowledged = 0;
	bool struck = false;
	struct message m;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (;;) {
		ssize_t n = read(fd, &m, sizeof m);

		if (n == 0)
			break;
		if (n == sizeof m && m.type == 'A') {
			acknowledge();
			acknowledged++;
		} else if (n == sizeof m && model.group_count < GROUP_MAX) {
			model.group[model.group_count++] = m;
		} else if (n < 0) {
			usleep(200);
		}
		if (!struck && now_ms() >= until) {
			struck = true;
			strike(arg);
		}
	}
	close(fd);
	return acknowledged;
}

/* ---- verification ---- */

static bool is_there(struct lac_store *s, uint64_t id, uint64_t owner)
{
	struct lac_block_info info;
	struct lac_error err = {0};
	int64_t n = lac_block_stat(s, id, &info, &err);

	if (n == -ENOENT)
		return false;
	if (n == 0)
		n = lac_block_read(s, id, got, sizeof got, 0, &err);
	if (n < 0)
		die("read", &err);
	if (owner != 0 && info.owner != owner)
		die("a block has another owner", &err);
	if ((size_t)n != length_of(info.owner) || !test_matches(got, (size_t)n, info.owner, 0))
		die("a block is not what was put", &err);
	return true;
}

/* The group that was under way is there whole, or not at all; then the model knows which. */
static void settle_group(struct lac_store *s)
{
	uint64_t done = 0;

	for (uint64_t i = 0; i < model.group_count; i++) {
		const struct message *m = &model.group[i];

		done += m->type == 'P' ? is_there(s, m->id, m->owner) : !is_there(s, m->id, 0);
	}
	/* What was told last may not be all of the group, but that only makes it smaller. */
	if (done != 0 && done != model.group_count)
		die("a transaction is there in part", &(struct lac_error){0});
	if (done != 0)
		acknowledge();
	model.group_count = 0;
}

static int on_finding(void *arg, const struct lac_finding *finding)
{
	(void)arg;
	if (finding->severity == LAC_SEVERITY_NOTE)
		return 0;
	fprintf(stderr, "kill_driver: check: %d %s: %s\n", finding->id, finding->path,
		finding->text);
	exit(1);
}

static void check(const char *dir)
{
	struct lac_check_options options = {
		.size = sizeof options, .data = true, .finding = on_finding};
	struct lac_check_result result;
	struct lac_error err = {0};

	if (lac_check(dir, &options, &result, &err) < 0)
		die("check", &err);
}

static void verify(const char *dir)
{
	struct lac_block_info info;
	struct lac_error err = {0};
	struct lac_store *s;
	struct lac_iter *it;
	uint64_t live = 0, listed = 0;
	int rc;

	check(dir);
	if (open_store(dir, &s, &err) < 0)
		die("open", &err);
	settle_group(s);
	for (uint64_t i = 0; i < model.count; i++) {
		const struct block *b = &model.blocks[i];

		if (is_there(s, b->id, b->live ? b->owner : 0) != (b->live == 1))
			die(b->live ? "an acknowledged block is gone"
				    : "an acknowledged delete is undone",
				&(struct lac_error){0});
		live += b->live;
	}
	if (lac_iter_open(s, NULL, &it, &err) < 0)
		die("iterate", &err);
	while ((rc = lac_iter_next(it, &info, &err)) == 0)
		listed++;
	lac_iter_close(it);
	if (rc < 0 || listed != live)
		die("there are blocks that nobody acknowledged", &err);
	if (lac_store_close(s, &err) < 0)
		die("close", &err);
	check(dir);
}

/* ---- modes ---- */

static void kill_it(void *arg)
{
	kill(*(pid_t *)arg, SIGKILL);
}

static void run(const char *dir, unsigned rounds, uint64_t seed)
{
	uint64_t acknowledged = 0;

	create_store(dir);
	for (unsigned i = 0; i < rounds; i++) {
		int fd, status;
		pid_t pid = start_writer(dir, test_random(&seed), &fd);

		acknowledged += listen_to(fd, 5 + test_random(&seed) % 350, kill_it, &pid);
		if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
			die("the writer ended by itself", &(struct lac_error){0});
		verify(dir);
	}
	printf("%u kills, %llu commits acknowledged, all there\n", rounds,
		(unsigned long long)acknowledged);
}

static void shut_down(void *arg)
{
	uint32_t without_flush = 2;
	int fd = open(arg, O_RDONLY);

	if (fd < 0 || ioctl(fd, SHUTDOWN_WITHOUT_FLUSH, &without_flush) < 0)
		die("shutdown", NULL);
	close(fd);
}

static void shutdown_below(const char *dir, const char *save, uint64_t seed)
{
	FILE *f = fopen(save, "rb");
	uint64_t acknowledged;
	pid_t pid;
	int fd;

	if (f && fread(&model, sizeof model, 1, f) != 1)
		die("read model", NULL);
	if (f)
		fclose(f);
	else
		create_store(dir);
	pid = start_writer(dir, seed, &fd);
	acknowledged = listen_to(fd, 100 + test_random(&seed) % 400, shut_down, (void *)dir);
	waitpid(pid, NULL, 0);
	f = fopen(save, "wb");
	if (!f || fwrite(&model, sizeof model, 1, f) != 1 || fclose(f) != 0)
		die("write model", NULL);
	printf("shut down after %llu commits\n", (unsigned long long)acknowledged);
}

static void verify_saved(const char *dir, const char *save)
{
	FILE *f = fopen(save, "rb");

	if (!f || fread(&model, sizeof model, 1, f) != 1)
		die("read model", NULL);
	fclose(f);
	verify(dir);
	f = fopen(save, "wb");
	if (!f || fwrite(&model, sizeof model, 1, f) != 1 || fclose(f) != 0)
		die("write model", NULL);
	printf("after mounting again: all there\n");
}

static uint64_t free_bytes(const char *dir)
{
	struct statvfs fs;

	if (statvfs(dir, &fs) < 0)
		die("statvfs", NULL);
	return (uint64_t)fs.f_bfree * fs.f_frsize;
}

/* Puts until there is no space; returns the blocks put. A failed commit may be indeterminate on a
   filesystem that copies on write; the store is opened again then. */
static unsigned fill_up(const char *dir, struct lac_store **s, uint64_t *random)
{
	unsigned puts = 0;

	for (;;) {
		uint64_t owner = test_random(random) | 1, id = 0;
		struct lac_error err = {0};
		struct lac_txn *txn;
		int rc = lac_txn_begin(*s, &txn, &err);

		if (rc < 0)
			die("begin", &err);
		test_fill(bytes, length_of(owner), owner);
		rc = lac_txn_put(txn, bytes, length_of(owner), owner, &id, &err);
		if (rc < 0)
			lac_txn_abort(txn);
		else
			rc = lac_txn_commit(txn, NULL, &err);
		if (rc == 0) {
			model.group[model.group_count++] =
				(struct message){.type = 'P', .id = id, .owner = owner};
			acknowledge();
			puts++;
			continue;
		}
		if (rc != -ENOSPC)
			fprintf(stderr, "put on a full disk: %s\n", err.message);
		if (lac_txn_begin(*s, &txn, &err) == 0) {
			lac_txn_abort(txn);
			return puts;
		}
		lac_store_close(*s, NULL);
		if (open_store(dir, s, &err) < 0)
			die("open on a full disk", &err);
		if (id != 0 && is_there(*s, id, owner)) {
			model.group[model.group_count++] =
				(struct message){.type = 'P', .id = id, .owner = owner};
			acknowledge();
		}
		return puts;
	}
}

static void delete_half(struct lac_store *s)
{
	for (uint64_t i = 0; i < model.count; i += 2) {
		struct lac_error err = {0};
		struct lac_txn *txn;

		if (!model.blocks[i].live)
			continue;
		if (lac_txn_begin(s, &txn, &err) < 0 ||
			lac_txn_delete(txn, model.blocks[i].id, &err) < 0 ||
			lac_txn_commit(txn, NULL, &err) < 0)
			die("delete on a full disk", &err);
		model.blocks[i].live = 0;
	}
}

static void full(const char *dir)
{
	struct lac_error err = {0};
	struct lac_store *s;
	uint64_t random = 5, before, after;
	unsigned first, second;

	create_store(dir);
	if (open_store(dir, &s, &err) < 0)
		die("open", &err);
	first = fill_up(dir, &s, &random);
	if (lac_store_close(s, &err) < 0)
		die("close on a full disk", &err);
	verify(dir);
	before = free_bytes(dir);
	if (open_store(dir, &s, &err) < 0)
		die("open on a full disk", &err);
	delete_half(s);
	if (lac_store_reclaim(s, NULL, &err) < 0 || lac_store_checkpoint(s, &err) < 0)
		die("reclaim on a full disk", &err);
	sync();
	after = free_bytes(dir);
	second = fill_up(dir, &s, &random);
	if (lac_store_close(s, &err) < 0)
		die("close", &err);
	verify(dir);
	printf("%u blocks filled it, half of them deleted gave %lld KiB, %u more fitted\n", first,
		(long long)(after - before) / 1024, second);
	if (first < 10 || second < first / 8)
		die("deleting gave no space", &(struct lac_error){0});
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc == 5 && strcmp(argv[1], "run") == 0)
		run(argv[2], (unsigned)atoi(argv[3]), strtoull(argv[4], NULL, 10));
	else if (argc == 5 && strcmp(argv[1], "shutdown") == 0)
		shutdown_below(argv[2], argv[3], strtoull(argv[4], NULL, 10));
	else if (argc == 4 && strcmp(argv[1], "verify") == 0)
		verify_saved(argv[2], argv[3]);
	else if (argc == 3 && strcmp(argv[1], "full") == 0)
		full(argv[2]);
	else
		return 16;
	return 0;
}
