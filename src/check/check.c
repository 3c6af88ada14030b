/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/check.c - the phases in their order.
 *
 * An independent second reader: it uses format, io and the journal's scan, and nothing of the
 * store. It opens files for reading only, takes no lock and writes no byte (P6). Each phase leaves
 * in struct lac__checker what the next ones need; when a phase finds that nothing more can be
 * known (no superblock, a journal that can't be read) those after it are left out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/public.h"
#include "check/checker.h"

#define OPEN_FILES 32

/* Phase 7: if pages knew more than the journal, redo would skip newer records in silence. */
static int check_lsn(struct lac__checker *c)
{
	int rc = lac__report_begin(&c->report, 7, "largest lsn against the journal", 0);

	if (rc == 0 && c->max_lsn > c->head_lsn)
		rc = lac__report_finding(&c->report, LAC_FINDING_LSN_AHEAD, LAC__NAME_JOURNAL, 0,
			"lsn %" PRIu64 ", the journal ends at %" PRIu64, c->max_lsn, c->head_lsn);
	return rc < 0 ? rc : lac__report_end(&c->report);
}

static int run(struct lac__checker *c)
{
	int rc = lac__check_superblock(c);

	if (rc == 0 && !c->hopeless)
		rc = lac__check_journal(c);
	if (rc == 0 && !c->hopeless)
		rc = lac__check_containers(c);
	if (rc == 0 && !c->hopeless)
		rc = lac__check_index(c);
	if (rc == 0 && !c->hopeless)
		rc = lac__check_space(c);
	if (rc == 0 && !c->hopeless)
		rc = check_lsn(c);
	return rc;
}

static void release(struct lac__checker *c)
{
	lac__overlay_free(&c->overlay);
	lac__extents_free(&c->extents);
	free(c->replayed.at);
	free(c->piece);
	free(c->containers);
	free(c->table_unknown.at);
	/* Nothing was written, so no close can lose anything. */
	lac__files_free(c->files);
}

/* A caller built against a shorter structure leaves the fields it does not know of at their
 * default. */
static int take_options(const struct lac_check_options *options, struct lac_check_options *ret,
	struct lac_error *err)
{
	*ret = (struct lac_check_options){0};
	if (!options)
		return 0;
	if (options->size < sizeof(options->size))
		return lac__error_set(err, -EINVAL, LAC_REASON_ARGUMENT, 0, 0,
			"check options: size %zu", options->size);
	memcpy(ret, options, options->size < sizeof(*ret) ? options->size : sizeof(*ret));
	return 0;
}

LAC_PUBLIC int lac_check(const char *path, const struct lac_check_options *options,
	struct lac_check_result *ret_result, struct lac_error *err)
{
	struct lac_check_options o;
	struct lac_backend *own = NULL;
	struct lac__checker c = {.err = err};
	int rc = take_options(options, &o, err);

	if (rc < 0)
		goto out;
	c.data = o.data;
	c.report = (struct lac__report){.finding = o.finding, .phase = o.phase, .arg = o.arg};
	c.be = o.backend;
	if (!c.be) {
		rc = lac__backend_plain_new(path, &own, err);
		if (rc < 0)
			goto out;
		c.be = own;
	}
	rc = lac__files_new(c.be, OPEN_FILES, &c.files);
	if (rc < 0) {
		lac__error_sys(err, rc, "check");
		goto out;
	}
	rc = run(&c);
	if (c.report.stopped)
		rc = lac__error_set(
			err, -ECANCELED, LAC_REASON_INTERRUPTED, 0, 0, "stopped by the caller");
	if (rc < 0)
		goto out;
	if (ret_result)
		*ret_result = (struct lac_check_result){
			.notes = c.report.notes,
			.damages = c.report.damages,
			.fatals = c.report.fatals,
			.blocks = c.blocks,
			.live_bytes = c.live_bytes,
			.max_lsn = c.max_lsn,
			.head_lsn = c.head_lsn,
		};
out:
	release(&c);
	if (own)
		lac__backend_plain_free(own);
	if (rc < 0)
		lac__error_prepend(err, "check %s", path ? path : "store");
	return rc;
}
