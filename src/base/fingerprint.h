/* SPDX-License-Identifier: BSD-3-Clause
 * Fingerprints: the sum modulo 2^64 of a mix of (global position, value bits).
 *
 * Floor: base.
 *
 * A sum does not depend on order, so ranks can add the fingerprints of the parts that they hold.
 * If two runs have equal fingerprints, their values are almost surely equal. */
#ifndef BASE_FINGERPRINT_H
#define BASE_FINGERPRINT_H

#include "base/types.h"

/* The fingerprint of count values of `width` 4, 8 or 16 bytes each, at global positions first,
 * first + 1, ...  Values of 16 bytes take the least time per byte. */
uint64_t fingerprint(const void *values, gidx count, int width, gidx first);

/* A hash of a byte string, for finding equal strings.  It depends on the order of the bytes. */
uint64_t hash64(const void *bytes, size_t length);

#endif
