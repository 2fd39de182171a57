/* SPDX-License-Identifier: BSD-3-Clause
 * Paths of results, resolved so that two names of the same place become the same text.
 *
 * Floor: encoding.  Not collective. */
#ifndef ENCODING_BACKLOG_PATH_H
#define ENCODING_BACKLOG_PATH_H

enum { BACKLOG_NAME = 4096 };

/* name[BACKLOG_NAME] <- the path of the supports.h5 for `output`, as for --output of encode; used
 * in messages.  ERR_CREATE: the name is too long. */
int backlog_path_name(const char *output, char *name);

/* place[BACKLOG_NAME] <- the file `name` with its folder resolved, even if the folder does not
 * exist yet.  ERR_CREATE: the path is too long. */
int backlog_path(const char *name, char *place);

#endif
