/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/rules.h - rules of durability that a test may switch off, to see the promise fail that the
 * rule is there for (DESIGN.md, "The rules"). Nothing but tests writes lac__rules_off, and the
 * shared library does not export it.
 */
#ifndef LAC_BASE_RULES_H
#define LAC_BASE_RULES_H

#include <stdbool.h>

enum lac__rule {
	LAC__RULE_REDO_FIRST = 1,    /* 4.1 */
	LAC__RULE_DATA_FIRST = 2,    /* 4.2 */
	LAC__RULE_CHAIN = 3,	     /* 4.3 */
	LAC__RULE_PAGES_FOLLOW = 4,  /* 4.4 */
	LAC__RULE_BASE_SLOT = 5,     /* 4.5 */
	LAC__RULE_PAST_CACHE = 6,    /* 4.6 */
	LAC__RULE_UNREADABLE = 7,    /* 4.7 */
	LAC__RULE_TEAR_UNIT = 8,     /* 4.8 */
	LAC__RULE_PINS = 9,	     /* 4.9 */
	LAC__RULE_RESERVE = 12,	     /* 4.12 */
	LAC__RULE_SPACE_FIRST = 13,  /* 4.13 */
	LAC__RULE_SYNC_FAILURE = 14, /* 4.14 */
	LAC__RULE_HIGH_WATER = 15,   /* 4.15 */
	LAC__RULE_ZERO_PAGE = 16,    /* 4.16 */
	LAC__RULE_DROP_RECORD = 17,  /* 4.17 */
};

extern unsigned lac__rules_off; /* bits by enum lac__rule */

static inline bool lac__rule(enum lac__rule rule)
{
	return __builtin_expect((lac__rules_off >> rule & 1) == 0, 1);
}

#endif
