/* SPDX-License-Identifier: BSD-3-Clause
 * Finding features: codes of rows on their active atoms (N.49 - N.51), whose number differs from
 * row to row.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * These plain loops are the references of encode/active.h. */
#ifndef MODEL_FIND_H
#define MODEL_FIND_H

#include "model/batch_cut.h"

/* Active atoms of a row at most, and how often they may be chosen again. */
enum { ACTIVE_MOST = 256, FIND_LOOKS = 4 };

/* How rows are described by atoms that are known. */
struct found_encoder {
  int looks;                       /* how often atoms are chosen again, 0 .. FIND_LOOKS */
  float threshold[FIND_LOOKS + 1]; /* a score above it makes an atom active; >= 0 */
  real rho;                        /* penalty on the codes */
  int relative;                    /* scores count by the size of what is left of a row (N.51) */
  real floor;
};

/* That of `fit --find features`, for rows of this mean square; it has no thresholds. */
struct found_encoder find_standard(real square);

/* (N.49): the product of an atom and a row, or what a description leaves of it. */
float find_score(const float *x, const float *atom, idx p);

/* scores[k], the products of what a description leaves of a row, become what each atom would have
 * without its own code (N.51). */
struct find_raise {
  idx k, n;          /* n codes of the description */
  const idx *index;  /* [n] */
  const float *code; /* [n] */
  real square;       /* of what is left of the row: train_square(); 0 where not relative */
  int relative;
  real floor;
};
void find_raise(const struct find_raise *row, float *scores);

/* The cut by which scores above a threshold, and no others, are entries. */
struct batch_cut find_cut_at(float threshold);

/* The `most`-th largest of n > most values. */
float find_largest(const float *values, gidx n, idx most);

/* Rows x[n][p] and atoms[k][p]; toward[k], to which rho draws codes, or NULL: 0. */
struct find_rows {
  idx n, k, p;
  const float *x, *atoms, *toward;
  real rho;
  int relative;
  real floor;
};

/* Codes of a row whose active atoms have active[k] > 0: codes[k] <- 0 or more, residual[p] <- what
 * they leave, by codes that are not rounded.  The first ACTIVE_MOST by score are active, of equals
 * the lower atom.  ERR_MEMORY. */
int find_codes_reference(const struct find_rows *r, idx row, const float *active, float *codes,
                         float *residual);

/* Codes of a batch, codes[n][k], chosen 1 + looks times, each time floor(l0 n) entries (N.46), and
 * what they leave, left[n][p]; least[1 + looks] <- the last score of each choice.  ERR_MEMORY. */
int find_batch_reference(const struct find_rows *r, real l0, int looks, float *codes, float *left,
                         float *least);

/* Codes of rows by thresholds, codes[n][k]; toward is NULL.  ERR_MEMORY. */
int find_encode_reference(const struct find_rows *r, const struct found_encoder *by, float *codes);

#endif
