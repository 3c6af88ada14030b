/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/kill/kill_writer.c - a program that is killed while it writes; see kill_crowd.c.
 *
 *   kill_writer STORE LOG SESSION SEED
 *
 * Three threads commit small, large and streamed transactions and delete blocks of this session and
 * of earlier ones; a fourth one reclaims and makes checkpoints beside them. It goes on until it is
 * killed, or until a call fails (exit 2, with the message).
 *
 * To LOG it appends, each line by one write, before a commit "? N +ID:SEED:LENGTH -ID ..." and
 * after it returned 0 "= N". The log outlives the kill because it is written through, not buffered.
 * A block's owner tag is the seed of its bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/blocks.h"
#include "lacuna/lacuna.h"

enum {
	THREADS = 3,
	BATCH_MAX = 150,
	LENGTH_MAX = 3 << 20,
	LIVE_BLOCKS_MAX = 600,
	LIVE_BYTES_MAX = 8 << 20, /* of one thread: old blocks go so that the store stays small */
	LINE_BYTES = 128 + (BATCH_MAX + LIVE_BLOCKS_MAX) * 64,
};

struct block {
	uint64_t id, seed, length;
};

struct worker {
	unsigned number;
	uint64_t random;
	pthread_t thread;
	struct block live[LIVE_BLOCKS_MAX + BATCH_MAX]; /* oldest first */
	unsigned live_count;
	uint64_t live_bytes;
	unsigned added;	  /* the last of live, by the transaction under way */
	unsigned removed; /* the first of live */
	char line[LINE_BYTES];
	size_t line_length;
	uint8_t bytes[LENGTH_MAX];
};

static struct lac_store *store;
static int log_fd;
static uint64_t session;
static _Atomic uint64_t numbers;
static struct worker workers[THREADS];

static void stop(const char *what, const struct lac_error *err)
{
	fprintf(stderr, "kill_writer: %s: %s\n", what, err->message);
	_exit(2);
}

static void say(const char *line, size_t length)
{
	/* A signal that kills may cut a line short; then its commit has not begun. */
	if (write(log_fd, line, length) != (ssize_t)length)
		_exit(4);
}

__attribute__((format(printf, 2, 3))) static void add_word(
	struct worker *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	w->line_length += (size_t)vsnprintf(
		w->line + w->line_length, LINE_BYTES - w->line_length, format, args);
	va_end(args);
}

static void put(struct worker *w, struct lac_txn *txn, uint64_t length)
{
	struct block b = {.seed = test_random(&w->random) | 1, .length = length};
	struct lac_error err = {0};

	test_fill(w->bytes, length, b.seed);
	if (lac_txn_put(txn, w->bytes, length, b.seed, &b.id, &err) < 0)
		stop("put", &err);
	w->live[w->live_count + w->added++] = b;
	add_word(w, " +%" PRIu64 ":%" PRIu64 ":%" PRIu64, b.id, b.seed, b.length);
}

static void put_streamed(struct worker *w, struct lac_txn *txn)
{
	struct block b = {.seed = test_random(&w->random) | 1,
		.length = (1 << 20) + test_random(&w->random) % (LENGTH_MAX - (1 << 20))};
	struct lac_error err = {0};
	struct lac_put *piecewise;
	size_t at = 0;

	test_fill(w->bytes, b.length, b.seed);
	if (lac_put_begin(txn, b.length, b.seed, &piecewise, &err) < 0)
		stop("begin a stream", &err);
	while (at < b.length) {
		size_t piece = 1 + test_random(&w->random) % 300000;

		if (piece > b.length - at)
			piece = b.length - at;
		if (lac_put_write(piecewise, w->bytes + at, piece, &err) < 0)
			stop("write a stream", &err);
		at += piece;
	}
	if (lac_put_finish(piecewise, &b.id, &err) < 0)
		stop("finish a stream", &err);
	w->live[w->live_count + w->added++] = b;
	add_word(w, " +%" PRIu64 ":%" PRIu64 ":%" PRIu64, b.id, b.seed, b.length);
}

static void put_some(struct worker *w, struct lac_txn *txn)
{
	uint64_t pick = test_random(&w->random) % 16;
	unsigned puts = 1 + (unsigned)(test_random(&w->random) % 5);

	if (pick == 0) {
		put_streamed(w, txn);
	} else if (pick < 3) { /* more than goes through the journal */
		puts = 30 + (unsigned)(test_random(&w->random) % (BATCH_MAX - 30));
		while (puts-- > 0)
			put(w, txn, test_random(&w->random) % 5000);
	} else if (pick == 3) {
		put(w, txn, 70000 + test_random(&w->random) % 400000);
	} else {
		while (puts-- > 0)
			put(w, txn, puts % 3 == 1 ? 4096 : test_random(&w->random) % 9000);
	}
}

static void delete_some(struct worker *w, struct lac_txn *txn)
{
	uint64_t bytes = w->live_bytes;

	while (w->removed < w->live_count &&
		(bytes > LIVE_BYTES_MAX || w->live_count - w->removed > LIVE_BLOCKS_MAX / 2 ||
			test_random(&w->random) % 2 == 0)) {
		const struct block *b = &w->live[w->removed++];
		struct lac_error err = {0};

		if (lac_txn_delete(txn, b->id, &err) < 0)
			stop("delete", &err);
		bytes -= b->length;
		add_word(w, " -%" PRIu64, b->id);
	}
}

/* What was committed becomes what is. */
static void settle(struct worker *w)
{
	for (unsigned i = 0; i < w->added; i++)
		w->live_bytes += w->live[w->live_count + i].length;
	for (unsigned i = 0; i < w->removed; i++)
		w->live_bytes -= w->live[i].length;
	w->live_count += w->added;
	w->live_count -= w->removed;
	memmove(w->live, w->live + w->removed, w->live_count * sizeof w->live[0]);
	w->added = w->removed = 0;
}

static void one_transaction(struct worker *w)
{
	uint64_t number = session * 1000000 + ++numbers;
	struct lac_error err = {0};
	struct lac_txn *txn;
	char done[64];

	if (lac_txn_begin(store, &txn, &err) < 0)
		stop("begin", &err);
	w->line_length = 0;
	add_word(w, "? %" PRIu64, number);
	if (w->live_count < LIVE_BLOCKS_MAX)
		put_some(w, txn);
	delete_some(w, txn);
	if (test_random(&w->random) % 10 == 0) { /* of it nothing may be seen */
		lac_txn_abort(txn);
		w->added = w->removed = 0;
		return;
	}
	w->line[w->line_length++] = '\n';
	say(w->line, w->line_length);
	if (lac_txn_commit(txn, NULL, &err) < 0)
		stop("commit", &err);
	say(done, (size_t)snprintf(done, sizeof done, "= %" PRIu64 "\n", number));
	settle(w);
}

static void read_one(struct worker *w)
{
	struct lac_error err = {0};
	const struct block *b;
	int64_t n;

	if (w->live_count == 0)
		return;
	b = &w->live[test_random(&w->random) % w->live_count];
	n = lac_block_read(store, b->id, w->bytes, LENGTH_MAX, 0, &err);
	if (n < 0)
		stop("read", &err);
	if ((uint64_t)n != b->length || !test_matches(w->bytes, b->length, b->seed, 0))
		stop("read: other bytes than were put", &err);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		one_transaction(w);
		read_one(w);
	}
	return NULL;
}

static void share_out(void)
{
	struct lac_error err = {0};
	struct lac_block_info info;
	struct lac_iter *it;
	int rc;

	if (lac_iter_open(store, NULL, &it, &err) < 0)
		stop("iterate", &err);
	while ((rc = lac_iter_next(it, &info, &err)) == 0) {
		struct worker *w = &workers[info.id % THREADS];

		if (w->live_count == LIVE_BLOCKS_MAX)
			continue;
		w->live[w->live_count++] =
			(struct block){.id = info.id, .seed = info.owner, .length = info.length};
		w->live_bytes += info.length;
	}
	if (rc < 0)
		stop("iterate", &err);
	lac_iter_close(it);
}

int main(int argc, char **argv)
{
	struct lac_open_options open_options = {
		.size = sizeof open_options, .journal_bytes = 1 << 20, .open_files = 16};
	struct lac_error err = {0};
	uint64_t random;

	if (argc != 5)
		return 16;
	session = strtoull(argv[3], NULL, 10);
	random = strtoull(argv[4], NULL, 10);
	log_fd = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (log_fd < 0)
		return 4;
	if (lac_store_open(argv[1], &open_options, &store, &err) < 0)
		stop("open", &err);
	share_out();
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].number = i;
		workers[i].random = test_random(&random);
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			return 4;
	}
	for (;;) {
		usleep((useconds_t)(test_random(&random) % 60000));
		if (lac_store_reclaim(store, NULL, &err) < 0)
			stop("reclaim", &err);
		if (test_random(&random) % 3 == 0 && lac_store_checkpoint(store, &err) < 0)
			stop("checkpoint", &err);
	}
}
