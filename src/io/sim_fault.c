/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/sim_fault.c - armed faults: which operation one strikes.
 */
#include <stdlib.h>
#include <string.h>

#include "io/sim_internal.h"

/* Whether the fault means anything for the operation; explicit = the test named that kind. */
static bool sensible(enum lac__sim_fault fault, enum lac__sim_op kind, bool explicit)
{
	switch (fault) {
	case LAC__SIM_ERRNO: return true;
	case LAC__SIM_SHORT: return kind == LAC__SIM_READ || kind == LAC__SIM_WRITE;
	case LAC__SIM_LOST:
		/* A sync or a punch that lies is asked for by name. */
		return kind == LAC__SIM_WRITE ||
		       (explicit && (kind == LAC__SIM_SYNC || kind == LAC__SIM_SYNC_DIR ||
					    kind == LAC__SIM_PUNCH));
	case LAC__SIM_MISDIRECT: return kind == LAC__SIM_WRITE;
	case LAC__SIM_STALE: return kind == LAC__SIM_READ;
	case LAC__SIM_SYNC_REVERT:
	case LAC__SIM_SYNC_LANDED:
	case LAC__SIM_SYNC_HALF:
		return kind == LAC__SIM_SYNC ||
		       (explicit && (kind == LAC__SIM_SYNC_DIR || kind == LAC__SIM_CLOSE));
	}
	return false;
}

static bool starts_with(const char *path, const char *prefix)
{
	return path && strncmp(path, prefix, strlen(prefix)) == 0;
}

static bool concerns(struct sim *s, const char *prefix, const struct sim_about *about)
{
	char path[4096];

	if (!prefix)
		return true;
	if (about->path || about->other)
		return starts_with(about->path, prefix) || starts_with(about->other, prefix);
	return lac__sim_path(s, about->inode, path, sizeof(path)) && starts_with(path, prefix);
}

static void disarm(struct sim_armed *a)
{
	free(a->prefix);
	*a = (struct sim_armed){0};
}

/* Every fault that the operation concerns counts down; the first that is due strikes, another one
   that is due waits for the next operation. */
struct sim_strike lac__sim_strike(
	struct sim *s, enum lac__sim_op kind, const struct sim_about *about)
{
	struct sim_strike strike = {0};

	for (size_t i = 0; i < SIM_FAULTS; i++) {
		struct sim_armed *a = &s->armed[i];

		if (!a->on || (a->kind != kind && a->kind != LAC__SIM_OPS) ||
			!sensible(a->fault, kind, a->kind == kind) ||
			!concerns(s, a->prefix, about))
			continue;
		if (a->countdown > 0) {
			a->countdown--;
			continue;
		}
		if (strike.hit)
			continue;
		strike = (struct sim_strike){true, a->fault, a->value};
		s->struck++;
		if (!a->forever)
			disarm(a);
	}
	return strike;
}

bool lac__sim_arm(struct lac_backend *be, enum lac__sim_op kind, const char *path_prefix,
	uint64_t n, bool forever, enum lac__sim_fault fault, int64_t value)
{
	struct sim *s = sim_of(be);
	char *prefix = path_prefix ? strdup(path_prefix) : NULL;
	bool done = false;

	if (path_prefix && !prefix)
		return false;
	pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; i < SIM_FAULTS && !done; i++) {
		if (s->armed[i].on)
			continue;
		s->armed[i] = (struct sim_armed){true, forever, kind, prefix, n, fault, value};
		done = true;
	}
	pthread_mutex_unlock(&s->mutex);
	if (!done)
		free(prefix);
	return done;
}

void lac__sim_heal(struct lac_backend *be)
{
	struct sim *s = sim_of(be);

	pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; i < SIM_FAULTS; i++)
		disarm(&s->armed[i]);
	pthread_mutex_unlock(&s->mutex);
}

uint64_t lac__sim_struck(struct lac_backend *be)
{
	struct sim *s = sim_of(be);
	uint64_t struck;

	pthread_mutex_lock(&s->mutex);
	struck = s->struck;
	pthread_mutex_unlock(&s->mutex);
	return struck;
}
