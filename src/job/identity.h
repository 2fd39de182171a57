/* SPDX-License-Identifier: BSD-3-Clause
 * The identity of a job: a text whose lines name all that the values of its result depend on.
 *
 * Floor: job.  Not collective.
 *
 * Each line has a key of its own:
 *     numerics = 8                      NUMERICS of the program (io/writer.h)
 *     rho = 0.1                         an option that may change bits; the value that takes effect
 *     rows_hash = 0123456789abcdef      an input; only the keys of inputs have a '_'
 * Each file of the job has this text, as the attribute `identity` of /run.  A run that resumes the
 * job must have the same lines.  The line of an input is compared only if both texts have it, since
 * some lines are known only after the inputs have been read. */
#ifndef JOB_IDENTITY_H
#define JOB_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#include "base/options.h"
#include "model/identity.h"

struct identity_text {
  char *text; /* owned; NULL: not begun */
};

/* Begin with the options.  resolved: an options struct of this set, with the values that take
 * effect in place of 0 or `auto`.  ERR_MEMORY. */
int identity_text_begin(struct identity_text *t, const struct option_set *set,
                        const void *resolved);
void identity_text_free(struct identity_text *t);

/* Remove the line of a key, if there is one. */
void identity_text_remove(struct identity_text *t, const char *key);

/* Add the line of an input, or change its value, which `format` prints.  The name has a '_'. */
int identity_text_input(struct identity_text *t, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int identity_text_hash(struct identity_text *t, const char *name, uint64_t hash); /* 0: none */
int identity_text_rows(struct identity_text *t, uint64_t rows, uint64_t held_out);
/* Add the hashes of rows, a dictionary, supports and codes. */
int identity_text_contents(struct identity_text *t, const struct identity *of);

/* The first difference; each side is as "--rho 0.1", "no --center" or "rows_hash 0123". */
struct identity_difference {
  char was[256], is[256];
};
/* Do two texts differ? */
int identity_text_differs(const char *was, const char *is, struct identity_difference *difference);

/* Check that this run may resume from a file.  ERR_INPUT: the file has another identity; the
 * message has the first difference, with both values.  shown: the file's name in messages. */
int identity_text_check(const struct identity_text *now, const char *path, const char *shown);

#endif
