/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check/retired.c - the list is asked by ranges, since a damaged high-water mark may claim more
 * index pages than could ever be counted one by one.
 */
#include "check/retired.h"

#include <stdlib.h>
#include <string.h>

#include "check/pages.h"

static int take(struct lac__checker *c, void *arg, const struct lac__page_view *view)
{
	struct lac__retired *r = arg;
	struct lac__retired_page page = {.no = view->no};

	if (view->no >= r->unknown_from)
		return 0;
	if (!view->page && view->count > 1) {
		r->unknown_from = view->no;
		return 0;
	}
	if (!lac__check_grow((void **)&r->at, &r->room, r->count, sizeof(*r->at)))
		return lac__error_nomem(c->err);
	if (view->page) {
		page.bits = malloc(LAC__PAGE_BODY_BYTES);
		if (!page.bits)
			return lac__error_nomem(c->err);
		memcpy(page.bits, view->page->body, LAC__PAGE_BODY_BYTES);
	}
	r->at[r->count++] = page;
	return 0;
}

int lac__retired_load(struct lac__checker *c, struct lac__retired *ret)
{
	*ret = (struct lac__retired){.unknown_from = UINT64_MAX};
	return lac__check_pages_visit(c, LAC__PAGE_RETIRED, 0, take, ret);
}

void lac__retired_free(struct lac__retired *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->at[i].bits);
	free(r->at);
	*r = (struct lac__retired){0};
}

static const struct lac__retired_page *lower(const struct lac__retired *r, uint64_t no)
{
	size_t low = 0, high = r->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->at[middle].no < no)
			low = middle + 1;
		else
			high = middle;
	}
	return low < r->count ? &r->at[low] : NULL;
}

enum lac__retired_answer lac__retired_ask(
	const struct lac__retired *r, uint64_t no, uint64_t *ret_end)
{
	const uint64_t list_no = no / LAC__RETIRED_BITS, bit = no % LAC__RETIRED_BITS;
	const struct lac__retired_page *page = lower(r, list_no);

	*ret_end = (list_no + 1) * LAC__RETIRED_BITS;
	if (page && page->no == list_no) {
		if (!page->bits)
			return LAC__RETIRED_UNKNOWN;
		*ret_end = no + 1;
		return page->bits[bit / 8] & 1u << bit % 8 ? LAC__RETIRED_YES : LAC__RETIRED_NO;
	}
	if (list_no >= r->unknown_from) {
		*ret_end = UINT64_MAX;
		return LAC__RETIRED_UNKNOWN;
	}
	*ret_end = page && page->no < r->unknown_from ? page->no * LAC__RETIRED_BITS
		   : r->unknown_from == UINT64_MAX    ? UINT64_MAX
						      : r->unknown_from * LAC__RETIRED_BITS;
	return LAC__RETIRED_NO;
}
