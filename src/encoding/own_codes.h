/* SPDX-License-Identifier: BSD-3-Clause
 * The codes that a dictionary's own encoder finds of the first rows of a file, in memory, and
 * sagitta verify FOLDER --rows ROWS, which compares supports with them.
 *
 * Floor: encoding.  Not collective. */
#ifndef ENCODING_OWN_CODES_H
#define ENCODING_OWN_CODES_H

#include <stdio.h>

#include "base/options.h"
#include "device/device.h"
#include "encode/active.h"
#include "io/dictionary.h"
#include "io/encoder.h"
#include "io/rows.h"

struct own_codes {
  idx n, k, p;
  float *rows;    /* [n][p] less the dictionary's mean */
  gidx *start;    /* [n + 1] where the entries of a row begin in `found` */
  idx *lengths;   /* [n] */
  float *weights; /* [k][p] */
  struct entry_list found;
  struct rows_input input;
  struct encoder_input encoder;
  float *threshold; /* [k] of a cut */
  struct device device;
  struct active active; /* of an encoder of that kind */
  struct buffer all;    /* of rows, as the encoder takes them */
  struct arena arena;
};

struct own_codes_task {
  const struct dictionary_input *dictionary;
  const char *rows;
  idx most;                             /* the first so many rows */
  const struct device_options *options; /* kind, threads, variant and kernels */
  const struct score_cuts *cuts;        /* (N.58); NULL: the encoder's own choice */
  const real *mean;                     /* [p] of which the rows are less; NULL: of nothing */
  real rho;                             /* of cuts of atoms that have no encoder */
};
/* ERR_INPUT: there is no encoder, other columns, no rows, a value that is not finite, cuts of
 * another encoder.  own_codes_free() follows also when it fails. */
int own_codes_find(struct own_codes *o, const struct own_codes_task *task);
void own_codes_free(struct own_codes *o);

struct verify_supports {
  const char *folder, *rows;
  struct device_options device; /* kind, threads, variant, kernels */
  FILE *out;                    /* a line goes there; NULL: none */
};
/* The supports of a folder are those that the encoder of its dictionary gives the rows, whoever
 * solved their codes: compare the first rows, 65,536 of them at most.  ERR_USAGE: the supports are
 * not an encoder's; ERR_INPUT names the first row that has other atoms or scores. */
int verify_supports(const struct verify_supports *v);

#endif
