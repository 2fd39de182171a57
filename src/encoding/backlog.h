/* SPDX-License-Identifier: BSD-3-Clause
 * A backlog: files that a server encodes one after another while it also answers requests.
 *
 * Floor: encoding.  One rank. */
#ifndef ENCODING_BACKLOG_H
#define ENCODING_BACKLOG_H

#include "encoding/served_file.h"

struct backlog {
  struct served_task task; /* the caller sets all but list, front and pieces */
  struct backlog_list list;
  gidx done, failed;
  int code; /* status of the first file that failed */
  char reason[1024];
};

/* Encode the files, until all are done or the server ends; a function for serve_files.run.  If a
 * file fails, the log says why, the next file follows, and OK is returned. */
int backlog_run(void *self, struct front *front);

/* *is_left <- 1: files are left, which a server with --resume encodes.  Returns the status of the
 * first file that failed; the message says how many failed. */
int backlog_end(const struct backlog *b, int *is_left);

#endif
