/* SPDX-License-Identifier: BSD-3-Clause
 * The results of encoding: blocks of supports, which go to a sink, and the metrics of all rows.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_RESULTS_H
#define MODEL_RESULTS_H

#include "model/norms.h"

/* Supports of n consecutive rows in selection order.  Each row has s atoms; or with `start` up to
 * s: row i has entries start[i] .. start[i + 1] - 1 of the arrays. */
struct support_block {
  gidx first; /* global row */
  idx n, s, d;
  const idx *atoms;   /* [n][s] */
  const float *score; /* [n][s] */
  const float *codes; /* [n][s][d]; NULL when codes were not solved */
  const gidx *start;  /* [n + 1], from 0 on; NULL: each row has s atoms */
};

/* A receiver of blocks, which come in ascending order of rows.  The io floor fills this struct for
 * files. */
struct support_sink {
  void *self; /* borrowed */
  int (*write)(void *self, const struct support_block *block);
};

enum { DENSITY_BINS = 11 };

/* Quality of an encoding (doc/numerics.md section 7).  NaN if a metric is not computed or not
 * defined. */
struct metrics {
  gidx n;
  idx p, k;
  real explained_variance, fvu, mean_squared_error, mean_cosine, l0;
  real negative_codes, zero_codes; /* shares of all codes */
  gidx dead_atoms;
  real density_above_1pct, density_above_10pct; /* shares of the atoms */
  real max_decoder_cosine;
  /* The next two members describe the rows, not their codes; metric_rows[] does not list them.
   * mean_fraction: the part that the mean of the rows contributes to the sum of their squares; NaN
   * if not computed.  massive: the massive rows (norms.h); all 0 if not computed. */
  real mean_fraction;
  struct massive_rows massive;
  const gidx *density; /* [k] number of rows whose support has the atom; borrowed */
  /* Bin 0: number of atoms in no row.  Bins 1 .. 10: numbers of atoms by decade of density, up to
   * density 1. */
  gidx density_histogram[DENSITY_BINS];
};

/* An attribute of /metrics: its name, its formula, and where its value is in struct metrics. */
struct metric_row {
  const char *name, *formula;
  int is_integer; /* a gidx; 0: a real */
  int needs_codes;
  size_t offset; /* in struct metrics */
};
extern const struct metric_row metric_rows[];
extern const int metric_count;
extern const char density_formula[], density_histogram_formula[];

/* Set the metrics that follow from density[k] and n. */
void metrics_density(struct metrics *m, const gidx *density, gidx n, idx k);

/* Set the metrics that follow from sums over rows: of squared errors, of squares about the column
 * means, of cosines, and of atoms whose code is not 0. */
void metrics_fit(struct metrics *m, real rss, real tss, real cosines, gidx nonzero);

/* Set mean_fraction and massive from the norms of the rows; tss: the sum of squares about the
 * column means.  norms NULL: mean_fraction becomes NaN, and massive becomes 0. */
void metrics_rows(struct metrics *m, const struct norms *norms, real tss);

/* Counts of codes by sign; with frames each of the d codes of an atom counts. */
struct code_counts {
  gidx all, negative, zero;
};
/* Add codes[count] to the counts. */
void codes_count(struct code_counts *c, const float *codes, gidx count);
/* Set the shares of negative and of zero codes. */
void metrics_codes(struct metrics *m, const struct code_counts *c);

#endif
