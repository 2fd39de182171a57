/* SPDX-License-Identifier: BSD-3-Clause
 * The list of a backlog: each line names a file of rows and the output for its codes.
 *
 * Floor: encoding.  Not collective. */
#ifndef ENCODING_BACKLOG_LIST_H
#define ENCODING_BACKLOG_LIST_H

#include "base/types.h"
#include "encoding/backlog_inputs.h"

struct backlog_entry {
  char *rows, *output; /* the words of the line, like --rows and --output of encode; owned */
  /* file: path of the supports.h5 that `output` names, for messages.  place: the same path with its
   * folder resolved, to compare (backlog_path.h).  Both are owned. */
  char *file, *place;
  int line; /* number of the line in the list */
};

struct backlog_list {
  const char *name;          /* borrowed */
  struct backlog_entry *all; /* [count], owned */
  gidx count, capacity;
  struct backlog_inputs inputs; /* filled in by backlog_check() */
};

/* Read a list.  A line has two words, ROWS and OUTPUT; a # begins a comment.  ERR_IO: the list
 * cannot be read.  ERR_INPUT: a line does not have two words, two lines have the same result, or
 * there are no lines.  Call backlog_list_free() after a failure, too. */
int backlog_list_read(struct backlog_list *list, const char *name);
void backlog_list_free(struct backlog_list *list);

#endif
