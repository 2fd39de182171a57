/* SPDX-License-Identifier: BSD-3-Clause
 * Fingerprints: the sum modulo 2^64 of a mix of (global position, value bits).
 *
 * Floor: base.  A sum does not depend on the partition, so the parts that ranks hold can be
 * added. */
#ifndef BASE_FINGERPRINT_H
#define BASE_FINGERPRINT_H

#include "base/types.h"

/* Fingerprint of count values of width 4 or 8 bytes that stand at positions first, first + 1,
 * ... */
uint64_t fingerprint(const void *values, gidx count, int width, gidx first);

/* Identity of a byte string, for finding equal rows (64 bits, order matters). */
uint64_t bytes_hash(const void *bytes, size_t length);

#endif
