/* SPDX-License-Identifier: BSD-3-Clause
 * Which bits this program gives: files of another are not gone on with, since the result would have
 * the bits of both.
 *
 * Floor: job. */
#ifndef JOB_NUMERICS_H
#define JOB_NUMERICS_H

/* Rises when equal input gives other bits (doc/versions.md); /run of every result has it. */
enum { NUMERICS = 7 };

/* ERR_INPUT: the file was written by a program with other bits; the message says by which, and
 * advises what to do.  Not collective. */
int numerics_check(const char *path, const char *advice);

#endif
