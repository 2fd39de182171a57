/* SPDX-License-Identifier: BSD-3-Clause
 * What a record of a journal says of an encoding: all that joins its first rows with the others, as
 * a part does (part.h), and what makes it the same job.
 *
 * Floor: io.  Not collective. */
#ifndef IO_RECORD_H
#define IO_RECORD_H

#include <stdio.h>

#include "io/journal.h"
#include "io/supports.h"

struct json;

struct record {
  struct supports_shape shape; /* of the whole result: n, k, s, d, p, has_codes */
  struct encode_part part;     /* of the rows that are done */
  gidx *density;               /* [k] */
  uint64_t dictionary, inputs; /* its hash, and a mark of the files of rows; 0: not known */
  gidx counted;                /* entries that are not 0, as they were read again */
  gidx zeros[SUPPORTS_ARRAYS]; /* chunks that are zero in every byte */
  idx rounds;                  /* of routing, and what else a file says of its codes (supports.h) */
  int normalized;
  real rho, max_decoder_cosine; /* the latter: of the rows that have row 0, once all are done */
  const real *mean;             /* [p]; NULL: nothing was subtracted */
  const char *identity;         /* of the job; what is borrowed of a record that was read lives in
                                * its bytes, or the arena */
};

/* Bytes of a record of so many rows and with so long an identity, at most. */
gidx record_most(const struct record *r, gidx rows);
/* *bytes[*count] <- it; the caller frees them. */
int record_pack(const struct record *r, unsigned char **bytes, gidx *count);
/* The last record of a journal.  ERR_INPUT: it is not of this form, or not of an encoding. */
int record_read(struct record *r, const struct journal *j, struct arena *arena);
/* *text, which the caller frees, <- the identity of the last record of the journal at `name`, and
 * into numbers[2], unless it is NULL, the rows that are done and those of all. */
int record_identity(const char *name, char **text, gidx *numbers);
/* Print both, of a journal or of its growing file, as `inspect` does. */
int record_print(const char *name, FILE *out);
/* The same as entries of an object, as `inspect --json` does. */
int record_json(const char *name, struct json *json);

#endif
