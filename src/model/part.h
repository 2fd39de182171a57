/* SPDX-License-Identifier: BSD-3-Clause
 * A part of an encoding: consecutive sum blocks of the rows, and what they leave for the metrics of
 * the whole (doc/numerics.md section 7).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_PART_H
#define MODEL_PART_H

#include "base/memory.h"
#include "model/results.h"

/* Sums over rows, as the nodes of (N.0) that consecutive sum blocks leave (base/block_tree.h).
 * With t = x - k, a node has the sums of t and of t^2 for each column, of errors and of cosines. */
struct part_sums {
  gidx first, count; /* sum blocks */
  idx p;
  int nodes;
  real *values; /* [nodes][2 p + 2]; borrowed */
};
/* Values of a node. */
idx part_width(idx p);

struct encode_part {
  gidx first, n, total; /* its first row and how many, and rows of the whole */
  idx p;
  uint64_t rows_terms;  /* of its rows, by their places in the whole (model/identity.h) */
  uint64_t rows_sample; /* a hash of rows of the whole, by rows_sample() */
  uint64_t rows_files;  /* a mark of their files' sizes and times; 0: not known */
  uint64_t fingerprint;
  gidx nonzero;             /* support atoms whose code is not 0 */
  struct code_counts codes; /* of all codes */
  idx max_cosine;           /* the option: the part that has row 0 computes the cosine */
  const real *shift;        /* [p] k; borrowed; NULL: no codes were solved, and there are no sums */
  struct part_sums sums;
  const struct norms *norms; /* of its rows; borrowed; NULL: not known */
};

/* *whole <- the parts, which follow each other, as one; its sums live in the arena. */
int part_join(const struct encode_part *const *parts, int count, struct arena *arena,
              struct encode_part *whole);

/* Fill in the metrics that need codes; those of a part are of its rows.  ERR_MEMORY. */
int part_metrics(struct metrics *m, const struct encode_part *part);

#endif
