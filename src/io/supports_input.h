/* SPDX-License-Identifier: BSD-3-Clause
 * Supports and codes that are read: of supports.h5, or any CSR matrix.
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
  idx top_s, rounds;   /* as the file says; of a foreign file -1 and 1 */
  const char *encoder; /* as in supports_shape (supports.h), as is the next */
  int solved;
  struct score_cuts cuts; /* by which the supports were chosen; n = 0: none */
  int nonnegative;        /* as the file says: codes are at least 0; 0 when it does not say */
  int normalized;         /* the atoms were scaled first */
  real rho;   /* penalty with which the codes were solved; 0 when the file does not say */
  real *mean; /* [mean_length] subtracted from the rows; NULL: nothing was; owned */
  gidx mean_length;
  gidx sweeps;                        /* of refit so far */
  struct identity inputs;             /* that the codes were solved for, where the file says it;
                                       * a dictionary that was scaled first is not */
  struct identity contents;           /* of a refit, with the dictionary that it belongs to */
  real explained_variance;            /* as the file says; NaN when it does not */
  struct supports_input_state *state; /* owned */
};
/* Open FILE[:/GROUP], a CSR matrix as encode, scipy or AnnData write it; the default is /supports.
 * ERR_IO: cannot open; ERR_INPUT: no such group, missing or wrong arrays or attributes, damaged. */
int supports_input_open(struct supports_input *f, const char *name);
/* The same for a file that may be a part, which the other refuses; for part.c. */
int supports_part_open(struct supports_input *f, const char *name);
/* *encoder <- the kind of the encoder whose codes a file has, as above. */
int supports_encoder_read(const struct h5_file *f, const char **encoder);
/* *mean <- what rows are less: the mean of the dictionary, a name, or of the codes, which have to
 * agree; a foreign file may leave it to the dictionary.  NULL: none.  ERR_INPUT. */
int supports_mean_find(const struct supports_input *f, const char *dictionary, const real *of_atoms,
                       gidx p, const real **mean);
/* Has the file a score beside each code? */
int supports_have_scores(const struct supports_input *f);
struct h5_file *supports_input_file(const struct supports_input *f);
void supports_input_close(struct supports_input *f);

/* Check the shape[2] of a CSR matrix, an attribute with no data behind it, before memory is taken
 * for it.  ERR_INPUT when a number is out of range, or when there are far more atoms than entries
 * and no densities are stored for them. */
int supports_shape_check(const struct h5_file *f, const gidx *shape, gidx entries);

#endif
