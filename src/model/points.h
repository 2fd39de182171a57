/* SPDX-License-Identifier: BSD-3-Clause
 * Points from which fit, fit --find features and train can resume, each with a line of figures.
 *
 * Floor: model.  A struct line_form lists the members of a line, for files and run.json. */
#ifndef MODEL_POINTS_H
#define MODEL_POINTS_H

#include "base/lines.h"
#include "model/find.h"
#include "model/train.h"

/* The figures of a sweep; line 0 is the start.  The explained variance of rows that do not exist is
 * NaN.  With a minibatch, `fitted` and `dead` are about the part of the rows that the next sweep
 * fits. */
struct fit_line {
  gidx sweep;
  real fitted, held; /* explained variances of the fitted and of the held-out rows */
  gidx dead, revived, accepted, rejected, escalated;
  real move;    /* the largest distance that an atom moved */
  real seconds; /* since the fit began */
};

/* What a fit needs to resume after a sweep, besides its rows and options.  gram, target,
 * weight and idle are NULL without a minibatch. */
struct fit_point {
  gidx sweep;
  const struct fit_line *lines; /* [sweep + 1] */
  const float *atoms;           /* [k][d][p] */
  const real *mean;             /* [p]; NULL: rows are not centred */
  real norm;                    /* of the median row, less the mean; 0: not known */
  uint64_t rows_hash;           /* hash of the fitted rows in memory (model/identity.h) */
  uint64_t held_out_hash;       /* hash of the held-out rows; 0: there are none */
  const real *gram, *target;    /* [k][k], [k][p] (N.20), on rank 0 alone */
  const real *weight;           /* [k] of (N.65), instead of gram and target */
  const idx *idle;              /* [k] number of sweeps since a row used the atom */
};

/* The figures after an update.  If no rows are held out, `held` and `held_out_l0` are those of some
 * fitted rows. */
struct find_line {
  gidx update;
  idx atoms;
  real l0;          /* active atoms per row, by the plan */
  gidx dead;        /* number of atoms that no row of the update had */
  gidx replaced;    /* near duplicates and useless atoms that were replaced since the last line */
  real held;        /* explained variance, with the present thresholds */
  real held_out_l0; /* mean codes of a held-out row */
  real seconds;     /* since the search began */
};

/* What a search needs to resume after an update, besides its rows and options. */
struct find_point {
  gidx update;
  gidx count;                        /* lines so far */
  const struct find_line *lines;     /* [count] */
  idx k;                             /* atoms so far */
  const float *atoms;                /* [K][p]; the first k are used, sorted by falling frequency */
  const float *means;                /* [K] means of their codes */
  const gidx *firing;                /* [K] rows of the last update that used each atom */
  gidx fired_rows;                   /* rows of that update */
  struct found_encoder encoder;      /* with the present thresholds */
  const real *mean;                  /* [p]; NULL: rows are not centred */
  const float *offset;               /* [p] subtracted from rows in addition to the mean */
  const real *described;             /* [p] mean and offset together */
  gidx replaced;                     /* since the last line */
  uint64_t rows_hash, held_out_hash; /* of the fitted rows; of the rows in `held` */
};

/* The figures after a step; line 0 is the start.  Figures of rows that do not exist are NaN. */
struct train_line {
  gidx step;
  /* explained variance of the batches since the last line, each computed before its step */
  real fitted;
  real held; /* explained variance of the held-out rows, by the encoder (N.24) */
  real l0;   /* mean codes of a held-out row */
  gidx dead;
  real seconds; /* since the training began */
};

/* What a training needs to resume after a step, besides its rows and options. */
struct train_point {
  gidx step;
  gidx count;                     /* lines so far */
  const struct train_line *lines; /* [count] */
  const struct train_state *state;
  const real *mean;      /* [p] subtracted from rows before they are scaled; NULL: none */
  const real *described; /* [p] mean plus learned offset, for the encoder; NULL: there are none */
  int scale;             /* rows are multiplied by 2^scale */
  uint64_t rows_hash,
      held_out_hash; /* of the fitted rows; of the held-out rows, 0: there are none */
  /* fingerprint of the matrix unit's order of additions (device_tensor_probe()); 0: scores are
   * f32 */
  uint64_t unit;
};

/* The columns of a line in run.json, and in a float64 array of a file. */
extern const struct line_form fit_line_form, find_line_form, train_line_form;

#endif
