/* SPDX-License-Identifier: BSD-3-Clause
 * The HDF5 files of a folder, such as a run's: every name in it that ends in ".h5".
 *
 * Floor: io.  Not collective.
 *
 * Whether a name leads to a file that can be read is for who opens it to say: a link to nothing is
 * listed as well, so that nobody takes it for a file that is not there.  Names that begin with a
 * dot are left out, as they are by a shell's *.h5: other systems keep notes about files in them. */
#ifndef IO_FILE_NAMES_H
#define IO_FILE_NAMES_H

#include <dirent.h>

/* Sorted by bytes; owned. */
struct file_names {
  struct dirent **entries; /* [count], each of malloc() */
  int count;
};
/* List a folder.  file_names_free() follows also when it fails.  ERR_IO: it cannot be read. */
int file_names_list(struct file_names *names, const char *folder);
void file_names_free(struct file_names *names);

#endif
