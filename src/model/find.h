/* SPDX-License-Identifier: BSD-3-Clause
 * Finding features: codes of rows on their active atoms (N.49 - N.51).  Rows have different numbers
 * of active atoms.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * These plain loops are the references of encode/active.h. */
#ifndef MODEL_FIND_H
#define MODEL_FIND_H

#include "model/batch_cut.h"

/* largest number of active atoms of a row; largest number of repeated choices of them */
enum { ACTIVE_MOST = 256, FIND_LOOKS = 4 };

/* How rows are encoded with the atoms of a finished dictionary. */
struct found_encoder {
  int looks;                       /* repeated choices of atoms, 0 .. FIND_LOOKS */
  float threshold[FIND_LOOKS + 1]; /* of each choice, >= 0: an atom is active if its score is
                                    * above it */
  real rho;                        /* penalty on the codes */
  int relative;                    /* scores are divided by the norm of the row's residual (N.51) */
  /* if relative: added to the squared norm of the residual (N.51) */
  real floor;
};

/* The encoder of `fit --find features`, without thresholds.  square: the mean squared norm of the
 * rows. */
struct found_encoder find_standard(real square);

/* (N.49): the product of an atom with a row, or with the residual of a row. */
float find_score(const float *x, const float *atom, idx p);

/* scores[k], the products of the atoms with the residual of a row, become the scores that each atom
 * would have without its own code (N.51). */
struct find_raise {
  idx k, n;          /* n: number of codes of the row */
  const idx *index;  /* [n] ascending */
  const float *code; /* [n] */
  real square;       /* squared norm of the residual, by train_square(); used only if relative */
  int relative;
  real floor;
};
void find_raise(const struct find_raise *row, float *scores);

/* The cut that takes exactly the scores above a threshold. */
struct batch_cut find_cut_at(float threshold);

/* The `most`-th largest of values[n]; 0 if fewer than `most` of them are positive. */
float find_largest(const float *values, gidx n, idx most);

/* Rows x[n][p] and atoms[k][p]; rho draws codes to toward[k], or to 0 if it is NULL. */
struct find_rows {
  idx n, k, p;
  const float *x, *atoms, *toward;
  real rho;
  int relative;
  real floor;
};

/* Codes of a row on its active atoms.  These are the atoms with active[k] > 0, at most ACTIVE_MOST:
 * those with the largest active[]; of equal values the lower atoms.  codes[k] <- the codes, which
 * are nonnegative; residual[p] <- the residual of the row, computed from unrounded codes.
 * ERR_MEMORY. */
int find_codes_reference(const struct find_rows *r, idx row, const float *active, float *codes,
                         float *residual);

/* codes[n][k] <- the codes of a batch.  Choices are made 1 + looks times, each time of floor(l0 n)
 * scores (N.46).  left[n][p] <- the residuals of the rows; least[1 + looks] <- the lowest chosen
 * score of each choice; 0 if fewer scores than that are positive.  ERR_MEMORY. */
int find_batch_reference(const struct find_rows *r, real l0, int looks, float *codes, float *left,
                         float *least);

/* codes[n][k] <- the codes of rows by the thresholds of an encoder; r->toward is NULL.
 * ERR_MEMORY. */
int find_encode_reference(const struct find_rows *r, const struct found_encoder *by, float *codes);

#endif
