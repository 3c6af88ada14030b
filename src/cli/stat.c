/* SPDX-License-Identifier: Apache-2.0 */
/* cli/stat.c - lacuna stat: the numbers of a store, or of one block. */
#include "cli/cli.h"
#include "cli/json.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

static const char help[] =
	"usage: lacuna stat STORE [ID]\n"
	"\n"
	"Prints the numbers of the store, or where block ID stands. Sizes are bytes. The punches "
	"and\n"
	"what follows them count from when the store was opened, that is, for this command.\n"
	"\n"
	"  live_bytes       payload of live blocks\n"
	"  dead_bytes       space of deleted blocks that waits to be given back\n"
	"  hole_bytes       given back inside containers that are still there\n"
	"  allocated_bytes  what the filesystem holds for the containers\n"
	"  file_bytes       their sizes as ls -l shows them\n"
	"\n"
	"example: lacuna stat /srv/blocks --json\n";

/* How a value is printed; ids and LSNs are strings in JSON. */
enum value_kind { VALUE_U64, VALUE_U32, VALUE_ID, VALUE_BOOL };

struct value {
	const char *key;
	enum value_kind kind;
	size_t offset;
};

#define STATS(kind, field)                                                                         \
	{                                                                                          \
#field, kind, offsetof(struct lac_store_stats, field)                              \
	}
static const struct value store_values[] = {
	STATS(VALUE_U32, format),
	STATS(VALUE_U32, granule_bytes),
	STATS(VALUE_U64, blocks),
	STATS(VALUE_U64, live_bytes),
	STATS(VALUE_U64, dead_bytes),
	STATS(VALUE_U64, hole_bytes),
	STATS(VALUE_U64, allocated_bytes),
	STATS(VALUE_U64, file_bytes),
	STATS(VALUE_U64, containers),
	STATS(VALUE_ID, next_id),
	STATS(VALUE_U64, journal_bytes),
	STATS(VALUE_U64, metadata_bytes),
	STATS(VALUE_ID, lsn_head),
	STATS(VALUE_ID, checkpoint_lsn),
	STATS(VALUE_U64, punches),
	STATS(VALUE_U64, punched_bytes),
	STATS(VALUE_U64, relocated_bytes),
};

#define BLOCK(kind, field)                                                                         \
	{                                                                                          \
#field, kind, offsetof(struct lac_block_info, field)                               \
	}
static const struct value block_values[] = {
	BLOCK(VALUE_ID, id),
	BLOCK(VALUE_U64, length),
	BLOCK(VALUE_ID, owner),
	BLOCK(VALUE_U32, container),
	BLOCK(VALUE_U64, offset),
	BLOCK(VALUE_U32, checksum),
	BLOCK(VALUE_BOOL, packed),
};

static void print_text(const struct value *value, const char *base)
{
	const void *field = base + value->offset;

	printf("%-16s ", value->key);
	switch (value->kind) {
	case VALUE_U64:
	case VALUE_ID: printf("%" PRIu64 "\n", *(const uint64_t *)field); break;
	case VALUE_U32: printf("%" PRIu32 "\n", *(const uint32_t *)field); break;
	case VALUE_BOOL: puts(*(const bool *)field ? "true" : "false"); break;
	}
}

static void print_json(struct cli_json *json, const struct value *value, const char *base)
{
	const void *field = base + value->offset;

	switch (value->kind) {
	case VALUE_U64: cli_json_number(json, value->key, *(const uint64_t *)field); break;
	case VALUE_ID: cli_json_id(json, value->key, *(const uint64_t *)field); break;
	case VALUE_U32: cli_json_number(json, value->key, *(const uint32_t *)field); break;
	case VALUE_BOOL: cli_json_bool(json, value->key, *(const bool *)field); break;
	}
}

/* uuid may be NULL. */
static void print_values(
	const struct value *values, size_t count, const void *base, const char *uuid)
{
	struct cli_json json = {0};

	if (cli_context.json) {
		cli_json_open(&json, NULL, '{');
		if (uuid)
			cli_json_text(&json, "uuid", uuid);
	} else if (uuid) {
		printf("%-16s %s\n", "uuid", uuid);
	}
	for (size_t i = 0; i < count; i++)
		if (cli_context.json)
			print_json(&json, &values[i], base);
		else
			print_text(&values[i], base);
	if (cli_context.json)
		cli_json_close(&json, '}', true);
}

static int stat_store(struct lac_store *store)
{
	struct lac_store_stats stats = {.size = sizeof(stats)};
	struct lac_error err = {0};
	char uuid[37], *at = uuid;
	int rc = lac_store_stat(store, &stats, &err);

	if (rc < 0)
		return cli_fail(rc, &err, NULL);
	for (size_t i = 0; i < sizeof(stats.uuid); i++)
		at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			stats.uuid[i]);
	print_values(store_values, sizeof(store_values) / sizeof(store_values[0]), &stats, uuid);
	return CLI_DONE;
}

static int stat_block(struct lac_store *store, uint64_t id)
{
	struct lac_block_info info = {0};
	struct lac_error err = {0};
	int rc = lac_block_stat(store, id, &info, &err);

	if (rc < 0)
		return cli_fail(rc, &err, NULL);
	print_values(block_values, sizeof(block_values) / sizeof(block_values[0]), &info, NULL);
	return CLI_DONE;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	const struct cli_option options[] = {{0}};
	struct lac_store *store = NULL;
	uint64_t id = 0;
	int first, code = cli_parse(verb, options, argc, argv, 0, 1, &first);

	if (code >= 0)
		return code;
	if (first < argc && cli_parse_number(argv[first], &id) < 0)
		return cli_usage("\"%s\" is not a block's id", argv[first]);
	code = cli_store_open(true, &store);
	if (code == CLI_DONE)
		code = first < argc ? stat_block(store, id) : stat_store(store);
	return cli_store_close(store, code);
}

const struct cli_verb cli_verb_stat = {"stat", "show the numbers of a store or a block", help, run};
