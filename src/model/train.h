/* SPDX-License-Identifier: BSD-3-Clause
 * A TopK autoencoder and a step of its training (N.43, N.44), after Gao and others 2024.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_TRAIN_H
#define MODEL_TRAIN_H

#include "base/memory.h"
#include "model/adam.h"
#include "model/batch_cut.h"
#include "model/nested.h"

struct train_sizes {
  idx k, p, s;
  real l0; /* mean codes per row, chosen in the whole batch (N.46); 0: s in each row */
  /* largest number of dead latents per row that describe its residual; 0: none */
  idx aux;
  real aux_weight; /* of the loss of dead latents */
  /* for each of these widths, the first `width` atoms must describe rows without the others; the
   * last width is K */
  struct nested nested;
  gidx dead_rows;    /* a latent is dead if none of the last dead_rows rows used it */
  int is_fixed;      /* the decoder stays as it is */
  int learns_offset; /* an offset of the rows is learned, in addition to the mean (N.48) */
};

/* Decoder, encoder and bias, each with two moments; arrays live in the arena. */
enum { TRAIN_DECODER, TRAIN_ENCODER, TRAIN_BIAS, TRAIN_ARRAYS };
struct train_state {
  float *w[TRAIN_ARRAYS]; /* [k][p], [k][p], [k] */
  float *m[TRAIN_ARRAYS], *v[TRAIN_ARRAYS];
  float *offset[3]; /* [p] subtracted from scaled rows, and its two moments; 0 if it is not
                     * learned */
  gidx *idle;       /* [k] number of rows since a row used the latent */
  real error, size; /* sums of |e|^2 and |x|^2 over the batches since they were last set to 0 */
  struct batch_threshold threshold; /* of the scores of scaled rows, if l0 is not 0 */
};
int train_state_alloc(struct train_state *s, struct arena *arena, idx k, idx p);
/* The arrays of a state. */
enum { TRAIN_STATE_ARRAYS = 3 * TRAIN_ARRAYS + 4 };
struct train_array {
  void *at; /* address of the pointer in the state */
  gidx count;
  size_t size;
};
void train_state_arrays(struct train_state *s, idx k, idx p,
                        struct train_array arrays[TRAIN_STATE_ARRAYS]);
/* Size of an array: k p, k p, k. */
gidx train_numbers(idx k, idx p, int array);

/* train_atoms_draw() draws random unit atoms, for a training without given atoms.  train_start()
 * sets the decoder to the atoms, and the encoder to the same values. */
void train_atoms_draw(float *atoms, idx k, idx p, uint64_t seed);
void train_start(struct train_state *s, idx k, idx p, const float *atoms);

/* Returns q such that 2^q times the rows have a mean square of about 1, computed from the first
 * rows x[n][p]. */
int train_scale(const float *x, idx n, idx p);
/* x[count] <- 2^q x, rounded once. */
void train_rows_scale(float *x, gidx count, int q);

/* The atoms with the largest positive scores, at most `most`, and their codes by (N.24); atoms
 * ascend.  Returns how many there are. */
idx train_select(const float *scores, idx k, idx most, idx *atoms, float *codes);

/* Factors of the gradient in a step: of the error; and of the error that dead latents leave. */
float train_error_factor(idx n, idx p);
float train_aux_factor(const struct train_sizes *z, real error);

/* The chain of squares of a row. */
real train_square(const float *row, idx p);

/* Reference: step number t, counted from 1, on scaled rows x[n][p] with learning rate `rate`, by
 * the formulas with dense matrices.  ERR_MEMORY. */
int train_step_reference(const struct train_sizes *z, struct train_state *s, const float *x, idx n,
                         real rate, gidx t);

#endif
