/* SPDX-License-Identifier: BSD-3-Clause
 * Arguments and sizes that launchers and kernels of a training step share (N.43), except those of
 * triad_types.h.  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes nothing. */
#ifndef TRAIN_TYPES_H
#define TRAIN_TYPES_H

enum {
  TRAIN_THREADS = 256, /* of a block where a thread takes single numbers, or a warp takes rows */
  TRAIN_BLOCKS = 1 << 12,
  TRAIN_VECTORS = 32,     /* vectors of a block, one per lane, in kernels that take vectors */
  TRAIN_SELECT_WARPS = 8, /* rows of a block of train_select */
  TRAIN_CANDIDATES = 512  /* the most candidates of a row in shared memory */
};

/* Select the `most` largest positive scores of each row (fewer if there are fewer).  The row's list
 * index[row][..], value[row][..] has them in ascending order of atoms. */
struct train_select_args {
  const float *values; /* [n][stride] none is negative */
  const float *maxima; /* [n][groups] the maximum of each group of columns; 0: not known */
  long long n;
  int stride, groups, group, most;
  int *count;   /* [n] */
  int *index;   /* [n][most] */
  float *value; /* [n][most] */
};

/* Copy the lists of train_select without gaps: row i begins at start[i].  wide[i] <- base +
 * start[i]. */
struct train_pack_args {
  const int *start, *index; /* [n + 1], [n][most] */
  const float *value;
  long long n, base;
  int most;
  long long *wide;   /* [n + 1] */
  int *packed_index; /* [start[n]] */
  float *packed_value;
};

/* Zero the scores of atoms that are not dead. */
struct train_mask_args {
  float *values;                /* [n][stride] */
  const unsigned char *is_dead; /* [k] */
  long long n;
  int k, stride;
  int are_signed; /* 1: scores of the dead may be negative or NaN; these become 0 too */
};

/* wide[i] <- base + narrow[i] for i < count. */
struct train_widen_args {
  const int *narrow;
  long long *wide;
  long long base, count;
};

/* As struct train_errors_job of device/train.h. */
struct train_errors_args {
  float *error, *left; /* [n] rows of p numbers; those of error are `stride` apart */
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

/* As struct train_transpose_job of device/train.h.  Rows are divided into chunks of chunk_rows
 * rows. */
struct train_transpose_args {
  const long long *start; /* [n + 1] first entry of each row */
  const int *index;
  const float *value, *slope;
  long long first;
  int n, atoms;
  int chunk_rows, chunks;
  int *counts;      /* [chunks][atoms], as in struct normal_args */
  const int *begin; /* [atoms + 1] first entry of each atom */
  int *row;
  float *turned_value, *turned_slope;
};

/* As struct train_idle_job of device/train.h. */
struct train_idle_args {
  const long long *start; /* [n + 1]; 0: no entries */
  const int *index;
  int n, k;
  long long *idle, dead_rows;
  unsigned char *is_dead, *used;
  int *any;
};

/* For device_train_tangent(), and for device_train_normalize(), which changes only `vectors`. */
struct train_atoms_args {
  const float *atoms; /* [count][p] */
  float *vectors;     /* [count][p] */
  long long count;
  int p;
};

#endif
