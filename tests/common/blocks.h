/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/common/blocks.h - blocks whose bytes follow from a seed, and small helpers that tests
 * share.
 */
#ifndef LAC_TESTS_COMMON_BLOCKS_H
#define LAC_TESTS_COMMON_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A small, fast, reproducible generator (splitmix64). */
uint64_t test_random(uint64_t *state);

/* Fills length bytes that depend on seed and on every position. */
void test_fill(uint8_t *bytes, size_t length, uint64_t seed);
/* True when bytes are what test_fill made; from is the offset of bytes in the block. */
bool test_matches(const uint8_t *bytes, size_t length, uint64_t seed, uint64_t from);

/* A new empty directory below $TMPDIR or the current one; removed with all in it by
 * test_remove_dir. */
char *test_make_dir(const char *name);
void test_remove_dir(char *path);

/* 1, or less when LACUNA_TEST_SCALE is "quick" (sanitizers), or what the number in it says. */
double test_scale(void);

#endif
