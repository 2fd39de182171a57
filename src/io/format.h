/* SPDX-License-Identifier: BSD-3-Clause
 * What a file is that cannot be read as its name says: of another format, for which there is
 * another name, or one of another program that holds arrays, and how it is converted.
 *
 * Floor: io. */
#ifndef IO_FORMAT_H
#define IO_FORMAT_H

/* To be called where a regular file was opened as the end of its name says, and this failed.
 * ERR_INPUT: by its bytes it is of another format, or of none that is known; ERR_IO when these
 * cannot be read.  OK: it may be such a file, but damaged. */
int format_check(const char *path);

/* ".npy", ".safetensors" or ".h5": how a file is to be read.  The end of its name says so, and
 * where it has none, its first bytes. */
const char *format_ending(const char *path);

#endif
