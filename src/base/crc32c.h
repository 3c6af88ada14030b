/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/crc32c.h - CRC32C (Castagnoli, RFC 3720 appendix B.4), reflected, inverted at both ends.
 *
 * Calls chain: crc32c(crc32c(0, a), b) == crc32c(0, ab). A seed is put in front by starting from
 * the value of a former call. By ISA-L where the build found it, else by a table.
 */
#ifndef LAC_BASE_CRC32C_H
#define LAC_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t lac__crc32c(uint32_t crc, const void *data, size_t length);

/* The table variant, always built: the other one is tested against it. */
uint32_t lac__crc32c_table(uint32_t crc, const void *data, size_t length);

/* "isa-l" or "table". */
const char *lac__crc32c_name(void);

#endif
