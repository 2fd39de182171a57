/* SPDX-License-Identifier: BSD-3-Clause
 * What launchers and kernels of a training agree on whose codes are chosen over whole batches
 * (N.46), with nested widths (N.47) or a bias before (N.48).  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes nothing. */
#ifndef BATCH_TYPES_H
#define BATCH_TYPES_H

enum {
  BATCH_THREADS = 256, /* a warp a row */
  BATCH_BLOCKS = 1 << 10,
  BATCH_MOST_BINS = 1 << 11, /* BATCH_BINS of model/batch_cut.h */
  BATCH_SCAN_THREADS = 1024,
  NESTED_MOST_BLOCKS = 16, /* NESTED_MOST of model/nested.h */
  SUMS_ROWS = 1024,        /* TRIAD_CHUNK of model/triad.h */
  SUMS_AHEAD = 32,         /* rows that a thread of batch_sums loads at a time */
  SUMS_WARPS = 8,          /* chunks of rows at a time */
  RAISE_ATOMS = 2048,      /* of a row at a time */
  RAISE_BLOCKS = 1 << 14
};

/* How many scores have each next digit: bits shift .. known - 1 of those keys whose bits from
 * `known` on are `prefix`. */
struct batch_count_args {
  const float *scores; /* [n][stride], 0 beyond the atoms, stride a multiple of 128 */
  long long n;
  int stride;
  int shift, known, prefix;
  unsigned long long *counts; /* [BATCH_MOST_BINS], 0 at first */
};

/* The entries of rows: scores above the cut, and the first `ties` that equal it. */
struct batch_cut_args {
  const float *scores; /* as above */
  long long n;
  int stride, key;
  long long ties;
  int *above, *equal; /* [n] of a row; `equal` becomes how many of them are entries */
  long long *start;   /* [n + 1] */
  long long room;     /* for more entries none is written */
  int *index;
  float *value;
};

/* struct train_raise of device/train.h: scores become what each atom would have without its own
 * code. */
struct batch_raise_args {
  float *scores;     /* [n][stride] */
  const float *rows; /* [n][p] what is left of rows */
  long long n;
  int k, stride, p;
  int relative;
  double floor;
  double *squares;        /* [n] of rows, where relative */
  const long long *start; /* [n + 1] entries of the rows; 0: they have none */
  const int *index;
  const float *code;
};

/* struct train_blocks_job of device/train.h. */
struct nested_starts_args {
  const long long *entries; /* [n + 1] where rows begin */
  const int *index;
  long long n;
  int blocks;
  int end[NESTED_MOST_BLOCKS];
  long long *start; /* [n blocks + 1] */
};

/* errors[n][blocks][p]; x: of nested_errors alone. */
struct nested_errors_args {
  float *errors;
  const float *x; /* [n][p] */
  long long n;
  int blocks, p;
};

/* x[n][p] <- x less the offset[p]. */
struct train_offset_args {
  float *x;
  const float *offset;
  long long n;
  int p;
};

/* to[p] <- sums over rows (N.41). */
struct batch_sums_args {
  const float *rows; /* [n] of p numbers at a stride */
  long long n, stride;
  int p;
  float *to;
};

#endif
