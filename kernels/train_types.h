/* SPDX-License-Identifier: BSD-3-Clause
 * What launchers and kernels of a step of training agree on (N.43), beside triad_types.h.  C11 that
 * is also CUDA C++.
 *
 * Floor: kernels.  Includes nothing. */
#ifndef TRAIN_TYPES_H
#define TRAIN_TYPES_H

enum {
  TRAIN_THREADS = 256, /* of kernels that walk along arrays */
  TRAIN_BLOCKS = 1 << 12,
  TRAIN_VECTORS = 32,     /* a block of the kernels that walk along vectors: a lane each */
  TRAIN_SELECT_WARPS = 8, /* rows a block of train_select */
  TRAIN_CANDIDATES = 512  /* of a row, at most, in shared memory */
};

/* The `most` largest positive scores of each row, its own at [row][most], by ascending atoms. */
struct train_select_args {
  const float *values; /* [n][stride], none of them negative */
  const float *maxima; /* [n][groups] of each group of columns; 0: not known */
  long long n;
  int stride, groups, group, most;
  int *count;   /* [n] */
  int *index;   /* [n][most] */
  float *value; /* [n][most] */
};

/* Those lists one after another: row i's begin at start[i]; wide[i] <- base + start[i]. */
struct train_pack_args {
  const int *start, *index; /* [n + 1], [n][most] */
  const float *value;
  long long n, base;
  int most;
  long long *wide;   /* [n + 1] */
  int *packed_index; /* from the first row's on */
  float *packed_value;
};

/* Scores of atoms that are not dead become 0. */
struct train_mask_args {
  float *values;                /* [n][stride] */
  const unsigned char *is_dead; /* [k] */
  long long n;
  int k, stride;
  int are_signed; /* scores of the dead may be negative, or none: these become 0, too */
};

/* wide[count] <- base + narrow[count]. */
struct train_widen_args {
  const int *narrow;
  long long *wide;
  long long base, count;
};

/* struct train_errors_job of device/train.h. */
struct train_errors_args {
  float *error, *left; /* [n] of p numbers, the former at a stride */
  const float *x;
  double *squares;
  long long n, stride;
  int p;
};

struct train_scale_args {
  float *values;
  long long count;
  float factor;
};

/* struct train_transpose_job; entries of a row in chunk row / chunk_rows. */
struct train_transpose_args {
  const long long *start; /* [n + 1] of rows */
  const int *index;
  const float *value, *slope;
  long long first;
  int n, atoms;
  int chunk_rows, chunks;
  int *counts;      /* [chunks][atoms] as struct normal_args has them */
  const int *begin; /* [atoms + 1] where an atom's entries begin */
  int *row;
  float *turned_value, *turned_slope;
};

/* struct train_idle_job. */
struct train_idle_args {
  const long long *start; /* [n + 1]; 0: there are no entries */
  const int *index;
  int n, k;
  long long *idle, dead_rows;
  unsigned char *is_dead, *used;
  int *any;
};

/* struct device_train_tangent() and device_train_normalize(): the latter changes `vectors`. */
struct train_atoms_args {
  const float *atoms; /* [count][p] */
  float *vectors;     /* [count][p] */
  long long count;
  int p;
};

#endif
