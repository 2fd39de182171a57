/* SPDX-License-Identifier: BSD-3-Clause
 * The HDF5 files of a folder, such as a run's: every name in it that ends in ".h5".
 *
 * Floor: io.  Not collective.
 *
 * A name is listed even if it cannot be opened, such as a dangling link; opening it then gives the
 * error.  Names that begin with a dot are left out, as by a shell's *.h5, since other systems keep
 * metadata about files under such names. */
#ifndef IO_FILE_NAMES_H
#define IO_FILE_NAMES_H

#include <dirent.h>

/* Sorted by bytes; owned. */
struct file_names {
  struct dirent **entries; /* [count], each of malloc() */
  int count;
};
/* List a folder.  Call file_names_free() also after a failure.  ERR_IO: it cannot be read. */
int file_names_list(struct file_names *names, const char *folder);
void file_names_free(struct file_names *names);

#endif
