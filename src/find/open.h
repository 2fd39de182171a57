/* SPDX-License-Identifier: BSD-3-Clause
 * Open what a search needs: split the rows, open the device, and allocate all memory, before any
 * row is read.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_OPEN_H
#define FIND_OPEN_H

#include "find/find_impl.h"

/* ERR_MEMORY.  Not collective.  finder_close() is safe on a zeroed struct. */
int finder_open(struct finder *f);
void finder_close(struct finder *f);

#endif
