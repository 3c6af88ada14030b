/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/syncer.h - what io/files.c needs to know of a syncer beyond io/io.h.
 */
#ifndef LAC_IO_SYNCER_H
#define LAC_IO_SYNCER_H

#include "io/io.h"

/* Notes a failure found elsewhere (a close) as if a sync had met it; the first one stays. */
void lac__syncer_fail(struct lac__syncer *s, int code);
/* The first failure, 0 when there was none. */
int lac__syncer_failure(struct lac__syncer *s);
/* How many times the backend's sync was asked for. */
uint64_t lac__syncer_calls(struct lac__syncer *s);

#endif
