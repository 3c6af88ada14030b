/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz/fuzz_super.c - one copy of the superblock. */
#include "format/super.h"

#include <errno.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t mode = fuzz_mode(&data, &size), page[LAC__PAGE_BYTES], again[LAC__PAGE_BYTES];
	uint32_t copy = mode >> 1 & 1;
	struct lac__super super;
	struct lac_error err;
	int rc;

	fuzz_take(&data, &size, page, sizeof(page));
	if (mode & FUZZ_SEAL)
		fuzz_seal_page(page, 8);
	rc = lac__super_decode(page, copy, &super, &err);
	if (rc < 0) {
		fuzz_error(rc, &err);
		MUST(rc == -EBADMSG || rc == -EUCLEAN || rc == -EOPNOTSUPP);
		return 0;
	}
	MUST(super.next_id <= super.id_high_water && super.checkpoint > 0 && super.redo_lsn > 0);
	MUST((super.flags & LAC__SUPER_CLEAN) || super.end_lsn == 0);
	lac__super_encode(&super, again);
	MUST(memcmp(page, again, sizeof(page)) == 0);
	return 0;
}
