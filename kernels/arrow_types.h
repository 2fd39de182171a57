/* SPDX-License-Identifier: BSD-3-Clause
 * What launchers and kernels of the arrow systems agree on (N.7 to N.13).  C11 that is also CUDA
 * C++.
 *
 * Floor: kernels.  Includes forms.h alone.
 *
 * A system of d, k and n stands in one piece of memory: B [n][d k], H [n][d d], g [n][d], C [k][k],
 * g_b [k]; its steps in another: rows [n][d], border [k].  It begins with a line of the cache and
 * with its widest rows, so that these are as few lines as can be.  arrow_fetch.cu brings it there
 * from page-locked arrays of the host, and arrow_return.cu takes its steps to such; others come and
 * go in that form.  In shared memory a row is
 *     Y [k][d], u [d], L packed by columns
 * in place of B, g, H, and as far from the next row that rows at a distance of one never meet in a
 * bank; behind the rows stand their pivots [n][d].  Where a thread of arrow.cu can hold the factors
 * of all its rows, L is in its registers instead.  u is column k of an extended Y, and the sums T
 * and w of (N.9) are one triangle of k + 1 columns.
 *
 * A short system of d = 1 is solved in the registers of a warp (arrow_lanes.cu).
 *
 * A system whose rows fit in shared memory, of a block or of a cluster of blocks that have every so
 * manieth lane of (N.12), is solved by arrow.cu, which reads it once.  Others take three kernels:
 * arrow_sum.cu adds lanes of a segment a block, arrow_border.cu adds these parts and solves the
 * border, arrow_step.cu reads the rows again.
 *
 * Where tensor instructions are chains of fma (MMA) a block's warps have lanes, whose sums are
 * products of 16 x 8; elsewhere the triangle is cut into square tiles, a tile in a thread's
 * registers. */
#ifndef ARROW_TYPES_H
#define ARROW_TYPES_H

#include "forms.h"

enum {
  ARROW_MAX_FRAME = 8,        /* the largest d of the kernels */
  ARROW_MAX_COLUMNS = 40,     /* and the largest k */
  ARROW_FEW = 8,              /* columns with which a thread has registers for a fifth block */
  ARROW_LANES = 32,           /* of (N.12) */
  ARROW_SEGMENT_ROWS = 65536, /* of (N.12) */
  ARROW_BLOCK = 128,    /* threads where a warp has a system, factors are held, of arrow_step.cu */
  ARROW_MAX_ROUNDS = 7, /* of lanes in registers */
  ARROW_BLOCKS = 8,     /* of a cluster, at most */
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

/* Where a system and its steps stand in the host's memory, for arrow_fetch.cu and
 * arrow_return.cu. */
struct arrow_pointers {
  const double *h, *b, *g, *c, *g_b;
  double *step_t, *step_b;
  int d, k;
};
enum { ARROW_BUS_THREADS = 128, ARROW_BUS_BLOCKS = 128, ARROW_BUS_LEAST = 1024 };

/* What became of a system: the determinant as a pair (N.13); not_ok: a pivot was bad or a step not
 * finite.  Of long systems zeroed before. */
struct arrow_found {
  double m;
  long long e;
  long long not_ok;
};

/* Threads read a row each, 8 bytes at a time or, where d is even, 16; is L in registers? */
HOST_DEVICE int arrow_row_reals(int d, int k, int held)
{
  int reals = d * k + d + (held ? 0 : d * d);
  return d % 2 ? reals | 1 : reals + (reals % 4 ? 0 : 2);
}

/* The Schur complement stands by columns, four of which begin with the row of the first of them,
 * and are equally long; the right side is their row k.  Row i of column j is at arrow_column(k, j)
 * + i, and j may be k, where the columns end. */
HOST_DEVICE int arrow_column_length(int k, int j)
{
  return (k + 2) / 2 * 2 - j / 4 * 4;
}
HOST_DEVICE int arrow_column(int k, int j)
{
  int four = j / 4, begin = 4 * four * arrow_column_length(k, 0) - 8 * four * (four - 1);
  return begin + j % 4 * arrow_column_length(k, j) - 4 * four;
}
HOST_DEVICE int arrow_columns_reals(int k)
{
  return arrow_column(k, k) + k / 4 * 4;
}

/* Columns of a tile: in arrow.cu by threads a system; in arrow_sum.cu (team 0) as many as registers
 * allow, but for small k, so that most threads have a part of one. */
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

/* Sums of the triangle: T by rows, then w. */
HOST_DEVICE int border_sums(int k)
{
  return k * (k + 1) / 2 + k;
}

/* Shared memory of the border, in reals.  First S with the right side, and C and g_b; or in the
 * place of so many sums, if it is of any, S and k reals. */
HOST_DEVICE int arrow_border_room(int k, int sums)
{
  int room = arrow_columns_reals(k) + (sums ? k : k * k + k);
  return ((room > sums ? room : sums) + 1) / 2 * 2;
}
/* Then the step, and the pair of each block of a cluster. */
HOST_DEVICE int arrow_step_reals(int k)
{
  return (k + 1) / 2 * 2;
}
HOST_DEVICE int arrow_border_reals(int k, int sums, int blocks)
{
  return arrow_border_room(k, sums) + arrow_step_reals(k) + 2 * blocks;
}

/* ... of so many rows and their pivots; sums read beyond the last row, by less than a tile. */
HOST_DEVICE int arrow_rows_reals(int d, int k, int tile, int rows)
{
  return rows * arrow_row_reals(d, k, 0) + tile * d + rows * d;
}

/* Rows of a lane that arrow_lanes.cu has in registers; 0: the system is not one of its own. */
HOST_DEVICE int arrow_rounds(int d, int k, int n)
{
  if (d > 1 || k > 4 || n > ARROW_MAX_ROUNDS * ARROW_LANES) return 0;
  return n <= 2 * ARROW_LANES ? 2 : n <= 4 * ARROW_LANES ? 4 : ARROW_MAX_ROUNDS;
}

/* Threads of a system in arrow.cu, by about how many multiply-adds its rows take. */
HOST_DEVICE int arrow_team(int d, int k, int n)
{
  long long work = (long long)n * d * (k + 4);
  return work <= 2048 ? WARP : k > 10 || n > 256 ? 256 : 128;
}

/* Rows of a thread of arrow.cu whose factors it holds in registers, where a team of ARROW_BLOCK has
 * products, so that more blocks are in a multiprocessor: as many as follows, a system of few
 * columns a block.  Of a block then, at most. */
HOST_DEVICE int arrow_resident(int d, int k)
{
  if (k <= 10) return d == 2 && k > 4 && k <= ARROW_FEW ? 2 : 0;
  return d > 2 || k > 32 ? 0 : k > 16 ? 1 : 2;
}
HOST_DEVICE int arrow_resident_blocks(int k)
{
  return k <= ARROW_FEW ? 5 : 3;
}
HOST_DEVICE int arrow_resident_rows(int held)
{
  return held * ARROW_BLOCK;
}

HOST_DEVICE int arrow_threads(int team)
{
  return team == WARP ? ARROW_BLOCK : team;
}

/* With products: reals between the rows of one round of lanes and the next, so that
 * what a product reads of several rounds meets in no bank. */
HOST_DEVICE int arrow_pad(int d, int k, int held, int lanes)
{
  int apart = d == 1 ? 4 : d == 2 ? 8 : 0;
  return apart ? ((apart - lanes * arrow_row_reals(d, k, held)) % 16 + 16) % 16 : 0;
}

/* Rows of a system of n that a block of (1 << shift) lanes has: as many of each full round of all
 * lanes, and what is left. */
HOST_DEVICE int arrow_rows_of(int n, int part, int shift)
{
  int parts = ARROW_LANES >> shift, left = n % ARROW_LANES - part;
  return (n / ARROW_LANES << shift) + (left > 0 ? (left + parts - 1) >> (5 - shift) : 0);
}

/* Warps of a block that share a lane's products, and warps of different lanes. */
HOST_DEVICE int arrow_split(int k, int team, int held)
{
  if (held) return k > 16 ? 4 : k > ARROW_FEW ? 2 : 1; /* so that sums take less room */
  return k > 16 && team > 128 ? 2 : 1;
}
HOST_DEVICE int arrow_lane_warps(int k, int team, int held)
{
  return team / WARP / arrow_split(k, team, held);
}

/* Reals of the warps' sums; of a single one these stand where S will. */
HOST_DEVICE int arrow_sums_reals(int k, int team, int held)
{
  int warps = arrow_lane_warps(k, team, held);
  return warps == 1 ? arrow_columns_reals(k) : warps * border_sums(k);
}

/* Where things stand in a team's part of the shared memory of arrow.cu, in reals from its begin:
 * rows, their pivots, what the warps have added, the border, which takes the place of these sums
 * where room is short because factors are held. */
struct arrow_layout {
  int shift, pad; /* log2 of the block's lanes; arrow_pad() */
  int pivots, sums, border, reals;
};

/* For systems of at most n rows, by `blocks` blocks each. */
HOST_DEVICE struct arrow_layout arrow_layout_of(int d, int k, int team, int mma, int held,
                                                int blocks, int n)
{
  struct arrow_layout l = {5, 0, 0, 0, 0, 0};
  int products = mma && team > WARP, rounds = (n + ARROW_LANES - 1) / ARROW_LANES;
  int sums = products ? arrow_sums_reals(k, team, held) : 0;
  while (blocks >> (5 - l.shift) > 1) l.shift--;
  l.pad = products ? arrow_pad(d, k, held, 1 << l.shift) : 0;
  int rows = arrow_rows_of(n, 0, l.shift), pivots = rows * d;
  /* Sums read beyond the last row: products less than 16 reals, pivots if there are so many. */
  int beyond = !products ? arrow_tile(d, k, team) * d : pivots < 16 ? 16 - pivots : 0;
  l.pivots = rows * arrow_row_reals(d, k, held) + (rounds > 1 ? rounds - 1 : 0) * l.pad + beyond;
  l.sums = (l.pivots + pivots + 1) / 2 * 2;
  l.border = held ? l.sums : (l.sums + sums + 1) / 2 * 2;
  l.reals = (l.border + arrow_border_reals(k, held ? sums : 0, blocks) + 1) / 2 * 2;
  return l;
}
HOST_DEVICE int arrow_shared_bytes(const struct arrow_layout *layout, int team)
{
  return 8 * (arrow_threads(team) / team) * layout->reals;
}

/* Lanes of a segment that a block of arrow_sum.cu adds, every arrow_parts()th; with products a warp
 * has one. */
HOST_DEVICE int arrow_part_lanes(int k, int mma)
{
  return mma || k <= 10 ? 4 : 8;
}
HOST_DEVICE int arrow_parts(int k, int mma)
{
  return ARROW_LANES / arrow_part_lanes(k, mma);
}
/* The sums of a part by rows of the triangle, and its pair. */
HOST_DEVICE int arrow_part_reals(int k)
{
  return border_sums(k) + 2;
}
HOST_DEVICE int arrow_sum_threads(int d, int k, int mma)
{
  int threads = arrow_tiles(k, arrow_tile(d, k, 0)) * arrow_part_lanes(k, mma);
  return threads <= 128 ? 128 : (threads + WARP - 1) / WARP * WARP;
}

/* Rows that arrow_sum.cu has in shared memory at a time, twice: one lot comes while another is
 * added. */
HOST_DEVICE int arrow_stage_rows(int d, int k)
{
  int rows = 128;
  while (rows > 8 && 8 * rows * arrow_row_reals(d, k, 0) > ARROW_STAGE_BYTES) rows /= 2;
  return rows;
}
HOST_DEVICE int arrow_subbatch_reals(int d, int k, int mma)
{
  int rows = arrow_stage_rows(d, k), lanes = arrow_part_lanes(k, mma);
  return arrow_rows_reals(d, k, arrow_tile(d, k, 0), rows) +
         (mma ? rows / lanes * arrow_pad(d, k, 0, lanes) : 0);
}
HOST_DEVICE int arrow_sum_bytes(int d, int k, int mma)
{
  return 8 * 2 * arrow_subbatch_reals(d, k, mma);
}
/* Rows of a block of arrow_step.cu. */
HOST_DEVICE int arrow_step_rows(int d, int k)
{
  int rows = ARROW_BLOCK;
  while (rows > 16 && 8 * rows * arrow_row_reals(d, k, 0) > 2 * ARROW_STAGE_BYTES) rows /= 2;
  return rows;
}
HOST_DEVICE int arrow_step_bytes(int d, int k)
{
  return 8 * (arrow_step_rows(d, k) * arrow_row_reals(d, k, 0) + k);
}

struct arrow_args {
  const double *in;
  double *out;
  const struct arrow_atom *atoms;      /* [count] */
  const struct arrow_pointers *places; /* [count], of arrow_fetch.cu and arrow_return.cu */
  const struct arrow_unit *units;
  double *parts; /* of arrow_sum.cu: [units][arrow_parts()][arrow_part_reals()] */
  struct arrow_found *found;
  int count;                  /* systems */
  int ahead;                  /* systems from one that begins to the one that is fetched; 0: none */
  struct arrow_layout layout; /* of arrow.cu */
  long long numbers, piece;   /* of arrow_fetch.cu and arrow_return.cu: of the lot, of a piece */
};

#endif
