/* SPDX-License-Identifier: BSD-3-Clause
 * What launchers and kernels of the arrow systems agree on (N.7 to N.13).  C11 that is also CUDA
 * C++.
 *
 * Floor: kernels.  Includes forms.h alone.
 *
 * A system of d, k and n stands in one piece of memory: H [n][d d], B [n][d k], g [n][d], C [k][k],
 * g_b [k]; its steps in another: rows [n][d], border [k].  In shared memory a row is
 *     Y [k][d], u [d], L packed by columns, d pivots,
 * the latter two in place of H, and an odd number of reals from the next row, so that rows at a
 * distance of one never meet in a bank.  u is column k of an extended Y, and the sums T and w of
 * (N.9) are one triangle of k + 1 columns, cut into square tiles, a tile in a thread's registers.
 *
 * A system whose rows fit in shared memory is solved by arrow.cu, which reads it once.  Others take
 * three kernels: arrow_sum.cu adds lanes of a segment (N.12) a block, arrow_border.cu adds these
 * parts and solves the border, arrow_step.cu reads the rows again. */
#ifndef ARROW_TYPES_H
#define ARROW_TYPES_H

#include "forms.h"

enum {
  ARROW_MAX_FRAME = 8,         /* the largest d of the kernels */
  ARROW_MAX_COLUMNS = 40,      /* and the largest k */
  ARROW_LANES = 32,            /* of (N.12) */
  ARROW_SEGMENT_ROWS = 65536,  /* of (N.12) */
  ARROW_BLOCK = 128,           /* threads of arrow.cu where a warp has a system, of arrow_step.cu */
  ARROW_STAGE_BYTES = 48 << 10 /* of rows in shared memory at a time, about */
};

/* A system of a launch. */
struct arrow_atom {
  long long in, out; /* where it begins in the numbers read and written */
  double ridge_t, ridge_b;
  int n, number;  /* rows; its place in `found` */
  int first_unit; /* of arrow_sum.cu */
  int unused;
};

/* Rows of one system: a segment, or what a block of arrow_step.cu takes. */
struct arrow_unit {
  int atom, first; /* place in `atoms`, its first row */
};

/* What became of a system: the determinant as a pair (N.13); not_ok: a pivot was bad or a step not
 * finite.  Zeroed before. */
struct arrow_found {
  double m;
  long long e;
  long long not_ok;
};

struct arrow_args {
  const double *in;
  double *out;
  const struct arrow_atom *atoms; /* [count] */
  const struct arrow_unit *units;
  double *parts; /* of arrow_sum.cu: [units][arrow_parts()][arrow_part_reals()] */
  struct arrow_found *found;
  int count; /* systems */
  int rows;  /* arrow.cu: of the longest */
};

HOST_DEVICE int arrow_row_reals(int d, int k)
{
  int h = d * d, factor = d * (d + 3) / 2;
  return (d * k + d + (h > factor ? h : factor)) | 1;
}

/* Reals from a column of the Schur complement to the next; the right side is its row k. */
HOST_DEVICE int arrow_pitch(int k)
{
  return (k + 1) | 1;
}

/* Columns of a tile: in arrow.cu by threads a system; in arrow_sum.cu (team 0) as many as registers
 * allow, unless there would be fewer tiles than threads. */
HOST_DEVICE int arrow_tile(int d, int k, int team)
{
  if (team == 0) return k <= 10 ? 2 : d > 4 ? 6 : 7;
  if (team == WARP && k <= 4) return k + 1;
  return k <= 10 ? (k + 2) / 2 : 6;
}

/* Tiles of a triangle of k + 1 columns; the last is left out where it has u'u alone. */
HOST_DEVICE int arrow_tiles(int k, int tile)
{
  int side = (k + tile) / tile;
  return k == 0 ? 0 : side * (side + 1) / 2 - (k % tile == 0);
}

/* Shared memory of the border, in reals: S with the right side, C, g_b, the step, a pair. */
HOST_DEVICE int arrow_border_reals(int k)
{
  return k * arrow_pitch(k) + k * k + k + k + 2;
}

/* ... of so many rows; sums read beyond the last row, by less than a tile. */
HOST_DEVICE int arrow_rows_reals(int d, int k, int tile, int rows)
{
  return rows * arrow_row_reals(d, k) + tile * d;
}

/* Threads of a system in arrow.cu, by about how many multiply-adds its rows take. */
HOST_DEVICE int arrow_team(int d, int k, int n)
{
  long long work = (long long)n * d * (k + 4);
  return work <= 2048 ? WARP : k > 10 ? 256 : 128;
}

HOST_DEVICE int arrow_threads(int team)
{
  return team == WARP ? ARROW_BLOCK : team;
}

/* Reals of a system in arrow.cu, and bytes of a block. */
HOST_DEVICE int arrow_area_reals(int d, int k, int team, int rows)
{
  return arrow_rows_reals(d, k, arrow_tile(d, k, team), rows) + arrow_border_reals(k);
}
HOST_DEVICE long long arrow_shared_bytes(int d, int k, int team, int rows)
{
  return 8LL * (arrow_threads(team) / team) * arrow_area_reals(d, k, team, rows);
}

/* Lanes of a segment that a block of arrow_sum.cu adds: every arrow_parts()th. */
HOST_DEVICE int arrow_part_lanes(int k)
{
  return k <= 10 ? 4 : 8;
}
HOST_DEVICE int arrow_parts(int k)
{
  return ARROW_LANES / arrow_part_lanes(k);
}
/* The sums of a part by rows of the triangle, and its pair. */
HOST_DEVICE int arrow_part_reals(int k)
{
  return k * (k + 1) / 2 + k + 2;
}
HOST_DEVICE int arrow_sum_threads(int d, int k)
{
  int threads = arrow_tiles(k, arrow_tile(d, k, 0)) * arrow_part_lanes(k);
  return threads <= 128 ? 128 : (threads + WARP - 1) / WARP * WARP;
}

/* Rows that arrow_sum.cu has in shared memory at a time, twice: one lot comes while another is
 * added. */
HOST_DEVICE int arrow_stage_rows(int d, int k)
{
  int rows = 128;
  while (rows > 8 && 8 * rows * arrow_row_reals(d, k) > ARROW_STAGE_BYTES) rows /= 2;
  return rows;
}
HOST_DEVICE int arrow_sum_bytes(int d, int k)
{
  return 8 * 2 * arrow_rows_reals(d, k, arrow_tile(d, k, 0), arrow_stage_rows(d, k));
}
/* Rows of a block of arrow_step.cu. */
HOST_DEVICE int arrow_step_rows(int d, int k)
{
  int rows = ARROW_BLOCK;
  while (rows > 16 && 8 * rows * arrow_row_reals(d, k) > 2 * ARROW_STAGE_BYTES) rows /= 2;
  return rows;
}
HOST_DEVICE int arrow_step_bytes(int d, int k)
{
  return 8 * (arrow_rows_reals(d, k, 0, arrow_step_rows(d, k)) + k);
}

#endif
