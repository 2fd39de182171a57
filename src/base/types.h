/* SPDX-License-Identifier: BSD-3-Clause
 * Number types used everywhere.
 *
 * Floor: base. */
#ifndef BASE_TYPES_H
#define BASE_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t idx;  /* local index or count: rows of a block, atoms, columns */
typedef int64_t gidx; /* global row, or an offset into a long array */
typedef double real;  /* binary64; 32-bit values are called float */

#endif
