/* SPDX-License-Identifier: BSD-3-Clause
 * Which entries of a damaged file are not what was written: of which datasets, and of which rows.
 *
 * Floor: io.  Not collective. */
#ifndef IO_DAMAGE_H
#define IO_DAMAGE_H

#include "io/check.h"

/* A check of the file failed: read every dataset, chunk by chunk, and add a line to the report for
 * each run of chunks that are not what was written.  Returns the same status, whose message then
 * says where the first one is, and how many there are; or what it was where none is. */
int damage_locate(const struct verify *v, int status);

#endif
