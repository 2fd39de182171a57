/* SPDX-License-Identifier: BSD-3-Clause
 * The option --grid: how ranks divide rows and atoms among them.
 *
 * Floor: encode. */
#ifndef ENCODE_GRID_H
#define ENCODE_GRID_H

/* *groups <- R of "RxA": R groups of A ranks, where R A must be the number of ranks.  0 for "auto".
 * ERR_USAGE lists the grids that fit. */
int grid_parse(const char *text, int ranks, int *groups);

#endif
