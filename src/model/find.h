/* SPDX-License-Identifier: BSD-3-Clause
 * Finding features: codes of rows on their active atoms (N.49 - N.51); rows have different numbers
 * of these.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * These plain loops are the references of encode/active.h. */
#ifndef MODEL_FIND_H
#define MODEL_FIND_H

#include "model/batch_cut.h"

/* most active atoms of a row, and most repeated choices of them */
enum { ACTIVE_MOST = 256, FIND_LOOKS = 4 };

/* How rows are described by the atoms of a finished dictionary. */
struct found_encoder {
  int looks;                       /* repeated choices of atoms, 0 .. FIND_LOOKS */
  float threshold[FIND_LOOKS + 1]; /* of each choice: an atom is active if its score is above; >=
                                    * 0 */
  real rho;                        /* penalty on the codes */
  int relative;                    /* scores are relative to the size of what is left of a row
                                    * (N.51) */
  real floor;                      /* added to the square of what is left, if relative (N.51) */
};

/* The encoder of `fit --find features`, for rows of this mean square; without thresholds. */
struct found_encoder find_standard(real square);

/* (N.49): the product of an atom with a row, or with what is left of one. */
float find_score(const float *x, const float *atom, idx p);

/* scores[k], the products of what is left of a row, become those that each atom would have without
 * its own code (N.51). */
struct find_raise {
  idx k, n;          /* n codes of the description */
  const idx *index;  /* [n] */
  const float *code; /* [n] */
  real square;       /* of what is left of the row, by train_square(); 0 if not relative */
  int relative;
  real floor;
};
void find_raise(const struct find_raise *row, float *scores);

/* The cut that takes exactly the scores above a threshold. */
struct batch_cut find_cut_at(float threshold);

/* The `most`-th largest of n > most values. */
float find_largest(const float *values, gidx n, idx most);

/* Rows x[n][p] and atoms[k][p]; rho draws codes to toward[k], or to 0 if it is NULL. */
struct find_rows {
  idx n, k, p;
  const float *x, *atoms, *toward;
  real rho;
  int relative;
  real floor;
};

/* Codes of a row; atoms with active[k] > 0 are active, but only the first ACTIVE_MOST by score, of
 * equals the lower atom.  codes[k] <- 0 or more; residual[p] <- what is left of the row, by codes
 * that are not rounded.  ERR_MEMORY. */
int find_codes_reference(const struct find_rows *r, idx row, const float *active, float *codes,
                         float *residual);

/* codes[n][k] <- the codes of a batch.  Atoms are chosen 1 + looks times, each time floor(l0 n)
 * entries (N.46).  left[n][p] <- what is left of the rows; least[1 + looks] <- the last score of
 * each choice.  ERR_MEMORY. */
int find_batch_reference(const struct find_rows *r, real l0, int looks, float *codes, float *left,
                         float *least);

/* codes[n][k] <- the codes of rows by the thresholds of an encoder; r->toward is NULL.
 * ERR_MEMORY. */
int find_encode_reference(const struct find_rows *r, const struct found_encoder *by, float *codes);

#endif
