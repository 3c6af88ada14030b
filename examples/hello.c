/* SPDX-License-Identifier: Apache-2.0 */
/*
 * examples/hello.c - the whole life of a few blocks: make a store, put two blocks in one
 * transaction, read one back, delete it, give its space back. usage: hello STORE (a directory that
 * is not there yet)
 *
 * Note the pattern: every call says what failed in err.message, and a transaction is ended by
 * exactly one of commit and abort.
 */
#include <lacuna/lacuna.h>

#include <inttypes.h>
#include <stdio.h>

static int put_two(struct lac_store *store, uint64_t ids[2], struct lac_error *err)
{
	static const char first[] = "hello", second[] = "world";
	struct lac_txn *txn = NULL;
	int rc = lac_txn_begin(store, &txn, err);

	if (rc < 0)
		return rc;
	rc = lac_txn_put(txn, first, sizeof(first), 1, &ids[0], err);
	if (rc == 0)
		rc = lac_txn_put(txn, second, sizeof(second), 1, &ids[1], err);
	if (rc < 0) {
		lac_txn_abort(txn);
		return rc;
	}
	/* Both blocks are durable when this returns 0; otherwise look at the contract in lacuna.h.
	 */
	return lac_txn_commit(txn, NULL, err);
}

static int delete_one(struct lac_store *store, uint64_t id, struct lac_error *err)
{
	struct lac_txn *txn = NULL;
	int rc = lac_txn_begin(store, &txn, err);

	if (rc < 0)
		return rc;
	rc = lac_txn_delete(txn, id, err);
	if (rc < 0) {
		lac_txn_abort(txn);
		return rc;
	}
	return lac_txn_commit(txn, NULL, err);
}

static int show(struct lac_store *store, uint64_t id, struct lac_error *err)
{
	char text[64];
	int64_t n = lac_block_read(store, id, text, sizeof(text), 0, err);

	if (n < 0)
		return (int)n;
	printf("block %" PRIu64 ": %" PRId64 " bytes: %s\n", id, n, text);
	return 0;
}

int main(int argc, char **argv)
{
	struct lac_create_options create = {.size = sizeof(create), .container_bytes = 64 << 20};
	struct lac_store *store = NULL;
	struct lac_error err = {0};
	uint64_t ids[2];
	int rc, close_rc;

	if (argc != 2) {
		fprintf(stderr, "usage: hello STORE\n");
		return 16;
	}
	rc = lac_store_create(argv[1], &create, &err);
	if (rc == 0)
		rc = lac_store_open(argv[1], NULL, &store, &err);
	if (rc == 0)
		rc = put_two(store, ids, &err);
	if (rc == 0)
		rc = show(store, ids[0], &err);
	if (rc == 0)
		rc = delete_one(store, ids[0], &err);
	if (rc == 0)
		rc = lac_store_reclaim(store, NULL, &err);
	if (rc == 0)
		rc = show(store, ids[1], &err);
	if (rc < 0)
		fprintf(stderr, "hello: %s\n", err.message);
	close_rc = lac_store_close(store, rc < 0 ? NULL : &err);
	if (rc == 0 && close_rc < 0)
		fprintf(stderr, "hello: close: %s\n", err.message);
	return rc < 0 || close_rc < 0 ? 1 : 0;
}
