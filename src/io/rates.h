/* SPDX-License-Identifier: BSD-3-Clause
 * Reads what `sagitta-bench rates --json` printed (doc/json.md).
 *
 * Floor: io.  Rank 0 alone. */
#ifndef IO_RATES_H
#define IO_RATES_H

#include "model/rates.h"

/* ERR_IO: cannot read; ERR_INPUT: the file is not an object as that command prints it, a rate is
 * not above 0, or the sizes at which a rate was measured are not a whole grid.  Entries and rates
 * of other names are passed over. */
int rates_read(struct rates *r, const char *path);

#endif
