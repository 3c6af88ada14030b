/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/cli.h - the verbs of the command and what they share.
 *
 * The command is one process that carries out one verb, so the verb, the store's path and the
 * options that every verb knows are one static context (common.c) rather than an argument of
 * every function. A verb takes main's arguments after its own name and returns the exit code.
 */
#ifndef LAC_CLI_CLI_H
#define LAC_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/lacuna.h"

/* The contract of doc/man/lacuna.1; where two apply, the larger one is returned. */
enum cli_exit {
	CLI_DONE = 0,
	CLI_MISSING = 1, /* done, but something named was not there */
	CLI_DAMAGE = 4,
	CLI_FAILED = 8,
	CLI_USAGE = 16,
};

struct cli_verb {
	const char *name;
	const char *summary; /* one line of lacuna --help */
	const char *help;    /* the whole of lacuna VERB --help */
	int (*run)(const struct cli_verb *verb, int argc, char **argv);
};

extern const struct cli_verb cli_verb_init, cli_verb_put, cli_verb_get, cli_verb_rm, cli_verb_ls,
	cli_verb_stat, cli_verb_import, cli_verb_export, cli_verb_reclaim, cli_verb_check;

/* Options of every verb, as parsed. */
enum cli_progress_mode { CLI_PROGRESS_AUTO, CLI_PROGRESS_ALWAYS, CLI_PROGRESS_NEVER };
struct cli_context {
	const char *verb;
	const char *store; /* as given; NULL before it is known */
	bool json;
	enum cli_progress_mode progress;
	uint64_t cache_bytes; /* 0 = the library's default */
};
extern struct cli_context cli_context;

/* ---- arguments (arguments.c) ---- */

enum cli_option_kind {
	CLI_FLAG,   /* value: bool */
	CLI_NUMBER, /* value: uint64_t, decimal */
	CLI_SIZE,   /* value: uint64_t, decimal with K, M, G or T */
	CLI_TEXT,   /* value: const char * */
	CLI_LATER,  /* known, but not in this release: a usage error that says so */
};

struct cli_option {
	const char *name; /* without the dashes; NULL ends a table */
	int letter;	  /* the short form, or 0 */
	enum cli_option_kind kind;
	void *value;
	bool *given;	     /* set when the option is there; may be NULL */
	bool takes_argument; /* of CLI_LATER */
};

/*
 * Parses the verb's options and those of every verb (--help, --json, --progress, --cache), and
 * takes the first argument for the store. Returns -1 to go on; anything else is the exit code: help
 * was printed, or the usage was wrong and that was said. The other arguments are then
 * argv[*ret_first ..argc), at least `least` and at most `most` of them.
 */
int cli_parse(const struct cli_verb *verb, const struct cli_option *options, int argc, char **argv,
	int least, int most, int *ret_first);

/* Whole string or nothing: no sign, no blank. 0, or -EINVAL or -ERANGE. */
int cli_parse_number(const char *text, uint64_t *ret_value);
int cli_parse_size(const char *text, uint64_t *ret_value);

/* ---- messages, results, signals (common.c) ---- */

/* "lacuna: VERB STORE: ..." on stderr; control characters are shown escaped, so that a file name
   can't drive the terminal. */
void cli_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, for a usage error; ends with a hint at --help; returns CLI_USAGE. */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says what the library reported, after `what: ` unless it is NULL, and returns the exit code. */
int cli_fail(int rc, const struct lac_error *err, const char *what);

static inline int cli_worse(int a, int b)
{
	return a > b ? a : b;
}

/* Writes text to stdout with tab, newline, carriage return and backslash as \t \n \r \\ . */
void cli_put_escaped(const char *text);
/* Flushes stdout. false once a write to it has failed; the first time it says so, except for EPIPE.
 */
bool cli_flush(void);

/* From now on SIGINT, SIGTERM and SIGHUP only set a flag; the second one ends the process. */
void cli_catch_signals(void);
/* The signal that came, or 0. */
int cli_stopped(void);

uint64_t cli_clock_ns(void);
/* "1.5 MiB"; text holds 32 bytes. */
const char *cli_human(uint64_t bytes, char *text);

/* ---- the store (common.c) ---- */

/* Opens cli_context.store. CLI_DONE, or the exit code when it failed and that was said. `quiet`
   leaves out background work, for verbs that only read. */
int cli_store_open(bool quiet, struct lac_store **ret_store);
/* Closes store (NULL is fine) and returns the exit code that follows from `code` and the close. */
int cli_store_close(struct lac_store *store, int code);

/* More operations than this are never put into one transaction, whatever --batch says: the library
   refuses a million, and a frame has a limit in bytes too. */
#define CLI_BATCH_MOST 100000u
/* A batch that is to be durable soon is cut at this much payload. */
#define CLI_BATCH_BYTES (32u << 20)
/* Pieces in which payload is read and written; one buffer of this size a verb. */
#define CLI_PIECE_BYTES (1u << 20)

/* ---- progress on stderr (progress.c) ---- */

struct cli_progress {
	bool on, terminal;
	uint64_t start_ns, next_ns;
	const char *unit;		   /* "files", "blocks" */
	uint64_t items_total, bytes_total; /* 0 = unknown */
};
void cli_progress_start(struct cli_progress *progress, const char *unit);
void cli_progress_update(struct cli_progress *progress, uint64_t items, uint64_t bytes);
void cli_progress_end(struct cli_progress *progress);
/* Wipes the line so that a message does not end up in the middle of it. */
void cli_progress_hide(void);

#endif
