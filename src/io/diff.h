/* SPDX-License-Identifier: BSD-3-Clause
 * Compare the contents of two files.
 *
 * Floor: io.  Not collective. */
#ifndef IO_DIFF_H
#define IO_DIFF_H

#include <stdio.h>

/* Compare all datasets and attributes outside /run and /hashes bit for bit, types and shapes
 * included.  Attributes that are hashes, or marks of input files, are skipped if Sagitta wrote both
 * files.
 * *equal <- the answer.  The first difference in the order of paths (object, index, both values) is
 * printed to out, and added as the entry `difference` to the object that is open in json.  out and
 * json may be NULL. */
struct json;
int file_diff(const char *a, const char *b, FILE *out, struct json *json, int *equal);

#endif
