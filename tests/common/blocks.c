/* SPDX-License-Identifier: Apache-2.0 */
/* tests/common/blocks.c - see blocks.h. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/blocks.h"

uint64_t test_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

static uint64_t word_at(uint64_t seed, uint64_t index)
{
	uint64_t state = seed * UINT64_C(0xD6E8FEB86659FD93) + index;

	return test_random(&state);
}

static uint8_t byte_at(uint64_t seed, uint64_t offset)
{
	return (uint8_t)(word_at(seed, offset / 8) >> (offset % 8 * 8));
}

void test_fill(uint8_t *bytes, size_t length, uint64_t seed)
{
	size_t at = 0;

	for (; at + 8 <= length; at += 8) {
		uint64_t word = word_at(seed, at / 8);

		for (unsigned i = 0; i < 8; i++)
			bytes[at + i] = (uint8_t)(word >> (i * 8));
	}
	for (; at < length; at++)
		bytes[at] = byte_at(seed, at);
}

bool test_matches(const uint8_t *bytes, size_t length, uint64_t seed, uint64_t from)
{
	size_t at = 0;

	while (at < length) {
		uint64_t offset = from + at;

		if (offset % 8 == 0 && at + 8 <= length) {
			uint64_t word = word_at(seed, offset / 8);

			for (unsigned i = 0; i < 8; i++)
				if (bytes[at + i] != (uint8_t)(word >> (i * 8)))
					return false;
			at += 8;
		} else {
			if (bytes[at] != byte_at(seed, offset))
				return false;
			at++;
		}
	}
	return true;
}

char *test_make_dir(const char *name)
{
	const char *base = getenv("TMPDIR");
	char path[4096];

	snprintf(path, sizeof path, "%s/lacuna-%s-XXXXXX", base ? base : ".", name);
	return mkdtemp(path) ? strdup(path) : NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void test_remove_dir(char *path)
{
	if (path)
		nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(path);
}

double test_scale(void)
{
	const char *text = getenv("LACUNA_TEST_SCALE");

	if (!text || !*text)
		return 1;
	if (strcmp(text, "quick") == 0)
		return 0.1;
	return atof(text) > 0 ? atof(text) : 1;
}
