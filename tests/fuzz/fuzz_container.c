/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz/fuzz_container.c - the header of a container. */
#include "format/container.h"

#include <errno.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t mode = fuzz_mode(&data, &size), page[LAC__PAGE_BYTES], again[LAC__PAGE_BYTES];
	struct lac__container_header h, expect = {fuzz_uuid, 1, LAC__CONTAINER_PACKED, 4096, 0};
	struct lac_error err;
	int rc;

	fuzz_take(&data, &size, page, sizeof(page));
	if (mode & FUZZ_SEAL)
		fuzz_seal_page(page, 8);
	rc = lac__container_header_decode(page, NULL, &h, &err);
	if (rc < 0) {
		fuzz_error(rc, &err);
		MUST(lac__container_header_decode(page, &expect, &h, &err) == rc);
		return 0;
	}
	lac__container_header_encode(&h, again);
	MUST(memcmp(page, again, sizeof(page)) == 0);
	MUST(lac__container_header_decode(page, &h, &h, &err) == 0);
	rc = lac__container_header_decode(page, &expect, &h, &err);
	MUST(rc == 0 || (rc == -EUCLEAN && err.reason == LAC_REASON_BAD_IDENTITY));
	return 0;
}
