/* SPDX-License-Identifier: BSD-3-Clause
 * What encoding gives: blocks of routed supports for a sink, and the metrics of the whole.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_RESULTS_H
#define MODEL_RESULTS_H

#include "base/types.h"

/* Supports of consecutive rows: s atoms a row, in selection order. */
struct support_block {
  gidx first; /* global row */
  idx n, s, d;
  const idx *atoms;   /* [n][s] */
  const float *score; /* [n][s] */
  const float *codes; /* [n][s][d]; NULL when codes were not solved */
};

/* Takes blocks in ascending order of rows.  The io floor fills it for files. */
struct support_sink {
  void *self; /* borrowed */
  int (*write)(void *self, const struct support_block *block);
};

enum { DENSITY_BINS = 11 };

/* Quality of a description (doc/numerics.md section 7).  NaN: not computed or not defined. */
struct metrics {
  gidx n;
  idx p, k;
  real explained_variance, fvu, mean_squared_error, mean_cosine, l0;
  gidx dead_atoms;
  real density_above_1pct, density_above_10pct; /* shares of the atoms */
  real max_decoder_cosine;
  const gidx *density;                  /* [k] rows in whose support the atom is; borrowed */
  gidx density_histogram[DENSITY_BINS]; /* atoms that never fire, then by decade from 1e-9 up */
};

/* One attribute of /metrics: name, formula, where its value is. */
struct metric_row {
  const char *name, *formula;
  int is_integer; /* gidx, else real */
  int needs_codes;
  size_t offset; /* in struct metrics */
};
extern const struct metric_row metric_rows[];
extern const int metric_count;
extern const char density_formula[], density_histogram_formula[];

/* Fill the metrics that come from density[k] and n. */
void metrics_density(struct metrics *m, const gidx *density, gidx n, idx k);

/* Fill those that come from sums over rows; tss is the total sum of squares about the column
 * means. */
void metrics_fit(struct metrics *m, real rss, real tss, real cosines, gidx nonzero);

/* The NaN that files hold. */
real canonical_nan(void);

#endif
