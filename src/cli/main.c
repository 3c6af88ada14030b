/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/main.c - the lacuna command: finds the verb and runs it.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct cli_verb *const verbs[] = {
	&cli_verb_init,
	&cli_verb_put,
	&cli_verb_get,
	&cli_verb_rm,
	&cli_verb_ls,
	&cli_verb_stat,
	&cli_verb_import,
	&cli_verb_export,
	&cli_verb_reclaim,
	&cli_verb_check,
};

/* Promised by the documentation of later releases; a script that tries them should learn why not.
 */
static const char *const later[] = {"compact", "map", "repair", "log", "fs", "xfs", "bench"};

static int print_help(void)
{
	puts("usage: lacuna VERB STORE [ARGUMENT...]\n"
	     "\n"
	     "Keeps blocks of data in a directory and gives the space of deleted ones back.\n");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		printf("  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
	puts("\n"
	     "lacuna VERB --help says more, with an example. Every verb takes --json; those that "
	     "take\n"
	     "long take --progress auto|always|never; those that open a store take --cache B, the\n"
	     "memory for metadata. Sizes (B) take K, M, G or T.\n"
	     "\n"
	     "Exit status: 0 done, 1 something named was not there, 4 damage, 8 failed, 16 usage,\n"
	     "128+N ended cleanly after signal N.");
	return cli_flush() ? CLI_DONE : CLI_FAILED;
}

/* A store file must never get descriptor 0, 1 or 2, where a stray write would reach it. Opened the
   wrong way round, so that using one that was closed fails rather than passes in silence. */
static void fill_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
	fill_standard_descriptors();
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2)
		return cli_usage("no verb is named");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		strcmp(argv[1], "help") == 0)
		return print_help();
	if (strcmp(argv[1], "--version") == 0) {
		printf("lacuna %s\n", lac_version());
		return cli_flush() ? CLI_DONE : CLI_FAILED;
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(argv[1], verbs[i]->name) == 0) {
			cli_context.verb = verbs[i]->name;
			return verbs[i]->run(verbs[i], argc - 1, argv + 1);
		}
	}
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
		if (strcmp(argv[1], later[i]) == 0)
			return cli_usage("%s is not in this release", argv[1]);
	return cli_usage("there is no verb \"%s\"", argv[1]);
}
