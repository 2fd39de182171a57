/* SPDX-License-Identifier: BSD-3-Clause
 * The input files of a server with a backlog.  No result may replace one of them.
 *
 * Floor: encoding.  Not collective. */
#ifndef ENCODING_BACKLOG_INPUTS_H
#define ENCODING_BACKLOG_INPUTS_H

#include "base/file_facts.h"
#include "base/types.h"

struct backlog_input {
  char *name; /* owned */
  struct file_facts facts;
};

struct backlog_inputs {
  struct backlog_input *all; /* [count], owned */
  gidx count, capacity;
};

/* Add files by name.  ERR_IO: one cannot be opened.  Call backlog_inputs_free() after a failure,
 * too. */
int backlog_inputs_add(struct backlog_inputs *inputs, const char *const *names, int count);

/* The name of the input that is the same file as `path`, even under another name; NULL: none is. */
const char *backlog_inputs_find(const struct backlog_inputs *inputs, const char *path);
void backlog_inputs_free(struct backlog_inputs *inputs);

#endif
