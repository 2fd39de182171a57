/* SPDX-License-Identifier: BSD-3-Clause
 * A page about what a file holds, as the command `inspect` prints it.
 *
 * Floor: io.  Not collective. */
#ifndef IO_INSPECT_H
#define IO_INSPECT_H

#include <stdio.h>

/* Print what is in any HDF5 file: format, objects with shapes and types, metrics, provenance; or in
 * a .npy file.  ERR_IO, ERR_INPUT. */
int file_inspect(const char *path, FILE *out);

/* Open an HDF5 file; one of ours that is newer than this program gets a warning.  ERR_IO,
 * ERR_INPUT. */
struct h5_file;
int inspect_open(struct h5_file *f, const char *path);

/* out[capacity] <- "1.5 MB". */
void size_print(double bytes, char *out, int capacity);

#endif
