/* SPDX-License-Identifier: BSD-3-Clause
 * Functions that read the parts of a JSON text one after another.  The caller knows which part it
 * expects next.
 *
 * Floor: base.
 *
 * The reader trusts no byte: a part that is not as expected is ERR_INPUT, and the message names the
 * byte. */
#ifndef BASE_JSON_READER_H
#define BASE_JSON_READER_H

#include "base/status.h"
#include "base/types.h"

struct json_reader {
  /* borrowed, for messages: the file, and the name of the part of it that is read */
  const char *path, *part;
  char *start, *at; /* the text, ended by a zero; where its unread rest begins */
  gidx offset;      /* byte of the file where the text starts */
};

/* Fail unless the condition holds; the message names the byte that was reached. */
#define JSON_GOOD(r, condition, what)                                                              \
  CHECK(condition, ERR_INPUT, "%s of '%s' is damaged at byte %lld: %s", (r)->part, (r)->path,      \
        (long long)((r)->at - (r)->start) + (long long)(r)->offset, what)

void json_blanks(struct json_reader *r);
/* Skip blanks, and then the character `sign` if it comes next; returns 1 if it does. */
int json_sign(struct json_reader *r, char sign);
/* Read a string: *text <- its characters, decoded in place and ended by a zero. */
int json_string(struct json_reader *r, char **text);
/* Read a whole number of at most 18 digits, without a sign and without leading zeros. */
int json_number(struct json_reader *r, gidx *number);
/* Read any number that a double can hold. */
int json_decimal(struct json_reader *r, real *number);
/* Read a key and the colon after it. */
int json_key(struct json_reader *r, char **key);
/* Skip a value of any kind, without checking all of it; *found <- 1 if a string in it equals
 * `word`. */
int json_skip(struct json_reader *r, const char *word, int *found);

/* Names that must be unique: of two equal keys some readers of JSON take the first, others the
 * last. */
struct json_keys {
  const char **list; /* [count], borrowed names; the list is owned */
  gidx count, capacity;
};
int json_keys_add(struct json_keys *k, const char *key);
/* Sorts the names.  Returns one that occurs twice; NULL: none does. */
const char *json_keys_twice(struct json_keys *k);
void json_keys_free(struct json_keys *k);

#endif
