/* SPDX-License-Identifier: BSD-3-Clause
 * Locate damage in a file: which datasets, and which rows of them, differ from what was written.
 *
 * Floor: io.  Not collective. */
#ifndef IO_DAMAGE_H
#define IO_DAMAGE_H

#include "io/check.h"

/* Call this after a check of the file failed with `status`.  Read every dataset chunk by chunk, and
 * add a line to the report for each run of damaged chunks.  Returns `status`.  If damaged chunks
 * were found, its message then says where the first one is and how many there are. */
int damage_locate(const struct verify *v, int status);

#endif
