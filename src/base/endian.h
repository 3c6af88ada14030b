/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/endian.h - little-endian fields as they stand on disk.
 *
 * One-field structs of bytes: no padding, no alignment, and no way to do arithmetic on a value that
 * was not converted first.
 */
#ifndef LAC_BASE_ENDIAN_H
#define LAC_BASE_ENDIAN_H

#include <stdint.h>

typedef struct {
	uint8_t b[2];
} lac_le16;
typedef struct {
	uint8_t b[4];
} lac_le32;
typedef struct {
	uint8_t b[8];
} lac_le64;

static inline uint16_t lac__get16(lac_le16 v)
{
	return (uint16_t)(v.b[0] | v.b[1] << 8);
}

static inline uint32_t lac__get32(lac_le32 v)
{
	return (uint32_t)v.b[0] | (uint32_t)v.b[1] << 8 | (uint32_t)v.b[2] << 16 |
	       (uint32_t)v.b[3] << 24;
}

static inline uint64_t lac__get64(lac_le64 v)
{
	return (uint64_t)v.b[0] | (uint64_t)v.b[1] << 8 | (uint64_t)v.b[2] << 16 |
	       (uint64_t)v.b[3] << 24 | (uint64_t)v.b[4] << 32 | (uint64_t)v.b[5] << 40 |
	       (uint64_t)v.b[6] << 48 | (uint64_t)v.b[7] << 56;
}

static inline lac_le16 lac__put16(uint16_t v)
{
	return (lac_le16){{(uint8_t)v, (uint8_t)(v >> 8)}};
}

static inline lac_le32 lac__put32(uint32_t v)
{
	return (lac_le32){{(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)}};
}

static inline lac_le64 lac__put64(uint64_t v)
{
	return (lac_le64){{(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24),
		(uint8_t)(v >> 32), (uint8_t)(v >> 40), (uint8_t)(v >> 48), (uint8_t)(v >> 56)}};
}

#endif
