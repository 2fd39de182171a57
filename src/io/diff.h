/* SPDX-License-Identifier: BSD-3-Clause
 * Do two files hold the same?
 *
 * Floor: io.  Not collective. */
#ifndef IO_DIFF_H
#define IO_DIFF_H

#include <stdio.h>

/* Compare all datasets and attributes outside /run bit for bit, types and shapes included.  *equal
 * is set.  The first difference in the order of paths goes to out: object, index, both values. */
int file_diff(const char *a, const char *b, FILE *out, int *equal);

#endif
