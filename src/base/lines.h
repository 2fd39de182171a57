/* SPDX-License-Identifier: BSD-3-Clause
 * Lines of figures, as an array of structs: written as a float64 table in a file, and as JSON.
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
  int column; /* of the table, from 1 on; 0: not in the table */
};

#define LINE_MEMBER(of, key, type, name, column)                                                   \
  {                                                                                                \
    key, type, offsetof(of, name), column                                                          \
  }

struct line_form {
  size_t bytes; /* of the struct */
  int columns, count;
  const struct line_member *members; /* [count] in the order of JSON */
  const char *without;               /* a key that is left out of JSON; NULL: none */
};

/* table[count][columns] <- lines[count]; and back: lines_unpack() sets members without a column to
 * 0, and returns 0 if an integer member has a value that is no integer of its type. */
void lines_pack(const struct line_form *form, const void *lines, gidx count, real *table);
int lines_unpack(const struct line_form *form, const real *table, gidx count, void *lines);

/* Write an object for each line.  The first `old` lines come from a table, so their members without
 * a column are not known, and are written as null. */
void lines_json(const struct line_form *form, const void *lines, gidx count, gidx old,
                struct json *j);

/* Copy lines[count], of `bytes` bytes each, to the array that *array points to.  *max is the number
 * of lines that it has room for; if that is too small, a new array is taken from the arena.
 * ERR_MEMORY. */
int lines_copy(struct arena *arena, void *array, gidx *max, const void *lines, gidx count,
               size_t bytes);

#endif
