/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device for a refit: products and sums over the rows of atoms, and their moves.
 *
 * Floor: device.
 *
 * Every operation has the bits of its reference in model/state.h, directions.h, assembly.h and
 * step.h.  Items are shared out over the threads.  Arrays are the host's, and rows are named by
 * their place in residual[..][p].  Nothing here is collective.  ERR_MEMORY; ERR_DEVICE without
 * fused multiply-add. */
#ifndef DEVICE_REFIT_H
#define DEVICE_REFIT_H

#include "device/device.h"

/* residual[n][p] <- rows less their reconstructions, by frames[..][d][p] of atoms[n][s] with codes
 * [n][s][d]. */
struct residual_job {
  idx n, s, d, p;
  const float *rows;
  const idx *atoms;
  const real *frames, *codes;
  real *residual;
};
int device_residuals(struct device *dev, const struct residual_job *job);

/* Rows and vectors of one item. */
struct rows_item {
  const idx *rows; /* [n] */
  idx n;
  const real *vectors; /* products: [count][p]; sums: weights [n][stride], of which count */
  idx count, stride;
  real *out;
};

/* out[i * stride + v] <- the lane product (base/sums.h) of r_i and vector_v; with no vectors (NULL)
 * and count 1: of r_i with itself. */
int device_row_products(struct device *dev, const real *residual, idx p,
                        const struct rows_item *items, gidx count);

/* out[v][p] <- chains over the item's rows of fma(r_i, weight_iv, .). */
int device_row_sums(struct device *dev, const real *residual, idx p, const struct rows_item *items,
                    gidx count);

/* The rows of one atom whose frame moves from u_old to u_new (model/step.h, step_row). */
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
/* Compute codes and objectives as they would be after the moves; residuals stay.  A frame that is
 * not positive definite gives NaN. */
int device_moves_try(struct device *dev, const struct moves_job *job);
/* Change the residuals to those after the moves, with the codes of device_moves_try. */
int device_moves_keep(struct device *dev, const struct moves_job *job);

/* Add candidates[count][p], one after another, to the directions of an atom, as direction_keep of
 * model/directions.h does. */
struct keep_item {
  const real *frame;     /* [d][p] */
  const real *candidate; /* [count][p] */
  idx count, max;        /* max: directions wanted */
  real *kept;            /* [max][p] */
  idx *n_kept;           /* read and written */
};
int device_directions_keep(struct device *dev, idx d, idx p, const struct keep_item *items,
                           gidx count);

/* A frame at the end of a sweep of a fit: frame_relax() and frame_round() of model/relax.h.
 * Returns the latter's chain.  Threads may have other frames at the same time. */
struct frame_end {
  idx d, p;
  real further;
  real *frame;  /* [d][p] */
  float *table; /* [d][p] */
};
real device_frame_end(const struct device *dev, const struct frame_end *end);

#endif
