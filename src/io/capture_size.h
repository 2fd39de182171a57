/* SPDX-License-Identifier: BSD-3-Clause
 * The largest norms of the queries and keys that were read of a capture.  They bound the terms of a
 * score, and so its rounding error (N.27).
 *
 * Floor: io.  Not collective. */
#ifndef IO_CAPTURE_SIZE_H
#define IO_CAPTURE_SIZE_H

#include "model/capture.h"

/* square[heads] <- at least the squared norm of each finite vector of values[count][heads][d]. */
void capture_size_note(const void *values, enum capture_type type, gidx count, idx heads, idx d,
                       real *square);

#endif
