/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/progress.c - how far long work has come, on stderr: one line that is rewritten on a terminal,
 * a line every two seconds where --progress always sends it elsewhere.
 */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static bool line_shown;

void cli_progress_start(struct cli_progress *progress, const char *unit)
{
	*progress = (struct cli_progress){.unit = unit};
	progress->terminal = isatty(STDERR_FILENO) == 1;
	progress->on = cli_context.progress == CLI_PROGRESS_ALWAYS ||
		       (cli_context.progress == CLI_PROGRESS_AUTO && progress->terminal);
	progress->start_ns = cli_clock_ns();
	progress->next_ns = progress->start_ns + 300000000u;
}

static void print_line(const struct cli_progress *progress, uint64_t items, uint64_t bytes)
{
	double seconds = (double)(cli_clock_ns() - progress->start_ns) / 1e9;
	double part = 0;
	char done[32], rate[32];

	fprintf(stderr, "%s%s: %" PRIu64, progress->terminal ? "\r\033[K" : "", cli_context.verb,
		items);
	if (progress->items_total)
		fprintf(stderr, " of %" PRIu64, progress->items_total);
	fprintf(stderr, " %s, %s, %s/s", progress->unit, cli_human(bytes, done),
		cli_human((uint64_t)(seconds > 0 ? (double)bytes / seconds : 0), rate));
	if (progress->bytes_total)
		part = (double)bytes / (double)progress->bytes_total;
	else if (progress->items_total)
		part = (double)items / (double)progress->items_total;
	if (part > 0 && part <= 1) {
		uint64_t left = (uint64_t)(seconds / part - seconds + 0.5);

		fprintf(stderr, ", %.0f %%, %" PRIu64 ":%02" PRIu64 " left", part * 100, left / 60,
			left % 60);
	}
	if (!progress->terminal)
		fputc('\n', stderr);
	line_shown = progress->terminal;
}

void cli_progress_update(struct cli_progress *progress, uint64_t items, uint64_t bytes)
{
	uint64_t now;

	if (!progress->on)
		return;
	now = cli_clock_ns();
	if (now < progress->next_ns)
		return;
	progress->next_ns = now + (progress->terminal ? 200000000u : 2000000000u);
	print_line(progress, items, bytes);
}

void cli_progress_hide(void)
{
	if (!line_shown)
		return;
	fputs("\r\033[K", stderr);
	line_shown = false;
}

void cli_progress_end(struct cli_progress *progress)
{
	cli_progress_hide();
	progress->on = false;
}
