/* SPDX-License-Identifier: BSD-3-Clause
 * Inputs that are given as a folder, such as the output folder of a run.
 *
 * Floor: io.  Not collective. */
#ifndef IO_INPUT_FOLDER_H
#define IO_INPUT_FOLDER_H

enum { MAX_NAME = 4096 }; /* bytes of a path */

/* path[MAX_NAME] <- `name`, or if that is a folder, the path of `file` in it.  ERR_INPUT: too
 * long. */
int input_in_folder(const char *name, const char *file, char *path);

/* The same.  ERR_IO: the folder has no such file; the message lists the files that it has, and says
 * how to name many files of rows. */
int input_of_folder(const char *name, const char *file, char *path);

#endif
