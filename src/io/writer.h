/* SPDX-License-Identifier: BSD-3-Clause
 * Which program wrote a file, and for which job.
 *
 * Floor: io.  Not collective. */
#ifndef IO_WRITER_H
#define IO_WRITER_H

/* Which bits this program gives.  Increased when equal input gives other bits (doc/versions.md);
 * /run of every result has it. */
enum { NUMERICS = 8 };
/* ERR_INPUT: the file was written by a program with other bits, so that a run that resumes from it
 * would mix the bits of both; the message says which program, and advises what to do. */
int numerics_check(const char *path, const char *advice);

/* *text <- the identity of a result or a journal (job/identity.h); the caller frees it.  ERR_INPUT:
 * the file has no identity, or a program with other bits wrote the result; the message says which
 * program. */
int writer_identity(const char *path, char **text);

#endif
