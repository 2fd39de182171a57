/* SPDX-License-Identifier: BSD-3-Clause
 * Verify a file: all bytes are as written, and the invariants of doc/formats.md hold.
 *
 * Floor: io.  Not collective. */
#ifndef IO_VERIFY_H
#define IO_VERIFY_H

#include <stdio.h>

/* Read every dataset, and so every checksum, and check the invariants of doc/formats.md for the
 * objects that exist.  ERR_INPUT: one is broken; the message names the first.  Unless out is NULL,
 * it gets a line for each check. */
int file_verify(const char *path, FILE *out);

/* The same, but the entries of supports are skipped if their writer has already read them again and
 * checked them; counts: the counts of these entries; NULL: nothing is skipped. */
struct support_counts;
int file_verify_rest(const char *path, const struct support_counts *counts);

/* As file_verify(), for an open file.  The entries of supports are read once, and also go to a
 * taker (check.h). */
struct h5_file;
struct verify_taker;
int file_verify_taking(struct h5_file *f, const struct verify_taker *taker);

#endif
