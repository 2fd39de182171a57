/* SPDX-License-Identifier: BSD-3-Clause
 * What the launcher and the kernels of atoms' steps agree on (N.16).  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes forms.h alone.
 *
 * A cluster of blocks has an atom, and each of them some of its rows, whole sum blocks of (N.0), in
 * shared memory if they fit there.  What all blocks of the cluster must know goes through global
 * memory: what a row gives to sums, and nodes of (N.0)'s tree.  Sums, systems and frames are then
 * computed by every block, so that nothing has to come back. */
#ifndef STEP_TYPES_H
#define STEP_TYPES_H

#include "forms.h"

enum {
  STEP_THREADS = 512,
  STEP_CLUSTER = 8,        /* blocks of a cluster, at most */
  STEP_MAX_DIRECTIONS = 8, /* of the kernel */
  STEP_MAX_BORDER = 16,    /* d times directions */
  STEP_LEVELS = 42,        /* step_levels() of 2^31 rows */
  STEP_LANES = 32,         /* of (N.12) */
  STEP_SEGMENT_ROWS = 65536,
  STEP_SUMS_BYTES = 32 << 10, /* of rows that are added, in shared memory at a time, about */
  STEP_VECTOR_BYTES = 128 << 10
};

/* An atom of a launch.  Block r of its cluster has the rows at positions bound[r] .. bound[r + 1] -
 * 1 of its list. */
struct step_item {
  long long first; /* its entries begin here */
  int atom, at;    /* at: where its rows begin among those of its class */
  int bound[STEP_CLUSTER + 1];
};

/* What became of an atom: as struct step_found of device/steps.h. */
struct step_found {
  double ridge, m;
  long long e;
  int accepted, status, retries, unused;
};

/* A run of sum blocks, as the stack of step_nodes.h has them, the first and the last of them. */
struct step_run {
  int any, first, last, unused;
  unsigned open, levels;
  int more[2];
};

struct step_args {
  const struct step_item *items; /* [grid / blocks of a cluster] */
  const long long *entry;        /* of an atom by ascending row: row s + place */
  double *frames;                /* [k][D][p] */
  double *codes;                 /* [n][s][D] */
  double *residual;              /* [n][p] */
  double *values;                /* [rows of the class][step_values(D, q)] */
  double *tries;                 /* [2][rows of the class][1 + D]: objective and codes */
  double *nodes;                 /* [2][items][blocks][levels + 1][D][p] */
  struct step_run *runs;         /* [2][items][blocks] */
  struct step_found *found;      /* [k] */
  long long row;                 /* the global number of the first row */
  long long class_rows;
  double rho;
  int s, p, q; /* q: directions */
  int nonnegative;
  int capacity; /* rows in shared memory */
  int levels;   /* step_levels() */
};

/* The start of a sweep: residuals, and codes as reals. */
struct residual_args {
  const float *x;       /* [n][p] */
  const int *slots;     /* [n][s] */
  const float *rounded; /* [n][s][d] */
  const double *frames; /* [k][d][p] */
  double *codes;        /* [n][s][d] */
  double *residual;     /* [n][p] */
  int n, s, d, p;
};
enum { RESIDUAL_THREADS = 128, RESIDUAL_LIST = 64 };

/* Nodes that a run of the sum blocks of so many rows leaves, at most: two a level. */
HOST_DEVICE int step_levels(long long rows)
{
  int levels = 2;
  for (long long blocks = (rows + 4095) / 4096; blocks > 1; blocks = (blocks + 1) / 2) levels += 2;
  return levels;
}

/* Of a row: codes, products with frame and directions, objective. */
HOST_DEVICE int step_values(int d, int q)
{
  return 2 * d + q + 1;
}

/* Reals from a vector of p to the next, and from a row: lanes on neighbours never meet in a bank. */
HOST_DEVICE int step_pitch(int p)
{
  return p | 1;
}

/* A row that is added (N.9, N.12): columns of Y and u, codes, products with directions, objective,
 * 1. */
HOST_DEVICE int step_sum_pitch(int d, int q)
{
  return ((q * d + 1) * d + d + q + 2) | 1;
}
HOST_DEVICE int step_sum_rows(int d, int q)
{
  int rows = STEP_SUMS_BYTES / (8 * step_sum_pitch(d, q)) / STEP_LANES * STEP_LANES;
  return rows < STEP_LANES ? STEP_LANES : rows;
}
/* Sums over rows: T, w, those of C, of h, and the objective. */
HOST_DEVICE int step_sums(int d, int k)
{
  return k * (k + 1) / 2 + k + d * (d + 1) / 2 + k + 1;
}

/* Shared memory in reals: vectors, sums, products of vectors, border; then rows. */
HOST_DEVICE int step_vector_reals(int d, int q, int p)
{
  return (2 * d + q) * step_pitch(p);
}
HOST_DEVICE int step_fixed_reals(int d, int q, int p)
{
  int k = q * d;
  int sums = step_sums(d, k) * (STEP_LANES + 1) + step_sum_rows(d, q) * step_sum_pitch(d, q);
  int products = 3 * d * d + 2 * d + k + q * q, border = 2 * k * (k + 2) + 2 * k;
  return step_vector_reals(d, q, p) + sums + products + border + 16;
}
/* ... of a row: the row, codes, tried codes, weights; entry, its own number, sum block, where the
 * block ends. */
HOST_DEVICE int step_row_reals(int d, int p)
{
  return step_pitch(p) + 3 * d + 3;
}

/* Rows that fit beside the rest in `shared` bytes; 0: this shape is not for the kernel. */
HOST_DEVICE int step_capacity(int d, int q, int p, int shared)
{
  if (q > STEP_MAX_DIRECTIONS || q * d > STEP_MAX_BORDER) return 0;
  if (8 * step_vector_reals(d, q, p) > STEP_VECTOR_BYTES) return 0;
  int left = shared / 8 - step_fixed_reals(d, q, p);
  return left < 0 ? 0 : left / step_row_reals(d, p);
}
HOST_DEVICE int step_shared_bytes(int d, int q, int p, int capacity)
{
  return 8 * (step_fixed_reals(d, q, p) + capacity * step_row_reals(d, p));
}

#endif
