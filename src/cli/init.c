/* SPDX-License-Identifier: Apache-2.0 */
/* cli/init.c - lacuna init: makes a store. */
#include "cli/cli.h"
#include "cli/json.h"

#include <errno.h>
#include <stdio.h>

static const char help[] =
	"usage: lacuna init STORE [--granule B] [--container-size B] [--inline-max B] [--cache B]\n"
	"\n"
	"Makes an empty store in the directory STORE, which is created unless it is there and "
	"empty.\n"
	"It is durable when the command returns.\n"
	"\n"
	"  --granule B         unit of space, 4K to 64K; default: what the filesystem frees\n"
	"  --container-size B  nominal size of a container file, 64K to 1T; default 1G\n"
	"  --inline-max B      a transaction with no more payload than this goes through the\n"
	"                      journal, 4K to 1M; default 64K\n"
	"  --cache B           accepted as by every verb; a property of an open store, not kept\n"
	"\n"
	"example: lacuna init /srv/blocks --container-size 4G\n";

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	uint64_t granule = 0, container = 0, inline_max = 0;
	const struct cli_option options[] = {
		{"granule", 0, CLI_SIZE, &granule, NULL, false},
		{"container-size", 0, CLI_SIZE, &container, NULL, false},
		{"inline-max", 0, CLI_SIZE, &inline_max, NULL, false},
		{0},
	};
	struct lac_create_options create = {.size = sizeof(create)};
	struct lac_error err = {0};
	int rc, first, code = cli_parse(verb, options, argc, argv, 0, 0, &first);

	if (code >= 0)
		return code;
	if (granule > UINT32_MAX || inline_max > UINT32_MAX)
		return cli_usage(
			"%s is too large", granule > UINT32_MAX ? "--granule" : "--inline-max");
	create.granule_bytes = (uint32_t)granule;
	create.inline_max_bytes = (uint32_t)inline_max;
	create.container_bytes = container;
	rc = lac_store_create(cli_context.store, &create, &err);
	if (rc < 0) {
		code = cli_fail(rc, &err, NULL);
		return err.reason == LAC_REASON_ARGUMENT ? CLI_USAGE : code;
	}
	if (cli_context.json) {
		struct cli_json json = {0};

		cli_json_open(&json, NULL, '{');
		cli_json_text(&json, "store", cli_context.store);
		cli_json_close(&json, '}', true);
	}
	return cli_flush() ? CLI_DONE : CLI_FAILED;
}

const struct cli_verb cli_verb_init = {"init", "make an empty store", help, run};
