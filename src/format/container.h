/* SPDX-License-Identifier: Apache-2.0 */
/* format/container.h - the header in the first granule of a container file. */
#ifndef LAC_FORMAT_CONTAINER_H
#define LAC_FORMAT_CONTAINER_H

#include "format/common.h"

enum lac__container_kind {
	LAC__CONTAINER_ALIGNED =
		1, /* payloads start on granules, descriptions in granules of their own */
	LAC__CONTAINER_PACKED = 2, /* description and payload in line, 64-byte alignment */
};

struct lac__container_header {
	struct lac__uuid uuid; /* of the store */
	uint32_t container;    /* id, from 1, never reused */
	uint32_t kind;	       /* enum lac__container_kind */
	uint32_t granule_bytes;
	uint64_t birth_lsn; /* LSN of its CREATING record */
};

void lac__container_header_encode(const struct lac__container_header *h, void *ret_page);
/* expect may be NULL; else uuid, container, kind and granule must be its. */
int lac__container_header_decode(const void *page, const struct lac__container_header *expect,
	struct lac__container_header *ret, struct lac_error *err);

#endif
