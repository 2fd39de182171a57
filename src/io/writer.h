/* SPDX-License-Identifier: BSD-3-Clause
 * Which program wrote a file, and for which job.
 *
 * Floor: io.  Not collective. */
#ifndef IO_WRITER_H
#define IO_WRITER_H

/* The version of the bits of results.  It is increased when equal input gives other bits
 * (doc/versions.md); /run of every result has it. */
enum { NUMERICS = 8 };
/* ERR_INPUT: a program with other bits wrote the file.  A run that resumes from it would mix the
 * bits of both programs.  The message says which program wrote it, and ends with `advice`. */
int numerics_check(const char *path, const char *advice);

/* *text <- the identity of a result or a journal (job/identity.h); the caller frees it.  ERR_INPUT:
 * the file has no identity, or a program with other bits wrote the result; the message says which
 * program. */
int writer_identity(const char *path, char **text);

#endif
