/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device for a refit: products and sums over the rows of atoms, and their moves.
 *
 * Floor: device.
 *
 * Every operation has the bits of its reference in model/state.h, directions.h, assembly.h and
 * step.h.  Items are divided among threads.  Arrays are host memory; a row is named by its index i
 * in residual[i][p].  Nothing here is collective.  ERR_MEMORY; ERR_DEVICE without fused
 * multiply-add. */
#ifndef DEVICE_REFIT_H
#define DEVICE_REFIT_H

#include "device/device.h"

/* residual[n][p] <- each row minus its reconstruction from atoms[n][s], codes[n][s][d] and
 * frames[..][d][p]. */
struct residual_job {
  idx n, s, d, p;
  const float *rows;
  const idx *atoms;
  const real *frames, *codes;
  real *residual;
};
int device_residuals(struct device *dev, const struct residual_job *job);

/* The rows and vectors of one item. */
struct rows_item {
  const idx *rows; /* [n] */
  idx n;
  /* products: [count][p]; sums: weights [n][stride], of each row the first `count` */
  const real *vectors;
  idx count, stride;
  real *out;
};

/* out[i * stride + v] <- the lane product (base/sums.h) of residual r_i and vector v; with vectors
 * NULL and count 1, of r_i with itself. */
int device_row_products(struct device *dev, const real *residual, idx p,
                        const struct rows_item *items, gidx count);

/* out[v][p] <- a chain over the rows of the item of fma(r_i, weight_iv, .). */
int device_row_sums(struct device *dev, const real *residual, idx p, const struct rows_item *items,
                    gidx count);

/* The rows of one atom, whose frame moves from u_old to u_new (step_row() of model/step.h). */
struct move_item {
  const idx *rows; /* [n] */
  idx n;
  const real *u_old, *u_new; /* [d][p] */
  const real *t_old;         /* [n][d] codes */
  real *t_new;               /* [n][d]; written by device_moves_try, read by device_moves_keep */
  real *objective;           /* [n], written by device_moves_try */
};
struct moves_job {
  idx d, p;
  real rho;
  int nonnegative; /* as in struct row_move */
  real *residual;
  const struct move_item *items;
  gidx count;
};
/* Compute the codes and objectives that the moves would give; residuals stay as they are.
 * Codes and objectives are NaN if the Gram matrix of the new frame plus rho I is not positive
 * definite. */
int device_moves_try(struct device *dev, const struct moves_job *job);
/* Update the residuals for the moves, with the codes that device_moves_try() gave. */
int device_moves_keep(struct device *dev, const struct moves_job *job);

/* Add candidates[count][p], one after another, to the directions of an atom, as direction_keep() of
 * model/directions.h does. */
struct keep_item {
  const real *frame;     /* [d][p] */
  const real *candidate; /* [count][p] */
  idx count, max;        /* max: the most directions that are kept */
  real *kept;            /* [max][p] */
  idx *n_kept;           /* read and written */
};
int device_directions_keep(struct device *dev, idx d, idx p, const struct keep_item *items,
                           gidx count);

/* End the sweep of a fit for one frame: frame_relax() and frame_round() of model/relax.h.  Returns
 * the chain of frame_round().  Threads may do different frames at the same time. */
struct frame_end {
  idx d, p;
  real further;
  real *frame;  /* [d][p] */
  float *table; /* [d][p] */
};
real device_frame_end(const struct device *dev, const struct frame_end *end);

#endif
