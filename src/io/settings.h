/* SPDX-License-Identifier: BSD-3-Clause
 * The settings of another program: a file in JSON, as a flat list of names and values.
 *
 * Floor: io.  Not collective.  The name of a value in a nested object contains all names on the way
 * to it, as "trainer.dict_class", and indices of lists, as "blocks[0].k".  A name's own dots are
 * written "\.", likewise [ and \.  A name that occurs twice in an object is refused. */
#ifndef IO_SETTINGS_H
#define IO_SETTINGS_H

#include "base/json_reader.h"
#include "io/flat_file.h"

enum setting_kind { SETTING_WORD, SETTING_TEXT, SETTING_LIST, SETTING_OBJECT };

struct setting {
  const char *name, *value; /* owned; value: a text is decoded, a word is as written (true, null,
                             * 0.5), a list is "[...]", an object is "{...}" */
  enum setting_kind kind;
  int is_listed;   /* it is inside a list */
  gidx begin, end; /* the bytes of a word or text in the file */
};
struct settings {
  struct setting *list; /* [count]; owned */
  int count, capacity;
  struct json_keys names;
  char *text;  /* decoded; owned */
  char *whole; /* the file as it is; owned */
  struct flat_file file;
};
/* Read a file; path must outlive *s.  Call settings_close() also after a failure.  ERR_IO: cannot
 * open; ERR_INPUT: it is not JSON, or too large. */
int settings_open(struct settings *s, const char *path);
int settings_close(struct settings *s);

/* The value with this name; NULL: there is none, or it is null. */
const char *settings_find(const struct settings *s, const char *name);
/* *value <- 1 for true or 1, 0 for false, 0 or null; unchanged if there is no such name.
 * ERR_INPUT: another value. */
int settings_flag(const struct settings *s, const char *name, int *value);
/* *value <- a whole number; unchanged if there is none, or null.  ERR_INPUT: another value. */
int settings_long(const struct settings *s, const char *name, gidx *value);
/* *value <- a finite number above 0; unchanged if there is no such name, or it is null.  ERR_INPUT:
 * another value. */
int settings_factor(const struct settings *s, const char *name, double *value);

/* Replace a value in s->whole, if there is one, by a text that needs no escapes. */
int settings_replace(struct settings *s, const char *name, const char *text);

#endif
