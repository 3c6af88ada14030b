/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/check.c - lacuna check: findings as they come, then the phases and the verdict.
 *
 * With --json everything is one object whose findings are written while the check runs, so that
 * a million of them need no memory; the phases are few and kept until the end.
 */
#include "lacuna/check.h"
#include "cli/cli.h"
#include "cli/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
	"usage: lacuna check STORE [--data]\n"
	"\n"
	"Reads the metadata of the store, never writes, and needs no lock: a store in use may be\n"
	"checked, but then what changes meanwhile can look like damage. Prints the findings, the "
	"phases\n"
	"with their times in seconds, and a verdict. Exit status 0: clean, or notes only; 4: "
	"damage.\n"
	"\n"
	"  --data  read and verify every payload too\n"
	"\n"
	"example: lacuna check /srv/blocks --data\n";

#define PHASES_MOST 16

struct check_job {
	struct cli_json json;
	struct cli_progress progress;
	uint64_t start_ns; /* of the first phase; the table counts from it */
	struct lac_phase phases[PHASES_MOST];
	char names[PHASES_MOST][48];
	size_t count;
};

static const char *severity_name(int severity)
{
	return severity == LAC_SEVERITY_NOTE	 ? "note"
	       : severity == LAC_SEVERITY_DAMAGE ? "damage"
						 : "fatal";
}

static int on_finding(void *arg, const struct lac_finding *finding)
{
	struct check_job *job = arg;
	const char *name = lac_finding_name(finding->id);

	if (!cli_context.json) {
		cli_progress_hide();
		printf("%s %d %s ", severity_name(finding->severity), finding->id,
			name ? name : "?");
		cli_put_escaped(finding->path ? finding->path : "");
		printf(" at %" PRIu64 ": ", finding->offset);
		cli_put_escaped(finding->text);
		putchar('\n');
	} else {
		cli_json_open(&job->json, NULL, '{');
		cli_json_number(&job->json, "id", (uint64_t)finding->id);
		cli_json_text(&job->json, "name", name ? name : "");
		cli_json_text(&job->json, "severity", severity_name(finding->severity));
		cli_json_bool(&job->json, "repairable", finding->repairable);
		cli_json_text(&job->json, "path", finding->path ? finding->path : "");
		cli_json_number(&job->json, "offset", finding->offset);
		cli_json_text(&job->json, "text", finding->text);
		cli_json_close(&job->json, '}', false);
	}
	return cli_stopped() || ferror(stdout);
}

static int on_phase(void *arg, const struct lac_phase *phase)
{
	struct check_job *job = arg;
	struct lac_phase *kept = job->count ? &job->phases[job->count - 1] : NULL;

	/* The same phase again is the same one further on. */
	if (!kept || kept->number != phase->number) {
		if (job->count == PHASES_MOST)
			return cli_stopped();
		kept = &job->phases[job->count];
		snprintf(job->names[job->count], sizeof(job->names[0]), "%s", phase->name);
		job->count++;
	}
	*kept = *phase;
	kept->name = job->names[kept - job->phases];
	if (job->start_ns == 0)
		job->start_ns = phase->start_ns;
	job->progress.unit = kept->name;
	job->progress.items_total = phase->items_total;
	job->progress.start_ns = phase->start_ns;
	cli_progress_update(&job->progress, phase->items, phase->bytes);
	return cli_stopped();
}

/* Seconds since the first phase began. */
static double since_start(const struct check_job *job, uint64_t ns)
{
	return ns > job->start_ns ? (double)(ns - job->start_ns) / 1e9 : 0;
}

static void print_phases(const struct check_job *job)
{
	printf("%-34s %10s %10s %10s %12s %12s\n", "Phase", "Start", "End", "Duration", "Items",
		"Rate");
	for (size_t i = 0; i < job->count; i++) {
		const struct lac_phase *phase = &job->phases[i];
		double start = since_start(job, phase->start_ns);
		double end = phase->end_ns ? since_start(job, phase->end_ns) : start;
		char human[32], rate[40] = "-";

		if (phase->bytes && end > start)
			strcat(strcpy(rate,
				       cli_human((uint64_t)((double)phase->bytes / (end - start)),
					       human)),
				"/s");
		printf("%d: %-31s %10.3f %10.3f %10.3f %12" PRIu64 " %12s\n", phase->number,
			phase->name, start, end, end - start, phase->items, rate);
	}
}

static void print_phases_json(struct check_job *job)
{
	struct cli_json *json = &job->json;

	cli_json_open(json, "phases", '[');
	for (size_t i = 0; i < job->count; i++) {
		const struct lac_phase *phase = &job->phases[i];
		uint64_t end = phase->end_ns ? phase->end_ns : phase->start_ns;

		cli_json_open(json, NULL, '{');
		cli_json_number(json, "number", (uint64_t)phase->number);
		cli_json_text(json, "name", phase->name);
		cli_json_seconds(json, "start", phase->start_ns - job->start_ns);
		cli_json_seconds(json, "end", end - job->start_ns);
		cli_json_seconds(json, "seconds", end - phase->start_ns);
		cli_json_number(json, "items", phase->items);
		cli_json_number(json, "bytes", phase->bytes);
		cli_json_close(json, '}', false);
	}
	cli_json_close(json, ']', false);
}

static void print_result(struct check_job *job, const struct lac_check_result *result, int rc)
{
	struct cli_json *json = &job->json;
	const char *verdict = rc < 0		? "failed"
			      : result->fatals	? "fatal"
			      : result->damages ? "damage"
						: "clean";

	if (cli_context.json) {
		cli_json_close(json, ']', false);
		print_phases_json(job);
		cli_json_number(json, "notes", result->notes);
		cli_json_number(json, "damages", result->damages);
		cli_json_number(json, "fatals", result->fatals);
		cli_json_number(json, "blocks", result->blocks);
		cli_json_number(json, "live_bytes", result->live_bytes);
		cli_json_id(json, "max_lsn", result->max_lsn);
		cli_json_id(json, "head_lsn", result->head_lsn);
		cli_json_text(json, "verdict", verdict);
		cli_json_close(json, '}', true);
		return;
	}
	/* It did not even begin; the message says all there is. */
	if (rc < 0 && job->count == 0)
		return;
	print_phases(job);
	printf("blocks %" PRIu64 ", live bytes %" PRIu64 ", largest LSN %" PRIu64
	       ", journal head %" PRIu64 "\n",
		result->blocks, result->live_bytes, result->max_lsn, result->head_lsn);
	printf("verdict: %s (%" PRIu64 " notes, %" PRIu64 " damages, %" PRIu64 " fatal)\n", verdict,
		result->notes, result->damages, result->fatals);
}

static int check(bool data)
{
	struct check_job job = {0};
	struct lac_check_options options = {
		.size = sizeof(options),
		.data = data,
		.finding = on_finding,
		.phase = on_phase,
		.arg = &job,
	};
	struct lac_check_result result = {0};
	struct lac_error err = {0};
	int rc, code = CLI_DONE;

	cli_progress_start(&job.progress, "");
	if (cli_context.json) {
		cli_json_open(&job.json, NULL, '{');
		cli_json_open(&job.json, "findings", '[');
	}
	rc = lac_check(cli_context.store, &options, &result, &err);
	cli_progress_end(&job.progress);
	print_result(&job, &result, rc);
	if (result.damages || result.fatals)
		code = CLI_DAMAGE;
	if (rc == -ECANCELED)
		code = CLI_FAILED;
	else if (rc < 0)
		code = cli_worse(CLI_FAILED, cli_fail(rc, &err, NULL));
	return cli_store_close(NULL, code);
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	bool data = false;
	const struct cli_option options[] = {
		{"data", 0, CLI_FLAG, &data, NULL, false},
		{"j", 'j', CLI_LATER, NULL, NULL, true},
		{"memory", 0, CLI_LATER, NULL, NULL, true},
		{"explain", 0, CLI_LATER, NULL, NULL, true},
		{0},
	};
	int first, code = cli_parse(verb, options, argc, argv, 0, 0, &first);

	if (code >= 0)
		return code;
	cli_catch_signals();
	return check(data);
}

const struct cli_verb cli_verb_check = {"check", "verify what is on disk; never writes", help, run};
