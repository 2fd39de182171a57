/* SPDX-License-Identifier: BSD-3-Clause
 * The list of a backlog: a file of rows and the path of its result in each line.
 *
 * Floor: encoding.  Not collective. */
#ifndef ENCODING_BACKLOG_LIST_H
#define ENCODING_BACKLOG_LIST_H

#include "base/types.h"
#include "encoding/backlog_inputs.h"

struct backlog_entry {
  char *rows, *output; /* as --rows and --output of encode take them; owned, as are the next */
  char *file, *place;  /* of the result (backlog_path.h) */
  int line;            /* of the list */
};

struct backlog_list {
  const char *name;          /* borrowed */
  struct backlog_entry *all; /* [count], owned */
  gidx count, capacity;
  struct backlog_inputs inputs; /* by backlog_check() */
};

/* Read a list: ROWS and OUTPUT in a line, with blanks between them; what follows a # is left out.
 * backlog_list_free() follows also when it fails.  ERR_IO: it cannot be read.  ERR_INPUT names a
 * line that is no pair, two lines whose results are one file, by whatever names, or a list without
 * lines. */
int backlog_list_read(struct backlog_list *list, const char *name);
void backlog_list_free(struct backlog_list *list);

#endif
