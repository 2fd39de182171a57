/* SPDX-License-Identifier: BSD-3-Clause
 * A folder in the place of a file, such as a run's.
 *
 * Floor: io.  Not collective. */
#ifndef IO_INPUT_FOLDER_H
#define IO_INPUT_FOLDER_H

enum { MAX_NAME = 4096 }; /* bytes of a path */

/* path[MAX_NAME] <- the input that a name leads to: the name itself, or where it is a folder, such
 * as a run's, that folder's file of this name.  ERR_INPUT: too long. */
int input_in_folder(const char *name, const char *file, char *path);

/* The same.  ERR_IO: the folder has no such file; what it has is named, and how all files of rows
 * are. */
int input_of_folder(const char *name, const char *file, char *path);

#endif
