/* SPDX-License-Identifier: BSD-3-Clause
 * The files that a server with a backlog reads, none of which a result may replace.
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

/* Note files by name.  backlog_inputs_free() follows also when it fails.  ERR_IO: one cannot be
 * opened. */
int backlog_inputs_add(struct backlog_inputs *inputs, const char *const *names, int count);

/* The input that is the file at path, by whatever name; NULL: none is. */
const char *backlog_inputs_find(const struct backlog_inputs *inputs, const char *path);
void backlog_inputs_free(struct backlog_inputs *inputs);

#endif
