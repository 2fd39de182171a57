/* SPDX-License-Identifier: BSD-3-Clause
 * What the launcher and the kernels of atoms' steps agree on (N.16).  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes forms.h alone.
 *
 * A cluster of blocks has an atom, and each of them its share of the rows, in shared memory as far
 * as they fit there.  What all blocks of the cluster must know is what a row gives to sums, which
 * goes through global memory, and sums over rows, column by column: these go from block to block
 * where every block has all its rows in sight (step_here.h), else through global memory too
 * (step_columns.h).  Directions, systems and frames are then computed by every block, so that
 * nothing has to come back. */
#ifndef STEP_TYPES_H
#define STEP_TYPES_H

#include "forms.h"

enum {
  STEP_THREADS = 384,
  STEP_CLUSTER = 16,       /* blocks of a cluster, at most */
  STEP_MAX_DIRECTIONS = 8, /* of the kernel */
  STEP_MAX_BORDER = 16,    /* d times directions */
  STEP_GROUPS = 16,        /* of sum blocks, whose chains are added side by side, at most */
  STEP_LEVELS = 20,        /* of the tree of a group of sum blocks, at most */
  STEP_LANES = 32,         /* of (N.12) */
  STEP_SCALARS = 10,
  STEP_SEGMENT_ROWS = 65536,
  STEP_SUMS_BYTES = 32 << 10, /* of rows that are added, in shared memory at a time, about */
  STEP_VECTOR_BYTES = 128 << 10,
  STEP_STRUCT_BYTES = 1 << 10 /* struct step, at most */
};

/* An atom of a launch. */
struct step_item {
  long long first; /* its entries begin here */
  int atom, n, at; /* n: its rows; at: where they begin among those of its class */
  int record;      /* of a launch that ranks share: where it begins in messages, in reals */
};

/* What became of an atom: as struct step_found of device/steps.h. */
struct step_found {
  double ridge, m;
  long long e;
  int accepted, status, retries, unused;
};

struct step_args {
  const struct step_item *items; /* [grid / blocks of a cluster] */
  const long long *entry;        /* of an atom by ascending row: row s + place */
  const int *slots;              /* [n][s] */
  const int *turns;              /* [k] the launch of each atom */
  double *frames;                /* [k][D][p] */
  double *codes;                 /* [n][s][D] */
  double *residual;              /* [n][p] */
  double *values;                /* [rows of the class][step_values(D, q)] */
  double *tries;                 /* [2][rows of the class][1 + D]: objective and codes */
  double *sums;                  /* [2][items][D][p] over rows, weighted */
  struct step_found *found;      /* [k] */
  long long row;                 /* the global number of the first row */
  long long class_rows;
  double rho;
  int turn;    /* this launch */
  int s, p, q; /* q: directions */
  int nonnegative;
  int named, held; /* own rows of a block, at most: in sight, and in shared memory */
  /* Sum block b is in group (b >> group_shift) - group_first, one of `groups`. */
  int group_shift, group_first, groups;
};

/* What ranks that share a launch's atoms tell each other.  Of each atom there is a record: what
 * became of it, and if its step was taken, its frame and its rows' codes. */
enum { STEP_FOUND = sizeof(struct step_found) / sizeof(double) };
HOST_DEVICE long long step_record(int d, int p, long long rows)
{
  return STEP_FOUND + (long long)d * p + rows * d;
}
struct record_args {
  const struct step_item *items; /* without those at skip .. skip + skipped - 1 */
  const long long *entry;
  double *messages;
  double *frames, *codes, *residual;
  struct step_found *found;
  int skip, skipped;
  int is_writer; /* records are written, else they are read */
  int d, p, s;
};
enum { RECORD_THREADS = 256, FOLLOW_ROWS = 32 }; /* of a block */

/* What atoms meet in their rows: sets of marks. */
struct color_conflicts_args {
  const int *atoms;       /* [grid] */
  const unsigned *marks;  /* [k] */
  const int *slots;       /* [n][s] */
  const long long *start; /* [k + 1] */
  const long long *entry;
  unsigned *sets; /* [grid][words] */
  int s, words;   /* of 32 marks */
};
enum { COLOR_CONFLICTS_THREADS = 256 };

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

/* How many sum blocks are a group, as a power of two, where the last one has this number. */
HOST_DEVICE int step_group_shift(long long first_block, long long last_block)
{
  int shift = 0;
  while ((last_block >> shift) - (first_block >> shift) >= STEP_GROUPS) shift++;
  return shift;
}

/* Of a row: codes, products with frame and directions, objective. */
HOST_DEVICE int step_values(int d, int q)
{
  return 2 * d + q + 1;
}

/* Reals from a vector of p to the next, and from a row: pairs are aligned. */
HOST_DEVICE int step_pitch(int p)
{
  return p + p % 2;
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

/* Their lanes and totals, in reals. */
HOST_DEVICE int step_sums_reals(int d, int k)
{
  return step_sums(d, k) * (STEP_LANES + 1);
}

/* May blocks of a cluster of `size` have all their rows in sight?  Where rows are added there must
 * be room for sums (step_here.h), and every sum block is a group. */
HOST_DEVICE int step_in_sight(int d, int q, int p, int groups, int group_shift, int size)
{
  int width = (d * p + size - 1) / size, reals = 2 * (groups * width + d * p);
  return group_shift == 0 && reals <= step_sum_rows(d, q) * step_sum_pitch(d, q);
}

/* Shared memory in reals: vectors, sums, products of vectors, border; then rows. */
HOST_DEVICE int step_vector_reals(int d, int q, int p)
{
  return (2 * d + q) * step_pitch(p);
}
HOST_DEVICE int step_fixed_reals(int d, int q, int p)
{
  int k = q * d;
  int sums = step_sums_reals(d, k) + step_sum_rows(d, q) * step_sum_pitch(d, q);
  int products = 4 * d * d + 2 * d + q + 1 + 2 * k + q * q, border = 2 * k * (k + 2) + 2 * k;
  int others = STEP_SCALARS + STEP_THREADS + STEP_GROUPS; /* totals; where groups begin */
  return step_vector_reals(d, q, p) + sums + products + border + others;
}
/* ... of a row's name: codes, tried codes, weight; entry, its own number and whether it is late. */
HOST_DEVICE int step_name_reals(int d)
{
  return 2 * d + 3;
}

/* Reals for rows beside the rest in `shared` bytes, of which struct step takes some; 0: this shape
 * is not for the kernel. */
HOST_DEVICE int step_room(int d, int q, int p, int shared)
{
  if (q > STEP_MAX_DIRECTIONS || q * d > STEP_MAX_BORDER) return 0;
  if (8 * step_vector_reals(d, q, p) > STEP_VECTOR_BYTES) return 0;
  int left = (shared - STEP_STRUCT_BYTES) / 8 - step_fixed_reals(d, q, p);
  return left < 0 ? 0 : left;
}
/* Rows that fit, where all of a block do; and where it has `named` of them. */
HOST_DEVICE int step_capacity(int d, int q, int p, int shared)
{
  return step_room(d, q, p, shared) / (step_pitch(p) + step_name_reals(d));
}
HOST_DEVICE int step_resident(int d, int q, int p, int shared, int named)
{
  int left = step_room(d, q, p, shared) - named * step_name_reals(d);
  return left < 0 ? 0 : left / step_pitch(p);
}
HOST_DEVICE int step_shared_bytes(int d, int q, int p, int named, int held)
{
  int rows = held * step_pitch(p) + named * step_name_reals(d);
  return 8 * (step_fixed_reals(d, q, p) + rows);
}

#endif
