/* SPDX-License-Identifier: BSD-3-Clause
 * The settings of another program: a file in JSON, as a flat list of names and values.
 *
 * Floor: io.  Not collective.  A value inside an object has the names of both, as
 * "trainer.dict_class", and one inside a list its place there, as "blocks[0].k"; a dot that is part
 * of a name stands as "\.".  A name that stands twice in an object is refused. */
#ifndef IO_SETTINGS_H
#define IO_SETTINGS_H

#include "base/json_reader.h"
#include "io/flat_file.h"

enum setting_kind { SETTING_WORD, SETTING_TEXT, SETTING_LIST, SETTING_OBJECT };

struct setting {
  const char *name, *value; /* owned: a text decoded, a word as it is written: true, null, 0.5; of a
                             * list and an object "[...]" and "{...}" */
  enum setting_kind kind;
  int is_listed;   /* it is inside a list */
  gidx begin, end; /* bytes of the file where a word or text stands */
};
struct settings {
  struct setting *list; /* [count]; owned */
  int count, capacity;
  struct json_keys names;
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
/* *value <- true or false, 1 or 0, null for false; it stays as it is where the name is not there.
 * ERR_INPUT: it is anything else. */
int settings_flag(const struct settings *s, const char *name, int *value);
/* *value <- a whole number, which stays as it is where the name is not there.  ERR_INPUT. */
int settings_long(const struct settings *s, const char *name, gidx *value);
/* *value <- a number above 0 that is finite; it stays as it is where the name is not there, or is
 * null.  ERR_INPUT. */
int settings_factor(const struct settings *s, const char *name, double *value);

/* Put a text, decoded, in the place of a value in s->whole. */
int settings_replace(struct settings *s, const char *name, const char *text);

#endif
