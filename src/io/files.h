/* SPDX-License-Identifier: BSD-3-Clause
 * Files as a user looks at them: inspect, verify, diff.
 *
 * Floor: io.  Not collective. */
#ifndef IO_FILES_H
#define IO_FILES_H

#include <stdio.h>

/* Print what is in a file: format, objects with shapes and types, metrics, provenance.  Works for
 * any HDF5 file; ERR_IO, ERR_INPUT. */
int file_inspect(const char *path, FILE *out);

/* Read every dataset (so every checksum) and check each invariant of doc/formats.md for the objects
 * that are there.  ERR_INPUT names the first broken one; one line a check goes to out unless
 * NULL. */
int file_verify(const char *path, FILE *out);

/* Compare all datasets and attributes outside /run bit for bit, types and shapes included.
 * *equal is set; the first difference, in path order, goes to out: object, place, both values. */
int file_diff(const char *a, const char *b, FILE *out, int *equal);

#endif
