/* SPDX-License-Identifier: BSD-3-Clause
 * The parts of a text in JSON, read one after another by who knows what comes.
 *
 * Floor: base.
 *
 * The reader trusts nothing; what is not JSON is ERR_INPUT, and names the byte. */
#ifndef BASE_JSON_READER_H
#define BASE_JSON_READER_H

#include "base/status.h"
#include "base/types.h"

struct json_reader {
  const char *path, *part; /* borrowed, for messages: a file and what of it is read */
  char *start, *at;        /* the text, ended by a zero, and where its rest begins */
  gidx offset;             /* byte of the file where it starts */
};

/* Fail unless the condition holds, which is said of the place that was reached. */
#define JSON_GOOD(r, condition, what)                                                              \
  CHECK(condition, ERR_INPUT, "%s of '%s' is damaged at byte %lld: %s", (r)->part, (r)->path,      \
        (long long)((r)->at - (r)->start) + (long long)(r)->offset, what)

void json_blanks(struct json_reader *r);
/* Skip blanks, then a sign if it is there: 1. */
int json_sign(struct json_reader *r, char sign);
/* *text <- a text, decoded where it stands and ended by a zero. */
int json_string(struct json_reader *r, char **text);
/* A whole number without a sign, and without zeros in front. */
int json_number(struct json_reader *r, gidx *number);
/* A key, and the colon behind it. */
int json_key(struct json_reader *r, char **key);
/* Pass a value of any kind, loosely; *found <- 1 where a text in it is this word. */
int json_skip(struct json_reader *r, const char *word, int *found);

/* Names that are to stand once: readers of JSON differ in which of two they take. */
struct json_keys {
  const char **list; /* [count], borrowed names; the list is owned */
  gidx count, capacity;
};
int json_keys_add(struct json_keys *k, const char *key);
/* A name that is there twice, NULL: none.  Sorts them. */
const char *json_keys_twice(struct json_keys *k);
void json_keys_free(struct json_keys *k);

#endif
