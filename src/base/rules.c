/* SPDX-License-Identifier: Apache-2.0 */
/* base/rules.c - see rules.h. */
#include "base/rules.h"

unsigned lac__rules_off;
