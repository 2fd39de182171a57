/* SPDX-License-Identifier: BSD-3-Clause
 * Is a file whole, and does it keep the promises of doc/formats.md?
 *
 * Floor: io.  Not collective. */
#ifndef IO_VERIFY_H
#define IO_VERIFY_H

#include <stdio.h>

/* Read every dataset, and so every checksum, and check the invariants of doc/formats.md for the
 * objects that are there.  ERR_INPUT names the first broken one.  A line for each check goes to out
 * unless that is NULL. */
int file_verify(const char *path, FILE *out);

/* The same of a file whose entries of supports were read again by who wrote them, and checked, and
 * have these counts; NULL: all are read here. */
struct support_counts;
int file_verify_rest(const char *path, const struct support_counts *counts);

/* file_verify() of a file that is open, whose entries of supports are read once and go to a taker
 * (check.h). */
struct h5_file;
struct verify_taker;
int file_verify_taking(struct h5_file *f, const struct verify_taker *taker);

#endif
