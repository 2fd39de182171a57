/* SPDX-License-Identifier: BSD-3-Clause
 * The files that a server encodes beside requests, one after another.
 *
 * Floor: encoding.  One rank. */
#ifndef ENCODING_BACKLOG_H
#define ENCODING_BACKLOG_H

#include "encoding/served_file.h"

struct backlog {
  struct served_task task; /* set by the caller, but for its front */
  struct backlog_list list;
  gidx done, failed;
  int code; /* of the first that failed */
  char reason[1024];
};

/* As serve_files.run: encode files until all are done or the server ends.  A file that fails is
 * told in the log and left. */
int backlog_run(void *self, struct front *front);

/* How it ended: *is_left <- files are to be done by a server with --resume.  The status is that of
 * the first that failed, and its text says how many did. */
int backlog_end(const struct backlog *b, int *is_left);

#endif
