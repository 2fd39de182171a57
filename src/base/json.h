/* SPDX-License-Identifier: BSD-3-Clause
 * JSON, written value by value: objects and arrays nest, and one entry has a line.
 *
 * Floor: base.
 *
 * Text is escaped, and what is not UTF-8 becomes U+FFFD.  A number is written with 17 digits, so
 * that reading it gives its bits; one that is not finite is null.  Whether all was written is for
 * the stream to say. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdint.h>
#include <stdio.h>

#include "base/types.h"

struct json {
  FILE *out;     /* borrowed */
  int depth;     /* objects and arrays that are open */
  int count;     /* entries of the innermost so far; the others have one at least */
  char close[8]; /* what closes each */
};

/* Begin an object or an array: of an object with a key, else key is NULL.  json_end() closes the
 * innermost one.  At most 8 are open at a time. */
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j);

/* A value; a text that is NULL is null. */
void json_text(struct json *j, const char *key, const char *text);
void json_real(struct json *j, const char *key, real value);
void json_long(struct json *j, const char *key, gidx value);
void json_flag(struct json *j, const char *key, int value);
void json_hash(struct json *j, const char *key, uint64_t hash); /* a text of 16 digits */

#endif
