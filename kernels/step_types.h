/* SPDX-License-Identifier: BSD-3-Clause
 * Arguments, layouts and sizes that the launcher and the kernels of atoms' steps share (N.16).  C11
 * that is also CUDA C++.
 *
 * Floor: kernels.  Includes forms.h alone.
 *
 * A cluster of blocks steps one atom.  Each block has a share of the atom's rows, its own rows.  It
 * *names* a row if the row's number and codes are in its shared memory.  It *holds* a named row if
 * the row's residual is there, too.  All own rows are *in sight* of a block if it names all of them
 * at once.
 *
 * A *sum block* is 4,096 consecutive rows (N.0).  The sum over its rows is a *chain*: terms are
 * added one after another.  Neighbouring sum blocks form a group.  The chains of different groups
 * are computed at the same time.
 *
 * All blocks of the cluster need two things.  The numbers that each row contributes to sums go
 * through global memory.  Sums over rows, column by column, go from block to block if every block
 * has all its rows in sight (step_here.h), otherwise through global memory, too (step_columns.h).
 * Every block then computes directions, systems and frames for itself, so nothing has to be sent
 * back. */
#ifndef STEP_TYPES_H
#define STEP_TYPES_H

#include "forms.h"

enum {
  STEP_THREADS = 384,
  STEP_CLUSTER = 16,       /* the most blocks of a cluster */
  STEP_MAX_DIRECTIONS = 8, /* directions of an atom */
  STEP_MAX_BORDER = 16,    /* d times directions */
  STEP_GROUPS = 16,        /* the most groups of sum blocks */
  STEP_LEVELS = 20,        /* the most levels of the tree (N.0) within a group */
  STEP_LANES = 32,         /* lanes of sums (N.12) */
  STEP_SCALARS = 10,
  STEP_SEGMENT_ROWS = 65536,
  STEP_SUMS_BYTES =
      32 << 10, /* about the bytes of rows in shared memory that are added at a time */
  STEP_VECTOR_BYTES = 128 << 10,
  STEP_STRUCT_BYTES = 1 << 10 /* upper bound of struct step */
};

/* An atom of a launch. */
struct step_item {
  long long first; /* index of its first entry */
  int atom, n, at; /* n: the number of its rows; at: its first row in `values` and `tries` */
  int record;      /* if ranks share the launch: offset of its record in messages, in reals */
};

/* The result of an atom: struct step_result of device/steps.h. */
struct step_found {
  double ridge, m;
  long long e;
  int accepted, status, retries, unused;
};

struct step_args {
  const struct step_item *items; /* [grid / blocks of a cluster] */
  const long long *entry;        /* by atom, then by row: row * s + index in the row's support */
  const int *slots;              /* [n][s] */
  const int *turns;              /* [k] number of the launch that steps each atom */
  double *frames;                /* [k][D][p] */
  double *codes;                 /* [n][s][D] */
  double *residual;              /* [n][p] */
  double *values;                /* [class_rows][step_values(D, q)] */
  double *tries;                 /* [2][class_rows][1 + D]: objective, then codes */
  double *sums;                  /* [2][items][D][p] weighted sums over rows */
  struct step_found *found;      /* [k] */
  long long row;                 /* the global number of the first row */
  long long class_rows;          /* the most rows of a class of atoms (model/classes.h) */
  double rho;
  int turn;    /* number of this launch */
  int s, p, q; /* q: directions */
  int nonnegative;
  int named, held; /* the most rows that a block names, and that it holds */
  /* Sum block b is in group (b >> group_shift) - group_first, one of `groups`. */
  int group_shift, group_first, groups;
};

/* A message between ranks that share the atoms of a launch.  It has a record for each atom: its
 * result and, if its step was accepted, its frame and the codes of its rows. */
enum { STEP_FOUND = sizeof(struct step_found) / sizeof(double) };
HOST_DEVICE long long step_record(int d, int p, long long rows)
{
  return STEP_FOUND + (long long)d * p + rows * d;
}
struct record_args {
  const struct step_item *items; /* items skip .. skip + skipped - 1 are left out */
  const long long *entry;
  double *messages;
  double *frames, *codes, *residual;
  struct step_found *found;
  int skip, skipped;
  int is_writer; /* 1: records are written; 0: they are read */
  int d, p, s;
};
enum { RECORD_THREADS = 256, FOLLOW_ROWS = 32 }; /* threads, and rows, of a block */

/* sets[i] <- the set of all atoms that share a row with atoms[i].  The mark of an atom is the
 * number of its bit in a set (device/steps.h). */
struct color_conflicts_args {
  const int *atoms;       /* [grid] */
  const unsigned *marks;  /* [k] */
  const int *slots;       /* [n][s] */
  const long long *start; /* [k + 1] */
  const long long *entry;
  unsigned *sets; /* [grid][words] */
  int s, words;   /* words: of a set, 32 marks each */
};
enum { COLOR_CONFLICTS_THREADS = 256 };

/* The start of a sweep: residuals, and codes widened to f64. */
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

/* log2 of the number of sum blocks in a group, for sum blocks first_block .. last_block. */
HOST_DEVICE int step_group_shift(long long first_block, long long last_block)
{
  int shift = 0;
  while ((last_block >> shift) - (first_block >> shift) >= STEP_GROUPS) shift++;
  return shift;
}

/* Numbers that a row contributes: codes, products with frame and directions, objective. */
HOST_DEVICE int step_values(int d, int q)
{
  return 2 * d + q + 1;
}

/* The distance in reals between vectors, or rows, of p columns.  It is even, so that pairs of reals
 * are aligned. */
HOST_DEVICE int step_pitch(int p)
{
  return p + p % 2;
}

/* Reals of a row that is added (N.9, N.12): columns of Y and u, codes, products with directions,
 * objective, 1. */
HOST_DEVICE int step_sum_pitch(int d, int q)
{
  return ((q * d + 1) * d + d + q + 2) | 1;
}
HOST_DEVICE int step_sum_rows(int d, int q)
{
  int rows = STEP_SUMS_BYTES / (8 * step_sum_pitch(d, q)) / STEP_LANES * STEP_LANES;
  return rows < STEP_LANES ? STEP_LANES : rows;
}
/* The number of sums over rows, k = q d: T and w of (N.9), sums of codes for C, h (N.16), and the
 * objective. */
HOST_DEVICE int step_sums(int d, int k)
{
  return k * (k + 1) / 2 + k + d * (d + 1) / 2 + k + 1;
}

/* Reals of the lanes and totals of these sums. */
HOST_DEVICE int step_sums_reals(int d, int k)
{
  return step_sums(d, k) * (STEP_LANES + 1);
}

/* May the blocks of a cluster of `size` have all their rows in sight?  The sums (step_here.h) must
 * fit in the memory for rows that are being added (step_sum_rows()), and every group must be a
 * single sum block. */
HOST_DEVICE int step_in_sight(int d, int q, int p, int groups, int group_shift, int size)
{
  int width = (d * p + size - 1) / size, reals = 2 * (groups * width + d * p);
  return group_shift == 0 && reals <= step_sum_rows(d, q) * step_sum_pitch(d, q);
}

/* Shared memory, in reals: vectors, sums, products of vectors, border; then rows. */
HOST_DEVICE int step_vector_reals(int d, int q, int p)
{
  return (2 * d + q) * step_pitch(p);
}
HOST_DEVICE int step_fixed_reals(int d, int q, int p)
{
  int k = q * d;
  int sums = step_sums_reals(d, k) + step_sum_rows(d, q) * step_sum_pitch(d, q);
  int products = 4 * d * d + 2 * d + q + 1 + 2 * k + q * q, border = 2 * k * (k + 2) + 2 * k;
  int others = STEP_SCALARS + STEP_THREADS + STEP_GROUPS; /* totals; first rows of groups */
  return step_vector_reals(d, q, p) + sums + products + border + others;
}
/* Reals of a named row: codes, new codes, weight, entry; and two ints, the row's number and `late`,
 * which is 1 if the launch before this one changes the row. */
HOST_DEVICE int step_name_reals(int d)
{
  return 2 * d + 3;
}

/* The reals that remain for rows in `shared` bytes of memory, after struct step and the fixed
 * arrays.  0: the kernel does not take this shape. */
HOST_DEVICE int step_room(int d, int q, int p, int shared)
{
  if (q > STEP_MAX_DIRECTIONS || q * d > STEP_MAX_BORDER) return 0;
  if (8 * step_vector_reals(d, q, p) > STEP_VECTOR_BYTES) return 0;
  int left = (shared - STEP_STRUCT_BYTES) / 8 - step_fixed_reals(d, q, p);
  return left < 0 ? 0 : left;
}
/* step_capacity: the number of rows that fit if a block holds all rows that it names.
 * step_resident: the number of rows that it can hold if it names `named` rows. */
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
