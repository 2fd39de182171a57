/* SPDX-License-Identifier: BSD-3-Clause
 * The option --grid: how ranks share out rows and atoms.
 *
 * Floor: encode. */
#ifndef ENCODE_GRID_H
#define ENCODE_GRID_H

/* *groups <- R of "RxA" for so many ranks; 0 for "auto".  ERR_USAGE says what would do. */
int grid_parse(const char *text, int ranks, int *groups);

#endif
