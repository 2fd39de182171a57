/* SPDX-License-Identifier: BSD-3-Clause
 * Arguments and sizes that launchers and kernels of training share, for codes that are chosen over
 * whole batches (N.46), nested widths (N.47) and the bias before the encoder (N.48).  C11 that is
 * also CUDA C++.
 *
 * Floor: kernels.  Includes nothing. */
#ifndef BATCH_TYPES_H
#define BATCH_TYPES_H

enum {
  BATCH_THREADS = 256, /* threads of a block in most of these kernels */
  BATCH_BLOCKS = 1 << 10,
  BATCH_MOST_BINS = 1 << 11, /* BATCH_BINS of model/batch_cut.h */
  BATCH_SCAN_THREADS = 1024,
  NESTED_MOST_BLOCKS = 16, /* NESTED_MOST of model/nested.h */
  SUMS_ROWS = 1024,        /* TRIAD_CHUNK of model/triad.h */
  SUMS_AHEAD = 32,         /* rows that a thread of batch_sums loads at a time */
  SUMS_WARPS = 8,          /* chunks of rows at a time */
  RAISE_ATOMS = 2048,      /* atoms of a row at a time */
  RAISE_BLOCKS = 1 << 14
};

/* Count scores by the next digit of their keys: bits shift .. known - 1.  A positive key is counted
 * if key >> known equals `prefix`. */
struct batch_count_args {
  const float *scores; /* [n][stride], 0 past the atoms; stride is a multiple of 128 */
  long long n;
  int stride;
  int shift, known, prefix;
  unsigned long long *counts; /* [BATCH_MOST_BINS], zeroed first */
};

/* The entries of rows are the scores whose key is above `key`, and the first `ties` scores of the
 * batch whose key equals it. */
struct batch_cut_args {
  const float *scores; /* as in batch_count_args */
  long long n;
  int stride, key;
  long long ties;
  /* [n] The number of scores of each row whose key is above `key`, and the number whose key equals
   * it.  In the end `equal` is the number of ties that are entries. */
  int *above, *equal;
  long long *start; /* [n + 1] */
  long long room;   /* if there are more entries, none is written */
  int *index;
  float *value;
};

/* struct train_raise of device/train.h.  Each score becomes the score that its atom would have if
 * the atom's own code were 0. */
struct batch_raise_args {
  float *scores;     /* [n][stride] */
  const float *rows; /* [n][p] the residual rows */
  long long n;
  int k, stride, p;
  int relative;
  double floor;
  double *squares;        /* [n] squared norms of rows, if relative */
  const long long *start; /* [n + 1] entries of the rows; 0: no entries */
  const int *index;
  const float *code;
};

/* struct train_blocks_job of device/train.h. */
struct nested_starts_args {
  const long long *entries; /* [n + 1] first entry of each row */
  const int *index;
  long long n;
  int blocks;
  int end[NESTED_MOST_BLOCKS];
  long long *start; /* [n blocks + 1] */
};

/* errors[n][blocks][p]; only nested_errors uses x. */
struct nested_errors_args {
  float *errors;
  const float *x; /* [n][p] */
  long long n;
  int blocks, p;
};

/* x[n][p] <- x - offset[p] in each row. */
struct train_offset_args {
  float *x;
  const float *offset;
  long long n;
  int p;
};

/* to[p] <- sums over rows (N.41). */
struct batch_sums_args {
  const float *rows; /* [n] rows of p numbers, `stride` apart */
  long long n, stride;
  int p;
  float *to;
};

#endif
