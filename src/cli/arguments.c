/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/arguments.c - options and numbers of the command line.
 *
 * A verb states its options as a table and this turns it into what getopt_long wants, so that
 * every verb refuses the same mistakes with the same words.
 */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define OPTIONS_MOST 24
/* getopt_long values of long options begin above every character. */
#define VALUE_BASE 1000

int cli_parse_number(const char *text, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return -ERANGE;
	}
	*ret_value = value;
	return 0;
}

int cli_parse_size(const char *text, uint64_t *ret_value)
{
	static const char units[] = "KMGT";
	char digits[32];
	size_t length = strlen(text);
	unsigned shift = 0;
	uint64_t value;
	int rc;

	if (length == 0 || length >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, length + 1);
	for (unsigned i = 0; i < 4; i++)
		if (digits[length - 1] == units[i] || digits[length - 1] == units[i] + 'a' - 'A')
			shift = 10 * (i + 1);
	if (shift)
		digits[length - 1] = '\0';
	rc = cli_parse_number(digits, &value);
	if (rc < 0)
		return rc;
	if (value > UINT64_MAX >> shift)
		return -ERANGE;
	*ret_value = value << shift;
	return 0;
}

static bool parse_progress(const char *text)
{
	if (strcmp(text, "auto") == 0)
		cli_context.progress = CLI_PROGRESS_AUTO;
	else if (strcmp(text, "always") == 0)
		cli_context.progress = CLI_PROGRESS_ALWAYS;
	else if (strcmp(text, "never") == 0)
		cli_context.progress = CLI_PROGRESS_NEVER;
	else
		return false;
	return true;
}

/* Takes one option; -1 or the exit code. */
static int take_option(const struct cli_option *option, const char *text)
{
	int rc = 0;

	switch (option->kind) {
	case CLI_FLAG: *(bool *)option->value = true; break;
	case CLI_TEXT: *(const char **)option->value = text; break;
	case CLI_NUMBER: rc = cli_parse_number(text, option->value); break;
	case CLI_SIZE: rc = cli_parse_size(text, option->value); break;
	case CLI_LATER:
		return cli_usage("option %s%s is not in this release",
			strlen(option->name) > 1 ? "--" : "-", option->name);
	}
	if (rc < 0)
		return cli_usage("option --%s: \"%s\" is %s", option->name, text,
			rc == -ERANGE		   ? "too large"
			: option->kind == CLI_SIZE ? "not a size like 4096, 64K or 1G"
						   : "not a number");
	if (option->given)
		*option->given = true;
	return -1;
}

/* What getopt_long needs, built from two tables. */
struct option_set {
	const struct cli_option *option[OPTIONS_MOST];
	struct option longs[OPTIONS_MOST + 1];
	char shorts[2 * OPTIONS_MOST + 2];
	int count;
};

static void add_options(struct option_set *set, const struct cli_option *options)
{
	size_t at = strlen(set->shorts);

	for (; options->name && set->count < OPTIONS_MOST; options++) {
		bool argument = options->kind == CLI_LATER ? options->takes_argument
							   : options->kind != CLI_FLAG;

		set->option[set->count] = options;
		set->longs[set->count] = (struct option){options->name,
			argument ? required_argument : no_argument, NULL, VALUE_BASE + set->count};
		set->count++;
		if (options->letter) {
			set->shorts[at++] = (char)options->letter;
			if (argument)
				set->shorts[at++] = ':';
		}
	}
}

static const struct cli_option *find_option(const struct option_set *set, int value)
{
	for (int i = 0; i < set->count; i++)
		if (value == VALUE_BASE + i || (value < 256 && value == set->option[i]->letter))
			return set->option[i];
	return NULL;
}

/* getopt_long refused argv[optind - 1] or the letter optopt. */
static int refuse_option(int value, char **argv)
{
	const char *why = value == ':' ? "wants a value" : "is not known or not unique";

	if (optopt > 0 && optopt < 256)
		return cli_usage("option -%c %s", optopt, why);
	return cli_usage("option %s %s", argv[optind - 1], why);
}

int cli_parse(const struct cli_verb *verb, const struct cli_option *options, int argc, char **argv,
	int least, int most, int *ret_first)
{
	bool help = false;
	const char *progress = NULL;
	const struct cli_option common[] = {
		{"help", 'h', CLI_FLAG, &help, NULL, false},
		{"json", 0, CLI_FLAG, &cli_context.json, NULL, false},
		{"progress", 0, CLI_TEXT, &progress, NULL, false},
		{"cache", 0, CLI_SIZE, &cli_context.cache_bytes, NULL, false},
		{0},
	};
	struct option_set set = {.shorts = ":"};
	int value, rc;

	add_options(&set, common);
	add_options(&set, options);
	opterr = 0;
	optind = 1;
	while ((value = getopt_long(argc, argv, set.shorts, set.longs, NULL)) != -1) {
		const struct cli_option *option = find_option(&set, value);

		if (value == '?' || value == ':' || !option)
			return refuse_option(value, argv);
		rc = take_option(option, optarg);
		if (rc >= 0)
			return rc;
		if (help) {
			fputs(verb->help, stdout);
			return cli_flush() ? CLI_DONE : CLI_FAILED;
		}
	}
	if (progress && !parse_progress(progress))
		return cli_usage(
			"option --progress: \"%s\" is not auto, always or never", progress);
	if (optind >= argc)
		return cli_usage("no store is named");
	cli_context.store = argv[optind++];
	if (!*cli_context.store)
		return cli_usage("the store's name is empty");
	if (argc - optind < least)
		return cli_usage("too few arguments");
	if (argc - optind > most)
		return cli_usage("too many arguments, from \"%s\" on", argv[optind + most]);
	*ret_first = optind;
	return -1;
}
