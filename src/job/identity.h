/* SPDX-License-Identifier: BSD-3-Clause
 * The identity of a job: all that the values of its result depend on, as lines of a text.
 *
 * Floor: job.  Not collective.
 *
 * Each line has a key of its own:
 *     numerics = <NUMERICS>             of the program
 *     rho = 0.1                         an option that may change bits, as it was resolved
 *     rows_hash = 0123456789abcdef      an input; only such keys have a '_'
 * What a job publishes has this text as the attribute `identity` of /run.  A run that resumes it
 * must have the same lines; lines of inputs count once both sides have them, since some are known
 * only after inputs have been read. */
#ifndef JOB_IDENTITY_H
#define JOB_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#include "base/options.h"
#include "model/identity.h"

struct identity_text {
  char *text; /* owned; NULL: not begun */
};

/* Begin with the options.  resolved: an options struct of this set with the values that take
 * effect, also where 0 or `auto` was given.  ERR_MEMORY. */
int identity_text_begin(struct identity_text *t, const struct option_set *set,
                        const void *resolved);
void identity_text_free(struct identity_text *t);

/* Remove the line of a key, if there is one. */
void identity_text_remove(struct identity_text *t, const char *key);

/* Add an input, or change its value, printed as by format; its name has a '_'. */
int identity_text_input(struct identity_text *t, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int identity_text_hash(struct identity_text *t, const char *name, uint64_t hash); /* 0: none */
int identity_text_rows(struct identity_text *t, uint64_t rows, uint64_t held_out);
/* Add the hashes of rows, a dictionary, supports and codes. */
int identity_text_contents(struct identity_text *t, const struct identity *of);

/* The first difference, each side as "--rho 0.1", "no --center" or "rows_hash 0123". */
struct identity_difference {
  char was[256], is[256];
};
/* Do two texts differ? */
int identity_text_differs(const char *was, const char *is, struct identity_difference *difference);

/* May a run resume from a file?  ERR_INPUT if its job differs, or its program's results have other
 * bits; the message says in what, with both values.  shown: the file's name in messages. */
int identity_text_check(const struct identity_text *now, const char *path, const char *shown);

#endif
