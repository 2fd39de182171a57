/* SPDX-License-Identifier: BSD-3-Clause
 * The page of the command `inspect` about the contents of a file.
 *
 * Floor: io.  Not collective. */
#ifndef IO_INSPECT_H
#define IO_INSPECT_H

#include <stdio.h>

/* Print the page of a file.  For HDF5 it has the format, objects with shapes and types, metrics and
 * provenance.  Files of .npy and safetensors, journals and growing files (journal.h) have pages of
 * their own.  ERR_IO, ERR_INPUT. */
int file_inspect(const char *path, FILE *out);

/* Open an HDF5 file.  A file of Sagitta with a newer format version gives a warning, not a failure.
 * ERR_IO, ERR_INPUT. */
struct h5_file;
int inspect_open(struct h5_file *f, const char *path);

/* out[capacity] <- a number of bytes as text, such as "1.5 MB". */
void size_print(double bytes, char *out, int capacity);

#endif
