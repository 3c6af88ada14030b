/* SPDX-License-Identifier: Apache-2.0 */
/* format/container_test.c - container headers. */
#include "format/container.h"

#include "format/format_test.h"

static struct lac__container_header good;
static uint8_t page[LAC__PAGE_BYTES];

static int setup(void **state)
{
	(void)state;
	good = (struct lac__container_header){test_uuid, 5, LAC__CONTAINER_PACKED, 16384, 77};
	memset(page, 0xee, sizeof(page));
	lac__container_header_encode(&good, page);
	return 0;
}

static int decode(const void *bytes, struct lac_error *err)
{
	struct lac__container_header out;

	return lac__container_header_decode(bytes, NULL, &out, err);
}

static void test_round_trip(void **state)
{
	struct lac__container_header out;

	(void)state;
	assert_int_equal(lac__container_header_decode(page, &good, &out, NULL), 0);
	assert_memory_equal(&out.uuid, &good.uuid, sizeof(out.uuid));
	assert_int_equal(out.container, 5);
	assert_int_equal(out.kind, LAC__CONTAINER_PACKED);
	assert_int_equal(out.granule_bytes, 16384);
	assert_int_equal(out.birth_lsn, 77);
	assert_memory_equal(page, "LACCONT1", 8);
	assert_memory_equal(page + 32, "\5\0\0\0\2\0\0\0\0\x40\0\0\0\0\0\0\x4d\0\0\0\0\0\0\0", 24);
}

static void test_every_byte(void **state)
{
	(void)state;
	check_every_byte(page, sizeof(page), decode);
}

static void refuse(size_t at, uint32_t value, int want, int reason)
{
	struct lac_error err;

	lac__container_header_encode(&good, page);
	store32(page, at, value);
	reseal(page, 8);
	assert_int_equal(decode(page, &err), want);
	assert_int_equal(err.reason, reason);
}

static void test_bounds(void **state)
{
	(void)state;
	refuse(12, 0, -EOPNOTSUPP, LAC_REASON_FORMAT_UNKNOWN);
	refuse(32, 0, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(36, 0, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(36, 3, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(40, 512, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(40, 4097, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(40, 131072, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(44, 1, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(48, 0, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(52, UINT32_MAX, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(56, 1, -EUCLEAN, LAC_REASON_BAD_FIELD);
	refuse(4092, 1, -EUCLEAN, LAC_REASON_BAD_FIELD);
}

static void test_identity(void **state)
{
	struct lac__container_header expect, out;
	struct lac_error err;

	(void)state;
	for (int field = 0; field < 4; field++) {
		expect = good;
		if (field == 0)
			expect.uuid = other_uuid;
		else if (field == 1)
			expect.container = 6;
		else if (field == 2)
			expect.kind = LAC__CONTAINER_ALIGNED;
		else
			expect.granule_bytes = 4096;
		assert_int_equal(lac__container_header_decode(page, &expect, &out, &err), -EUCLEAN);
		assert_int_equal(err.reason, LAC_REASON_BAD_IDENTITY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_round_trip, setup),
		cmocka_unit_test_setup(test_every_byte, setup),
		cmocka_unit_test_setup(test_bounds, setup),
		cmocka_unit_test_setup(test_identity, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
