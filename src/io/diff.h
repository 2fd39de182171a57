/* SPDX-License-Identifier: BSD-3-Clause
 * Do two files hold the same?
 *
 * Floor: io.  Not collective. */
#ifndef IO_DIFF_H
#define IO_DIFF_H

#include <stdio.h>

/* Compare all datasets and attributes outside /run bit for bit, types and shapes included.  *equal
 * is set.  The first difference in the order of paths goes to out: object, index, both values; and
 * to the object that is open in json, as its entry `difference`.  Either may be NULL. */
struct json;
int file_diff(const char *a, const char *b, FILE *out, struct json *json, int *equal);

#endif
