/* SPDX-License-Identifier: BSD-3-Clause
 * The codes that a dictionary's own encoder gives the first rows of a file, in memory.  sagitta
 * verify FOLDER --rows ROWS compares supports with them.
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
  float *rows;    /* [n][p] less the task's mean */
  gidx *start;    /* [n + 1] where the entries of a row begin in `found` */
  idx *lengths;   /* [n] */
  float *weights; /* [k][p] */
  struct entry_list found;
  struct rows_input input;
  struct encoder_input encoder;
  float *threshold; /* [k] thresholds of the encoder that the cuts make */
  struct device device;
  struct active active; /* if the encoder is of kind ENCODER_ACTIVE */
  struct buffer all;    /* the rows, as the encoder takes them */
  struct arena arena;
};

struct own_codes_task {
  const struct dictionary_input *dictionary;
  const char *rows;
  idx most;                             /* largest number of rows to encode, from the first one
                                         * on */
  const struct device_options *options; /* kind, threads, variant and kernels */
  const struct score_cuts *cuts;        /* (N.58); NULL: the encoder's own choice of atoms */
  const real *mean;                     /* [p] subtracted from the rows; NULL: none */
  real rho;                             /* the penalty of `encode --l0`, if the atoms have no
                                         * encoder */
};
/* ERR_INPUT: there is no encoder; the rows have other columns; there are no rows; a value is not
 * finite; or the cuts are of another encoder.  Call own_codes_free() after a failure, too. */
int own_codes_find(struct own_codes *o, const struct own_codes_task *task);
void own_codes_free(struct own_codes *o);

struct verify_supports {
  const char *folder, *rows;
  struct device_options device; /* kind, threads, variant, kernels */
  FILE *out;                    /* where the result is printed; NULL: nowhere */
};
/* Check that the supports of a folder are those that the encoder of its dictionary gives the rows.
 * Compares the first 65,536 rows at most: atoms, scores, and codes unless they were solved.
 * ERR_USAGE: the supports were not made by an encoder, or the atoms were scaled (--normalize).
 * ERR_INPUT names the first row that differs. */
int verify_supports(const struct verify_supports *v);

#endif
