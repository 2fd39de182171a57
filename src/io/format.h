/* SPDX-License-Identifier: BSD-3-Clause
 * Files of other programs that hold arrays, but are neither HDF5 nor .npy: what they are, and how
 * they are converted.
 *
 * Floor: io. */
#ifndef IO_FORMAT_H
#define IO_FORMAT_H

/* ERR_INPUT when the file is of such a format, by its first bytes, ERR_IO when these cannot be
 * read; one that cannot be opened, and any other, passes: opening it says what it is. */
int format_check(const char *path);

/* The same where opening has failed with ERR_INPUT: if the file is of no such format, that failure
 * stays. */
int format_tell(const char *path);

#endif
