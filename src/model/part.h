/* SPDX-License-Identifier: BSD-3-Clause
 * A part of an encoding: consecutive sum blocks (base/sums.h) of the rows, and their sums, from
 * which the metrics of the whole are computed (doc/numerics.md section 7).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_PART_H
#define MODEL_PART_H

#include "base/memory.h"
#include "model/results.h"

/* Sums over consecutive sum blocks, as nodes of the tree of (N.0) (base/block_tree.h).  With t = x
 * - k, where k is `shift` of struct encode_part, a node has for each column the sums of t and of
 * t^2, then the sums of errors and of cosines. */
struct part_sums {
  gidx first, count; /* sum blocks */
  idx p;
  int nodes;
  real *values; /* [nodes][2 p + 2]; borrowed */
};
/* Number of values of a node. */
idx part_width(idx p);

struct encode_part {
  gidx first, n, total; /* first row, number of rows, and rows of the whole */
  idx p;
  /* sum of the hash terms of its rows, with their row numbers in the whole (model/identity.h) */
  uint64_t rows_terms;
  uint64_t rows_sample; /* hash of a few rows of the whole (encode_sample()) */
  uint64_t rows_files;  /* hash of the sizes and times of the row files; 0: not known */
  uint64_t fingerprint;
  gidx nonzero;             /* support atoms whose code is not 0 */
  struct code_counts codes; /* of all codes */
  /* largest number of atoms for which max_decoder_cosine is computed; the part with row 0 computes
   * it */
  idx max_cosine;
  /* [p] the k of t = x - k; borrowed; NULL: codes were not solved, and there are no sums */
  const real *shift;
  struct part_sums sums;
  const struct norms *norms; /* of its rows; borrowed; NULL: not known */
};

/* *whole <- consecutive parts joined to one; its sums live in the arena. */
int part_join(const struct encode_part *const *parts, int count, struct arena *arena,
              struct encode_part *whole);

/* Set the metrics that need codes or norms, for the rows of the part.  ERR_MEMORY. */
int part_metrics(struct metrics *m, const struct encode_part *part);

#endif
