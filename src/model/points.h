/* SPDX-License-Identifier: BSD-3-Clause
 * Points that fit, fit --find features and train reach, and go on from, each with a line of figures
 * for what was reached until then.
 *
 * Floor: model.  A job hands them over, and files and run.json have them: a form says which members
 * of a line stand where. */
#ifndef MODEL_POINTS_H
#define MODEL_POINTS_H

#include "base/lines.h"
#include "model/find.h"
#include "model/train.h"

/* One sweep; line 0 is the start.  Explained variances are NaN where there are no such rows.  With
 * a minibatch `fitted`, `dead` are of the part that the next sweep fits. */
struct fit_line {
  gidx sweep;
  real fitted, held; /* explained variance */
  gidx dead, revived, accepted, rejected, escalated;
  real move;    /* the largest distance that an atom moved */
  real seconds; /* since the fit began */
};

/* All that a fit needs to go on after a sweep, beside its rows and options.  gram, target and idle
 * are NULL without a minibatch. */
struct fit_point {
  gidx sweep;
  const struct fit_line *lines; /* [sweep + 1] */
  const float *atoms;           /* [k][d][p] */
  const real *mean;             /* [p]; NULL: rows are not centred */
  real norm;                    /* of the median row, less it; 0: it is not known */
  uint64_t rows_hash;           /* of the fitted rows in memory (model/identity.h) */
  uint64_t held_out_hash;       /* of the held-out rows; 0: there are none */
  const real *gram, *target;    /* [k][k], [k][p] (N.20), on rank 0 alone */
  const idx *idle;              /* [k] parts since a row used the atom */
};

/* What was reached after so many updates; NaN where there are no such rows. */
struct find_line {
  gidx update;
  idx atoms;
  real l0;          /* active atoms a row, as the plan says */
  gidx dead;        /* atoms that no row of the update had */
  gidx replaced;    /* twins and dead atoms, since the line before */
  real held;        /* explained variance of the held-out rows, by the thresholds at hand */
  real held_out_l0; /* their codes a row */
  real seconds;     /* since the work began */
};

/* All that the work needs to go on after an update, beside its rows and options. */
struct find_point {
  gidx update;
  gidx count;                    /* lines so far */
  const struct find_line *lines; /* [count] */
  idx k;                         /* atoms so far */
  const float *atoms;            /* [K][p] the first k; by falling frequency */
  const float *means;            /* [K] of their codes */
  const gidx *firing;            /* [K] rows of the last update that had each */
  gidx fired_rows;               /* of how many */
  struct found_encoder encoder;  /* by which rows are described now */
  const real *mean;              /* [p]; NULL: rows are not centred */
  const float *offset;           /* [p] what rows lose beside it */
  const real *described;         /* [p] both */
  gidx replaced;                 /* since the last line */
  uint64_t rows_hash,
      held_out_hash; /* of the fitted rows and the held-out ones; 0: there are none */
};

/* What was reached after a step; line 0 is the start.  NaN where there are no such rows. */
struct train_line {
  gidx step;
  real fitted; /* what the batches since the last line explain, each before its step */
  real held;   /* explained variance of the held-out rows, by the encoder (N.24) */
  real l0;     /* codes that it gives one of them, on average */
  gidx dead;
  real seconds; /* since the training began */
};

/* All that a training needs to go on after a step, beside its rows and options. */
struct train_point {
  gidx step;
  gidx count;                     /* lines so far */
  const struct train_line *lines; /* [count] */
  const struct train_state *state;
  const real *mean;      /* [p] that steps subtract before they scale; NULL: none */
  const real *described; /* [p] that the encoder takes: with what was learned beside; NULL: none */
  int scale;             /* rows are multiplied by 2^scale */
  uint64_t rows_hash,
      held_out_hash; /* of the fitted rows and the held-out ones; 0: there are none */
  uint64_t unit;     /* device_tensor_probe(); 0: scores are f32 */
};

/* In run.json, and as a row of float64 in a file. */
extern const struct line_form fit_line_form, find_line_form, train_line_form;

#endif
