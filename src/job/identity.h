/* SPDX-License-Identifier: BSD-3-Clause
 * What names a job: all that the values of its result depend on, as lines of a text.
 *
 * Floor: job.  Not collective.
 *
 * The lines, of which each has a key of its own:
 *     numerics = <NUMERICS>             of the program
 *     rho = 0.1                         an option that may change bits, as it was resolved
 *     rows_hash = 0123456789abcdef      an input; only such keys have a '_'
 * They are the attribute `identity` of /run of what a job publishes.  A run that goes on from it
 * has the same lines; those of inputs count as soon as both sides have them, since some are known
 * only when inputs have been read. */
#ifndef JOB_IDENTITY_H
#define JOB_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#include "base/options.h"
#include "model/identity.h"

/* Which bits this program gives.  Rises when equal input gives other bits (doc/versions.md); /run
 * of every result has it. */
enum { NUMERICS = 7 };
/* ERR_INPUT: the file was written by a program with other bits, so that what goes on from it would
 * have the bits of both; the message says by which, and advises what to do. */
int numerics_check(const char *path, const char *advice);

struct identity_text {
  char *text; /* owned; NULL: not begun */
};

/* Begin with the options.  resolved: an options struct of this set whose values are those that
 * count, where 0 or `auto` was given too.  ERR_MEMORY. */
int identity_text_begin(struct identity_text *t, const struct option_set *set,
                        const void *resolved);
void identity_text_free(struct identity_text *t);

/* Remove the line of a key, if there is one. */
void identity_text_remove(struct identity_text *t, const char *key);

/* Add an input, or give it another value; its name has a '_'. */
int identity_text_input(struct identity_text *t, const char *name, const char *value);
int identity_text_hash(struct identity_text *t, const char *name, uint64_t hash); /* 0: none */
int identity_text_rows(struct identity_text *t, uint64_t rows, uint64_t held_out);
/* Those of rows, a dictionary, supports and codes. */
int identity_text_contents(struct identity_text *t, const struct identity *of);

/* *text, which the caller frees, <- that of a file.  ERR_INPUT: it is of a program with other
 * bits, or has none; the message says of which. */
int identity_text_read(const char *path, char **text);

/* value[capacity] <- that of a key in that of a file; "" where it has none. */
int identity_text_value(const char *path, const char *key, char *value, size_t capacity);

/* A line of it, or of another text of lines "key = value". */
struct identity_line {
  char key[64];
  const char *value; /* [length] in the text */
  int length;
};
/* Take the line at `at`; returns where the next one is, NULL: there is none. */
const char *identity_line_take(const char *at, struct identity_line *line);
/* Is there one with this key; and has a line this value? */
int identity_line_find(const char *text, const char *key, struct identity_line *line);
int identity_line_is(const struct identity_line *line, const char *value, int length);

/* The first difference, each side as "--rho 0.1", "no --center" or "rows_hash 0123". */
struct identity_difference {
  char was[256], is[256];
};
/* Do two texts differ? */
int identity_text_differs(const char *was, const char *is, struct identity_difference *difference);

/* May a run go on from a file?  ERR_INPUT: it is of a program with other bits, or of another job;
 * the message names what differs, and both values.  shown: its name in messages. */
int identity_text_check(const struct identity_text *now, const char *path, const char *shown);

#endif
