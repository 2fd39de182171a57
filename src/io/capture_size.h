/* SPDX-License-Identifier: BSD-3-Clause
 * How large the queries and keys of a capture are, as far as they were read: what bounds the terms
 * of a score, and so its rounding (N.27).
 *
 * Floor: io.  Not collective. */
#ifndef IO_CAPTURE_SIZE_H
#define IO_CAPTURE_SIZE_H

#include "model/capture.h"

/* square[heads] <- at least the squared norm of each finite vector of values[count][heads][d]. */
void capture_size_note(const void *values, enum capture_type type, gidx count, idx heads, idx d,
                       real *square);

#endif
