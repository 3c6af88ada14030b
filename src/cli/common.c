/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/common.c - messages, results and signals: how the command talks to a person and to scripts.
 *
 * Results go through stdio to stdout and every flush is checked, since a verb that could not print
 * what it did has failed (a full disk, a closed pipe). Messages go to stderr in a single write
 * each, because the library may log from threads of its own.
 */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct cli_context cli_context;

static volatile sig_atomic_t stop_signal;

/* Appends text to line[at..size), escaped; returns the new end. Cuts what does not fit. */
static size_t append_visible(char *line, size_t at, size_t size, const char *text)
{
	for (; *text && at + 5 < size; text++) {
		unsigned char c = (unsigned char)*text;
		const char *name = c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : NULL;

		if (name)
			at += (size_t)sprintf(line + at, "%s", name);
		else if (c < 0x20 || c == 0x7f)
			at += (size_t)sprintf(line + at, "\\x%02x", c);
		else
			line[at++] = (char)c;
	}
	return at;
}

static void message_line(const char *text, const char *tail)
{
	char line[10000];
	size_t at = 0;

	at = append_visible(line, at, sizeof(line) - 2, "lacuna: ");
	if (cli_context.verb) {
		at = append_visible(line, at, sizeof(line) - 2, cli_context.verb);
		if (cli_context.store) {
			at = append_visible(line, at, sizeof(line) - 2, " ");
			at = append_visible(line, at, sizeof(line) - 2, cli_context.store);
		}
		at = append_visible(line, at, sizeof(line) - 2, ": ");
	}
	at = append_visible(line, at, sizeof(line) - 2, text);
	at = append_visible(line, at, sizeof(line) - 2, tail);
	line[at++] = '\n';
	cli_progress_hide();
	fwrite(line, 1, at, stderr);
}

void cli_message(const char *format, ...)
{
	char text[9000];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	message_line(text, "");
}

int cli_usage(const char *format, ...)
{
	char text[9000], hint[100];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	snprintf(hint, sizeof(hint), " (see lacuna %s%s--help)",
		cli_context.verb ? cli_context.verb : "", cli_context.verb ? " " : "");
	message_line(text, hint);
	return CLI_USAGE;
}

int cli_fail(int rc, const struct lac_error *err, const char *what)
{
	const char *text = err && err->message[0] ? err->message : strerror(-rc);

	cli_message("%s%s%s", what ? what : "", what ? ": " : "", text);
	if (rc == -EBADMSG || rc == -EUCLEAN)
		return CLI_DAMAGE;
	if (rc == -ENOENT && err && err->reason == LAC_REASON_NO_BLOCK)
		return CLI_MISSING;
	return CLI_FAILED;
}

void cli_put_escaped(const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '\t': fputs("\\t", stdout); break;
		case '\n': fputs("\\n", stdout); break;
		case '\r': fputs("\\r", stdout); break;
		case '\\': fputs("\\\\", stdout); break;
		default: putchar(*text); break;
		}
	}
}

bool cli_flush(void)
{
	static bool failed;

	if (failed)
		return false;
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	failed = true;
	/* A reader that went away, like head(1), knows why. */
	if (errno != EPIPE)
		cli_message("write standard output: %s", strerror(errno ? errno : EIO));
	return false;
}

static void on_signal(int number)
{
	stop_signal = number;
}

void cli_catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction old;

		/* nohup and shells that ignore a signal for us mean it. */
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
			continue;
		sigaction(numbers[i], &action, NULL);
	}
}

int cli_stopped(void)
{
	return stop_signal;
}

uint64_t cli_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

const char *cli_human(uint64_t bytes, char *text)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

static void on_log(void *arg, int level, const char *message)
{
	(void)arg;
	if (level >= LAC_LOG_WARNING)
		cli_message("warning: %s", message);
}

int cli_store_open(bool quiet, struct lac_store **ret_store)
{
	struct lac_error err = {0};
	struct lac_open_options options = {
		.size = sizeof(options),
		.no_background = quiet,
		.memory_bytes = cli_context.cache_bytes,
		.log = on_log,
	};
	int rc = lac_store_open(cli_context.store, &options, ret_store, &err);

	if (rc < 0) {
		*ret_store = NULL;
		return cli_fail(rc, &err, NULL);
	}
	return CLI_DONE;
}

int cli_store_close(struct lac_store *store, int code)
{
	struct lac_error err = {0};
	int rc = store ? lac_store_close(store, &err) : 0;

	if (rc < 0)
		code = cli_worse(code, cli_worse(CLI_FAILED, cli_fail(rc, &err, "close")));
	if (!cli_flush())
		code = cli_worse(code, CLI_FAILED);
	if (cli_stopped())
		code = 128 + cli_stopped();
	return code;
}
