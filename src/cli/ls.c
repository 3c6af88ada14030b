/* SPDX-License-Identifier: Apache-2.0 */
/* cli/ls.c - lacuna ls: the live blocks in order of id. */
#include "cli/cli.h"
#include "cli/json.h"

#include <inttypes.h>
#include <stdio.h>

static const char help[] =
	"usage: lacuna ls STORE [--owner N] [--after ID] [--limit N]\n"
	"\n"
	"Prints a line for each live block, in order of id: ID, tab, LENGTH, tab, OWNER.\n"
	"\n"
	"  --owner N   only blocks of owner N\n"
	"  --after ID  only blocks with a larger id\n"
	"  --limit N   at most N of them\n"
	"\n"
	"example: lacuna ls /srv/blocks --after 1000 --limit 20\n";

static void print_block(const struct lac_block_info *info)
{
	struct cli_json json = {0};

	if (!cli_context.json) {
		printf("%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", info->id, info->length,
			info->owner);
		return;
	}
	cli_json_open(&json, NULL, '{');
	cli_json_id(&json, "id", info->id);
	cli_json_number(&json, "length", info->length);
	cli_json_id(&json, "owner", info->owner);
	cli_json_close(&json, '}', true);
}

static int list(struct lac_store *store, const struct lac_iter_options *options, uint64_t limit)
{
	struct lac_error err = {0};
	struct lac_iter *iter = NULL;
	struct lac_block_info info;
	int code = CLI_DONE, rc = lac_iter_open(store, options, &iter, &err);

	for (uint64_t n = 0; rc == 0 && n < limit && !cli_stopped(); n++) {
		rc = lac_iter_next(iter, &info, &err);
		if (rc != 0)
			break;
		print_block(&info);
		/* A reader that went away must not let us walk the rest of a large store. */
		if (ferror(stdout)) {
			code = CLI_FAILED;
			break;
		}
	}
	if (rc < 0)
		code = cli_fail(rc, &err, NULL);
	lac_iter_close(iter);
	return code;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct lac_iter_options iter = {.size = sizeof(iter)};
	uint64_t limit = UINT64_MAX;
	const struct cli_option options[] = {
		{"owner", 0, CLI_NUMBER, &iter.owner, &iter.by_owner, false},
		{"after", 0, CLI_NUMBER, &iter.after_id, NULL, false},
		{"limit", 0, CLI_NUMBER, &limit, NULL, false},
		{0},
	};
	struct lac_store *store = NULL;
	int first, code = cli_parse(verb, options, argc, argv, 0, 0, &first);

	if (code >= 0)
		return code;
	cli_catch_signals();
	code = cli_store_open(true, &store);
	if (code == CLI_DONE)
		code = list(store, &iter, limit);
	return cli_store_close(store, code);
}

const struct cli_verb cli_verb_ls = {"ls", "list blocks", help, run};
