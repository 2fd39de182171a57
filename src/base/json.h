/* SPDX-License-Identifier: BSD-3-Clause
 * JSON, written value by value; objects and arrays nest, and each entry has a line.
 *
 * Floor: base.
 *
 * Text is escaped; bytes that are not UTF-8 become U+FFFD.  A real is written with 17 digits, so
 * that reading it gives the same bits; a real that is not finite is null.  Ask the stream, by
 * ferror(), whether everything was written. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdint.h>
#include <stdio.h>

#include "base/types.h"

struct json {
  FILE *out;     /* borrowed */
  int depth;     /* objects and arrays that are open */
  int count;     /* entries so far in the innermost open one; the outer ones have at least one */
  char close[8]; /* the closing bracket of each */
};

/* Begin an object or an array.  It has a key if it is in an object; otherwise key is NULL.
 * json_end() closes the innermost one.  At most 8 may be open at a time. */
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j);

/* Write a value; a text that is NULL is written as null. */
void json_text(struct json *j, const char *key, const char *text);
void json_real(struct json *j, const char *key, real value);
void json_long(struct json *j, const char *key, gidx value);
void json_flag(struct json *j, const char *key, int value);
void json_hash(struct json *j, const char *key, uint64_t hash); /* a text of 16 digits */

#endif
