/* SPDX-License-Identifier: BSD-3-Clause
 * Reading supports and codes from supports.h5, or from any CSR matrix.
 *
 * Floor: io.  Not collective: every rank opens the file itself and reads its own part. */
#ifndef IO_SUPPORTS_INPUT_H
#define IO_SUPPORTS_INPUT_H

#include "io/h5/h5.h"
#include "io/identity.h"
#include "model/cuts.h"
#include "model/supports.h"

/* Supports named on the command line. */
struct supports_input {
  struct support_source source;
  const char *file;    /* borrowed: the name without /group */
  idx top_s, rounds;   /* as the file says; -1 and 1 for a file of another program */
  const char *encoder; /* encoder, solved: as in struct supports_shape (supports.h) */
  int solved;
  struct score_cuts cuts; /* the score cuts (model/cuts.h) by which the supports were chosen; n = 0:
                           * none */
  int nonnegative;        /* 1: the file says that codes are at least 0 */
  int normalized;         /* the atoms were scaled first */
  real rho;   /* penalty with which the codes were solved; 0 if the file does not say it */
  real *mean; /* [mean_length] subtracted from the rows; NULL: nothing was; owned */
  gidx mean_length;
  gidx sweeps;                        /* of refit so far */
  struct identity inputs;             /* hashes of the rows and the dictionary for which the codes
                                       * were solved, if the file has them; .dictionary is 0 if the
                                       * atoms were scaled first */
  struct identity contents;           /* of a refit: hashes of its supports and of the dictionary
                                       * that belongs to them */
  real explained_variance;            /* as the file says; NaN if it does not */
  struct supports_input_state *state; /* owned */
};
/* Open FILE[:/GROUP], a CSR matrix as encode, scipy or AnnData write it; the default is /supports.
 * ERR_IO: cannot open; ERR_INPUT: no such group, missing or wrong arrays or attributes, damaged. */
int supports_input_open(struct supports_input *f, const char *name);
/* The same, but a part is accepted too, which supports_input_open() refuses; for part.c. */
int supports_part_open(struct supports_input *f, const char *name);
/* *encoder <- the name of the encoder that chose the supports of a file, as in struct
 * supports_shape. */
int supports_encoder_read(const struct h5_file *f, const char **encoder);
/* *mean <- the vector that is subtracted from rows; NULL: none.  dictionary: the name of the
 * dictionary; of_atoms: its mean.  If only the supports have a mean, it is used.  If only the
 * dictionary has one, it is used if another program wrote the supports.  ERR_INPUT: the two means
 * differ, the mean of the supports has another length than p, or only the dictionary has a mean and
 * Sagitta wrote the supports. */
int supports_mean_find(const struct supports_input *f, const char *dictionary, const real *of_atoms,
                       gidx p, const real **mean);
/* Does the file have a score for each code? */
int supports_have_scores(const struct supports_input *f);
struct h5_file *supports_input_file(const struct supports_input *f);
void supports_input_close(struct supports_input *f);

/* Check the attribute shape[2] of a CSR matrix before memory of that size is allocated, since no
 * stored data confirm these two numbers.  ERR_INPUT: a number is out of range, or there are far
 * more atoms than entries and no density per atom is stored. */
int supports_shape_check(const struct h5_file *f, const gidx *shape, gidx entries);

#endif
