/* SPDX-License-Identifier: BSD-3-Clause
 * The settings of another program: a file in JSON, as a flat list of names and values.
 *
 * Floor: io.  Not collective.  A value inside an object has the names of both, as
 * "trainer.dict_class"; lists are read over. */
#ifndef IO_SETTINGS_H
#define IO_SETTINGS_H

#include "io/flat_file.h"

struct setting {
  const char *name,
      *value; /* owned: a text decoded, anything else as it is written: true, null, 0.5 */
};
struct settings {
  struct setting *list; /* [count]; owned */
  int count, capacity;
  char *text;  /* decoded; owned */
  char *whole; /* the file as it is; owned */
  struct flat_file file;
};
/* Read a file; path must outlive *s.  settings_close() follows also when it fails.  ERR_IO: cannot
 * open; ERR_INPUT: it is not JSON, or too large. */
int settings_open(struct settings *s, const char *path);
int settings_close(struct settings *s);

/* The value of a name; NULL: there is none, or it is null. */
const char *settings_find(const struct settings *s, const char *name);
/* Is it there and true? */
int settings_true(const struct settings *s, const char *name);
/* *value <- a whole number, which stays as it is where the name is not there.  ERR_INPUT. */
int settings_long(const struct settings *s, const char *name, gidx *value);

#endif
