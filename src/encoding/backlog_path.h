/* SPDX-License-Identifier: BSD-3-Clause
 * Where the result of a line is to be: of names that differ too, whether they are one place.
 *
 * Floor: encoding.  Not collective. */
#ifndef ENCODING_BACKLOG_PATH_H
#define ENCODING_BACKLOG_PATH_H

enum { BACKLOG_NAME = 4096 };

/* name[BACKLOG_NAME] <- the file of an output as --output of encode takes it, for messages.
 * ERR_CREATE: it is too long. */
int backlog_path_name(const char *output, char *name);

/* place[BACKLOG_NAME] <- a file with its folder resolved, also where that is to be made: one place
 * has one text.  ERR_CREATE: it is too long. */
int backlog_path(const char *name, char *place);

#endif
