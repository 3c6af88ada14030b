/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/crash/harness.h - workloads over the lying backend, and at each of their changes the states
 * that a crash there could leave, each opened, compared with the model and worked on.
 *
 *   model.c      what must be there: blocks and the fate of the transactions that put and delete
 * them world.c      operations on a store that keep the model up to date verify.c     is this store
 * what the model says, and sound? states.c     which crash states are made at a change, and what is
 * done to each faults.c     the same after failed syncs, failed calls and lost or misdirected
 * writes workloads.c  the workloads
 */
#ifndef LAC_TESTS_CRASH_HARNESS_H
#define LAC_TESTS_CRASH_HARNESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/sim.h"
#include "lacuna/lacuna.h"

/* ---- model ---- */

enum fate {
	FATE_OPEN,	 /* being put together: absent after a crash */
	FATE_COMMITTING, /* may be there or not, but whole (P2) */
	FATE_IN,	 /* acknowledged (P1), or seen after a recovery */
	FATE_OUT,	 /* given up, or not there after a recovery */
};

struct block {
	uint64_t id, length, content; /* content: seed of its bytes */
	size_t put, del;	      /* the transactions that put and delete it; del 0 = none */
};

struct model {
	struct block *blocks;
	size_t count, room;
	uint8_t *fates; /* by transaction; 0 is not used */
	size_t txns, txns_room;
	uint64_t max_exposed; /* largest id that any caller was told */
};

void model_free(struct model *m);
void model_copy(struct model *to, const struct model *from);
size_t model_txn(struct model *m);
void model_put(struct model *m, size_t txn, uint64_t id, uint64_t length, uint64_t content);
/* A crash: what was not yet being committed is out. */
void model_crash(struct model *m);
enum expectation { ABSENT, PRESENT, EITHER };
enum expectation model_expects(const struct model *m, const struct block *b);
/* Takes what was found of an EITHER for the truth; false when that contradicts what was found
 * before. */
bool model_learn(struct model *m, const struct block *b, bool present);

/* ---- one run of one workload ---- */

struct world;

struct workload {
	const char *name;
	void (*run)(struct world *w);
	uint64_t container_bytes, capacity_bytes;
	uint64_t segment_bytes;
	uint32_t sector_bytes, granule_bytes, block_bytes, inline_bytes;
	bool buffered, whole_pages, copy_on_write;
	bool watch_create; /* the crash states begin with the creation of the store */
	bool threads;	   /* I/O numbers differ from run to run */
	bool no_faults;
	unsigned slow; /* makes that many times fewer states; 0 = 1 */
};

extern const struct workload workloads[];
extern const size_t workloads_count;

/* One crash: at change `number` of its parent. */
struct crash {
	const struct crash *parent; /* NULL = of the workload */
	uint64_t number, seed;
	enum lac__sim_crash_mode mode;
};

struct run {
	const struct workload *workload;
	uint64_t seed;
	uint64_t limit;	 /* states wanted */
	double share;	 /* of the candidates that are made */
	uint64_t seeded; /* SEEDED states a change */
	bool counting;	 /* nothing is made, candidates are counted */
	uint64_t candidates, changes, changes_pending;
	uint64_t states, nested, told, failures;
	const struct crash *only; /* NULL = all */
	bool verbose;
	bool tolerant;	   /* damage was planted: telling it is right */
	bool leaks;	   /* space may be lost */
	char context[160]; /* of a fault, for messages */
	unsigned max_failures;
};

struct world {
	struct run *run;
	struct lac_backend *be;
	struct lac_store *store;
	struct model model;
	pthread_mutex_t lock; /* model */
	uint64_t number_base; /* changes before the present backend */
	uint64_t content, random;
	uint64_t id_floor; /* ids at or below were known before the last crash */
	bool creating;	   /* the store may not be there yet */
	bool faulty;	   /* a fault is armed: errors end the workload */
	bool stopped;
	bool absent_is_told; /* damage that nothing can tell was planted: a lost end of the journal
			      */
	int stop_code;
	const struct crash *crash; /* this world is what that crash left */
	/* a crash that the workload itself goes on from */
	struct lac_backend *grabbed;
	struct model grabbed_model;
	enum lac__sim_crash_mode grab_mode;
	uint64_t grab_renames; /* after that many, before their sync; 0 = not so */
	uint64_t renames;
	uint64_t grab_in; /* changes until then, plus one; 0 = none */
	/* a crash to come in a world that recovers */
	uint64_t nested_at;
	struct crash nested;
	unsigned depth;
};

/* Prints it with all that a replay needs. */
void failed(struct world *w, const char *what, const struct lac_error *err)
	__attribute__((nonnull(1, 2)));
bool told(const struct world *w, int rc); /* damage that was planted is reported */

/* ---- world.c ---- */

void world_make(struct world *w, struct run *run);
void world_free(struct world *w);
struct lac_open_options world_options(struct world *w);
int world_open(struct world *w, struct lac_error *err);
/* Ends the handle without writing anything. */
void world_abandon(struct world *w);
void world_watch(struct world *w);
uint64_t world_random(struct world *w, uint64_t below);

struct txn {
	struct lac_txn *txn;
	size_t number;
	size_t deleted[64], deletes;
};

bool txn_begin(struct world *w, struct txn *t);
bool txn_put(struct world *w, struct txn *t, uint64_t length);
/* In pieces of `piece` bytes; ends after `upto` bytes by an abort of the put where that is less. */
bool txn_stream(struct world *w, struct txn *t, uint64_t length, size_t piece, uint64_t upto);
bool txn_delete(struct world *w, struct txn *t, size_t block);
bool txn_commit(struct world *w, struct txn *t);
void txn_abort(struct world *w, struct txn *t);

bool world_put(struct world *w, uint64_t length);
bool world_put_many(struct world *w, const uint64_t *lengths, size_t count);
bool world_delete(struct world *w, size_t block);
/* A block that is surely there; SIZE_MAX without one. */
size_t world_pick(struct world *w);
bool world_checkpoint(struct world *w);
bool world_reclaim(struct world *w);
bool world_reopen(struct world *w);
bool world_crash(struct world *w, enum lac__sim_crash_mode mode, uint64_t seed);
/* What a crash of grab_mode just before the n-th change from now (0 = the next) leaves; taken up by
 * grabbed. */
void world_grab(struct world *w, uint64_t n);
void world_grab_step(struct world *w);
bool world_grabbed(struct world *w);
bool world_grabbed_unopened(struct world *w); /* the store is left to be opened by the caller */
int world_failed(struct world *w, const char *what, int rc, const struct lac_error *err);

/* ---- verify.c ---- */

/* Runs lac_check; returns the number of damages and fatals. A failure unless the run is tolerant.
 */
uint64_t verify_check(struct world *w, const char *when);
/* Compares the store with the model and learns what became of unfinished commits. absent_told: an
   acknowledged block may be missing, since check said that something is lost. */
void verify_blocks(struct world *w, const char *when, bool absent_told);
/* After a checkpoint and a reclaim: no granule waits, and the space is bounded. */
void verify_space(struct world *w);

/* ---- states.c ---- */

/* Hook: makes the crash states of this moment. */
void states_at(void *arg, uint64_t number);
void state_check(struct world *from, struct crash *crash);
/* Puts, deletes, a checkpoint and a reclaim, and the space that must then be free. */
void work_on(struct world *w);
const char *mode_name(enum lac__sim_crash_mode mode);

/* ---- faults.c ---- */

void faults_run(struct run *run, uint64_t limit);

#endif
