/* SPDX-License-Identifier: BSD-3-Clause
 * Labels of rows: a whole number for each, such as its token.
 *
 * Floor: io.  Not collective. */
#ifndef IO_LABELS_H
#define IO_LABELS_H

#include "base/memory.h"
#include "base/types.h"

/* *labels <- [n] of FILE[:/PATH], an HDF5 dataset of int32 or int64 (default path: /token), in the
 * arena.  ERR_IO: cannot open; ERR_INPUT: no such dataset, not of whole numbers, not one per row,
 * or a label is negative or at least 2^63 - 1.  rows: the name of the rows, for messages. */
int labels_read(const char *name, gidx n, const char *rows, struct arena *arena, gidx **labels);

#endif
