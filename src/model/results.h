/* SPDX-License-Identifier: BSD-3-Clause
 * The results of encoding: blocks of supports that go to a sink, and the metrics of the whole.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_RESULTS_H
#define MODEL_RESULTS_H

#include "model/norms.h"

/* Supports of n consecutive rows in selection order: s atoms each, or with `start` up to s, row i
 * having entries start[i] .. start[i + 1] - 1 of the arrays. */
struct support_block {
  gidx first; /* global row */
  idx n, s, d;
  const idx *atoms;   /* [n][s] */
  const float *score; /* [n][s] */
  const float *codes; /* [n][s][d]; NULL when codes were not solved */
  const gidx *start;  /* [n + 1], from 0 on; NULL: each row has s */
};

/* Where blocks go, in ascending order of rows.  The io floor fills this struct for files. */
struct support_sink {
  void *self; /* borrowed */
  int (*write)(void *self, const struct support_block *block);
};

enum { DENSITY_BINS = 11 };

/* Quality of an encoding (doc/numerics.md section 7).  NaN where not computed or not defined. */
struct metrics {
  gidx n;
  idx p, k;
  real explained_variance, fvu, mean_squared_error, mean_cosine, l0;
  real negative_codes, zero_codes; /* shares of all codes */
  gidx dead_atoms;
  real density_above_1pct, density_above_10pct; /* shares of the atoms */
  real max_decoder_cosine;
  /* Of the rows as they are described, beside the table of metrics: the share of their squares that
   * their mean has, and massive rows (norms.h).  NaN, and rows 0 of 0, where not computed. */
  real mean_fraction;
  struct massive_rows massive;
  const gidx *density; /* [k] rows in whose support the atom is; borrowed */
  gidx
      density_histogram[DENSITY_BINS]; /* atoms in no row, then by decade of density from 1e-9 up */
};

/* One attribute of /metrics: its name, its formula, and where its value is. */
struct metric_row {
  const char *name, *formula;
  int is_integer; /* a gidx, else a real */
  int needs_codes;
  size_t offset; /* in struct metrics */
};
extern const struct metric_row metric_rows[];
extern const int metric_count;
extern const char density_formula[], density_histogram_formula[];

/* Fill in the metrics that follow from density[k] and n. */
void metrics_density(struct metrics *m, const gidx *density, gidx n, idx k);

/* Fill in those that follow from sums over rows: of squared errors, of squares about the column
 * means, of cosines, and of atoms whose code is not 0. */
void metrics_fit(struct metrics *m, real rss, real tss, real cosines, gidx nonzero);

/* Fill in what the norms of the rows say; tss as above.  NULL: nothing. */
void metrics_rows(struct metrics *m, const struct norms *norms, real tss);

/* Codes, of frames their entries, by sign. */
struct code_counts {
  gidx all, negative, zero;
};
/* Add codes[count] to the counts. */
void codes_count(struct code_counts *c, const float *codes, gidx count);
/* Fill in the shares of codes that are negative, and zero. */
void metrics_codes(struct metrics *m, const struct code_counts *c);

#endif
