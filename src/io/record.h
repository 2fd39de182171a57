/* SPDX-License-Identifier: BSD-3-Clause
 * The record of an encoding in its journal (journal.h).  It has the sums and counts over the rows
 * that are done, from which the metrics of all rows are computed later; a part has the same ones
 * (part.h).  It also has the identity of the job: options and inputs that must be the same when the
 * job is resumed.
 *
 * Floor: io.  Not collective. */
#ifndef IO_RECORD_H
#define IO_RECORD_H

#include <stdio.h>

#include "io/journal.h"
#include "io/supports.h"

struct json;

struct record {
  struct supports_shape shape; /* of all rows of the job; only n, k, s, d, p, has_codes and
                                * nonnegative are set */
  struct encode_part part;     /* of the rows that are done */
  gidx *density;               /* [k] */
  uint64_t dictionary, inputs; /* hash of the dictionary, and mark of the files of rows; 0: not
                                * known */
  gidx counted;                /* entries that are not 0, counted when rows were read back */
  gidx zeros[SUPPORTS_ARRAYS]; /* for each array, the number of chunks whose bytes are all 0 */
  idx rounds;                  /* of routing; rounds, normalized, rho and mean are as in struct
                                * supports_ending */
  int normalized;
  real rho, max_decoder_cosine; /* the cosine is known when all rows are done */
  const real *mean;             /* [p] subtracted from rows; NULL: none */
  const char *identity;         /* of the job, as text */
};

/* The largest size in bytes of a record with this shape and identity, for `rows` rows. */
gidx record_most(const struct record *r, gidx rows);
/* *bytes[*count] <- the record as bytes; the caller frees them. */
int record_pack(const struct record *r, unsigned char **bytes, gidx *count);
/* *r <- the last record of a journal; its arrays are in the arena.  ERR_INPUT: it is not a record
 * of an encoding. */
int record_read(struct record *r, const struct journal *j, struct arena *arena);
/* *text <- the identity in the last record of the journal `name`; the caller frees it.  If numbers
 * is not NULL, numbers[0] <- the rows that are done, and numbers[1] <- all rows. */
int record_identity(const char *name, char **text, gidx *numbers);
/* Print the identity and the number of rows of a journal or a growing file, for `sagitta
 * inspect`. */
int record_print(const char *name, FILE *out);
/* Add the same to a JSON object, for `sagitta inspect --json`. */
int record_json(const char *name, struct json *json);

#endif
