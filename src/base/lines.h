/* SPDX-License-Identifier: BSD-3-Clause
 * Lines of figures, an array of structs: as a table of float64 in a file, and in JSON.
 *
 * Floor: base. */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include <stddef.h>

#include "base/json.h"
#include "base/memory.h"

enum line_type { LINE_LONG, LINE_INDEX, LINE_REAL }; /* gidx, idx, real */

struct line_member {
  const char *key; /* in JSON */
  enum line_type type;
  size_t offset;
  int column; /* of the table, from 1 on; 0: it is in none */
};

#define LINE_MEMBER(of, key, type, name, column)                                                   \
  {                                                                                                \
    key, type, offsetof(of, name), column                                                          \
  }

struct line_form {
  size_t bytes; /* of the struct */
  int columns, count;
  const struct line_member *members; /* [count] in the order of JSON */
  const char *without;               /* a key that JSON leaves out; NULL: none */
};

/* table[count][columns] <- lines[count]; and back, where members without a column become 0. */
void lines_pack(const struct line_form *form, const void *lines, gidx count, real *table);
void lines_unpack(const struct line_form *form, const real *table, gidx count, void *lines);

/* An object for each.  The first `old` lines came from a table, so that members without a column
 * are not known. */
void lines_json(const struct line_form *form, const void *lines, gidx count, gidx old,
                struct json *j);

/* *array, a pointer to lines of so many bytes from the arena, <- a copy of lines[count]; *max: how
 * many it has room for.  ERR_MEMORY. */
int lines_copy(struct arena *arena, void *array, gidx *max, const void *lines, gidx count,
               size_t bytes);

#endif
