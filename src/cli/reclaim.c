/* SPDX-License-Identifier: Apache-2.0 */
/* cli/reclaim.c - lacuna reclaim: gives the space of deleted blocks back, all that can be given
 * back now. */
#include "cli/cli.h"
#include "cli/json.h"

#include <inttypes.h>
#include <stdio.h>

static const char help[] =
	"usage: lacuna reclaim STORE\n"
	"\n"
	"Gives the space of deleted blocks back to the filesystem until nothing more can be given, "
	"and\n"
	"prints what it did. What still waits is too small a piece to be freed on its own.\n"
	"\n"
	"example: lacuna reclaim /srv/blocks\n";

static void print_text(const struct lac_reclaim_result *total)
{
	char human[32];

	printf("punched    %" PRIu64 " holes, %s\n", total->punches,
		cli_human(total->punched_bytes, human));
	printf("unlinked   %" PRIu64 " containers, %s\n", total->unlinked,
		cli_human(total->unlinked_bytes, human));
	printf("truncated  %s\n", cli_human(total->truncated_bytes, human));
	printf("waiting    %s\n", cli_human(total->waiting_bytes, human));
}

static void print_json(const struct lac_reclaim_result *total)
{
	struct cli_json json = {0};

	cli_json_open(&json, NULL, '{');
	cli_json_number(&json, "punches", total->punches);
	cli_json_number(&json, "punched_bytes", total->punched_bytes);
	cli_json_number(&json, "unlinked", total->unlinked);
	cli_json_number(&json, "unlinked_bytes", total->unlinked_bytes);
	cli_json_number(&json, "truncated_bytes", total->truncated_bytes);
	cli_json_number(&json, "waiting_bytes", total->waiting_bytes);
	cli_json_close(&json, '}', true);
}

static int reclaim(struct lac_store *store)
{
	struct lac_reclaim_result total = {0}, once;
	struct lac_error err = {0};
	int rc;

	/* What one pass frees can make more freeable: a container whose last hole it was. */
	do {
		once = (struct lac_reclaim_result){0};
		rc = lac_store_reclaim(store, &once, &err);
		total.punches += once.punches;
		total.punched_bytes += once.punched_bytes;
		total.unlinked += once.unlinked;
		total.unlinked_bytes += once.unlinked_bytes;
		total.truncated_bytes += once.truncated_bytes;
		total.waiting_bytes = once.waiting_bytes;
	} while (rc == 0 && !cli_stopped() &&
		 (once.punches || once.unlinked || once.truncated_bytes));
	if (cli_context.json)
		print_json(&total);
	else
		print_text(&total);
	return rc < 0 ? cli_worse(CLI_FAILED, cli_fail(rc, &err, NULL)) : CLI_DONE;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	const struct cli_option options[] = {
		{"verify", 0, CLI_LATER, NULL, NULL, false},
		{0},
	};
	struct lac_store *store = NULL;
	int first, code = cli_parse(verb, options, argc, argv, 0, 0, &first);

	if (code >= 0)
		return code;
	cli_catch_signals();
	code = cli_store_open(true, &store);
	if (code == CLI_DONE)
		code = reclaim(store);
	return cli_store_close(store, code);
}

const struct cli_verb cli_verb_reclaim = {
	"reclaim", "give the space of deleted blocks back", help, run};
