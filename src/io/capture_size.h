/* SPDX-License-Identifier: BSD-3-Clause
 * The largest norms of the queries and keys that were read from a capture.  They bound the terms of
 * a score, and so its rounding error (N.27).
 *
 * Floor: io.  Not collective. */
#ifndef IO_CAPTURE_SIZE_H
#define IO_CAPTURE_SIZE_H

#include "model/capture.h"

/* Raise square[h], of square[heads], to the largest squared norm of a finite vector of head h in
 * values[count][heads][d]. */
void capture_size_note(const void *values, enum capture_type type, gidx count, idx heads, idx d,
                       real *square);

#endif
