/* SPDX-License-Identifier: Apache-2.0 */
/* check/retired.h - which index pages were retired (rule 4.16). */
#ifndef LAC_CHECK_RETIRED_H
#define LAC_CHECK_RETIRED_H

#include "check/checker.h"

struct lac__retired_page {
	uint64_t no;
	uint8_t *bits; /* NULL = not known: reported */
};

struct lac__retired {
	struct lac__retired_page *at; /* ascending; others have no bit set */
	size_t count, room;
	uint64_t unknown_from; /* nothing is known of pages of the list from here on */
};

int lac__retired_load(struct lac__checker *c, struct lac__retired *ret);
void lac__retired_free(struct lac__retired *r);

enum lac__retired_answer {
	LAC__RETIRED_NO,
	LAC__RETIRED_YES,
	LAC__RETIRED_UNKNOWN,
};
/* Of index page no; the answer holds for all of [no, *ret_end). */
enum lac__retired_answer lac__retired_ask(
	const struct lac__retired *r, uint64_t no, uint64_t *ret_end);

#endif
