/* SPDX-License-Identifier: BSD-3-Clause
 * Layouts and sizes that launchers and kernels of the arrow systems share (N.7 to N.13).  C11 that
 * is also CUDA C++.
 *
 * Floor: kernels.  Includes forms.h alone.
 *
 * A system of d, k and n is one contiguous array: B [n][d k], H [n][d d], g [n][d], C [k][k], g_b
 * [k].  Its steps are a second array: rows [n][d], border [k].  A system begins at a cache line.  B
 * comes first, because its rows are the widest and so touch few lines.  arrow_fetch.cu copies a
 * system to this form from page-locked arrays of the host, and arrow_return.cu copies its steps to
 * such arrays.  Without page-locked arrays, launchers copy systems and steps in this form.
 *
 * In shared memory a row is
 *     Y [k][d], u [d], L packed by columns
 * in place of B, g, H.  Rows are padded so that neighbouring rows have no bank conflict.  The
 * pivots [n][d] follow the rows.  In the form arrow_is_tiny() only the first pivot of each row is
 * there; the second one, if d = 2, follows L, where H leaves room for it.  If threads of arrow.cu
 * can hold the factors of all rows, L is in registers instead.  u is column k of an extended Y, so
 * the sums T and w of (N.9) are one triangle of k + 1 columns.
 *
 * A short system of d = 1 is solved in the registers of a warp (arrow_lanes.cu).  A system whose
 * rows fit in shared memory is solved by arrow.cu, which reads it once.  A cluster of blocks may
 * share it; each block then has every 2nd, 4th or 8th lane of (N.12).  Other systems take three
 * kernels: arrow_sum.cu sums some lanes of a segment in each block, arrow_border.cu adds these
 * parts and solves the border, arrow_step.cu reads the rows again.
 *
 * If the tensor instructions of f64 are chains of fma (MMA), a warp has some lanes, and sums are
 * made as products of 16 x 8.  Otherwise, and for a team of one warp, the triangle is divided into
 * square tiles, and a thread has one lane of a tile in registers. */
#ifndef ARROW_TYPES_H
#define ARROW_TYPES_H

#include "forms.h"

enum {
  ARROW_MAX_FRAME = 8,        /* the largest d of the kernels */
  ARROW_MAX_COLUMNS = 40,     /* the largest k */
  ARROW_FEW = 8,              /* for k up to this, registers suffice for a fifth resident block */
  ARROW_LANES = 32,           /* of (N.12) */
  ARROW_SEGMENT_ROWS = 65536, /* of (N.12) */
  ARROW_BLOCK = 128,    /* threads of a block if a warp has a system, if factors are held, and in
                        arrow_step.cu */
  ARROW_MAX_ROUNDS = 7, /* rows of a lane in registers (arrow_lanes.cu) */
  ARROW_BLOCKS = 8,     /* the most blocks of a cluster */
  ARROW_CLUSTER_ROWS = 2048, /* with more rows, three kernels are faster than ARROW_BLOCKS blocks */
  ARROW_TINY_BLOCKS = 7,     /* blocks of the form arrow_is_tiny() that a multiprocessor can run */
  ARROW_STAGE_BYTES = 48 << 10 /* about the bytes of rows in shared memory at a time */
};

/* A system of a launch. */
struct arrow_atom {
  long long in, out; /* where its numbers begin in arrow_args.in, and its steps in .out */
  double ridge_t, ridge_b;
  int n, number;  /* rows; index in `found` */
  int first_unit; /* its first unit for arrow_sum.cu */
  int unused;
};

/* Rows of one system: a segment, or the rows of a block of arrow_step.cu. */
struct arrow_unit {
  int atom, first; /* index in `atoms`; the first row of the unit */
};

/* The arrays of a system and of its steps in host memory, for arrow_fetch.cu and
 * arrow_return.cu. */
struct arrow_pointers {
  const double *h, *b, *g, *c, *g_b;
  double *step_t, *step_b;
  int d, k;
};
enum { ARROW_BUS_THREADS = 128, ARROW_BUS_BLOCKS = 128, ARROW_BUS_LEAST = 1024 };

/* The outcome of a system.  m, e: the determinant as a pair (N.13); not_ok: a pivot was bad, or a
 * step was not finite.  The launcher zeroes it, because kernels for long systems only set
 * not_ok. */
struct arrow_found {
  double m;
  long long e;
  long long not_ok;
};

/* Reals of a row in shared memory, padded: a thread reads a row, 16 bytes at a time for even d,
 * otherwise 8.  held: L is in registers. */
HOST_DEVICE int arrow_row_reals(int d, int k, int held)
{
  int reals = d * k + d + (held ? 0 : d * d);
  return d % 2 ? reals | 1 : reals + (reals % 4 ? 0 : 2);
}

/* Are the strides of arrow.cu constants?  They can be if one block has a whole system.  For teams
 * other than ARROW_BLOCK and for larger borders this is not faster. */
HOST_DEVICE int arrow_is_alone(int k, int team, int mma, int blocks)
{
  return mma && team == ARROW_BLOCK && blocks == 1 && k <= 16;
}

/* The form of small borders: pivots take little room, so that ARROW_TINY_BLOCKS fit. */
HOST_DEVICE int arrow_is_tiny(int d, int k, int alone)
{
  return alone && d <= 2 && k <= 4;
}
HOST_DEVICE int arrow_pivots(int d, int k, int alone)
{
  return arrow_is_tiny(d, k, alone) ? 1 : d;
}

/* Layout of the Schur complement: by columns, with the right side as row k.  Four consecutive
 * columns begin with the same row, which is the number of the first one, and have the same length.
 * Row i of column j is at arrow_column(k, j) + i. */
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

/* Columns of a tile of the triangle, by team (threads of a system) for arrow.cu.  For arrow_sum.cu
 * (team 0) a tile has as many columns as registers allow, but fewer for small k, so that most
 * threads have work. */
HOST_DEVICE int arrow_tile(int d, int k, int team)
{
  if (team == 0) return k <= 10 ? 2 : d > 4 ? 6 : 7;
  if (team == WARP && k <= 4) return k + 1;
  return k <= 10 ? (k + 2) / 2 : 6;
}

/* The number of tiles of a triangle of k + 1 columns.  The last tile is left out if it has only
 * u'u. */
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

/* Reals of shared memory for the border: S with the right side, then C and g_b.  If sums > 0, the
 * border overwrites that many sums, and k reals take the place of C and g_b. */
HOST_DEVICE int arrow_border_room(int k, int sums)
{
  int room = arrow_columns_reals(k) + (sums ? k : k * k + k);
  return ((room > sums ? room : sums) + 1) / 2 * 2;
}
/* Reals of the border's step, and of the determinant pair of each block of a cluster, which comes
 * after it. */
HOST_DEVICE int arrow_step_reals(int k)
{
  return (k + 1) / 2 * 2;
}
HOST_DEVICE int arrow_border_reals(int k, int sums, int blocks)
{
  return arrow_border_room(k, sums) + arrow_step_reals(k) + 2 * blocks;
}

/* Reals of `rows` rows and their pivots; sums read past the last row, by less than a tile. */
HOST_DEVICE int arrow_rows_reals(int d, int k, int tile, int rows)
{
  return rows * arrow_row_reals(d, k, 0) + tile * d + rows * d;
}

/* Rows per lane that arrow_lanes.cu holds in registers; 0: it does not solve this system. */
HOST_DEVICE int arrow_rounds(int d, int k, int n)
{
  if (d > 1 || k > 4 || n > ARROW_MAX_ROUNDS * ARROW_LANES) return 0;
  return n <= 2 * ARROW_LANES ? 2 : n <= 4 * ARROW_LANES ? 4 : ARROW_MAX_ROUNDS;
}

/* Threads of a system in arrow.cu.  `work` is about the number of multiply-adds of its rows. */
HOST_DEVICE int arrow_team(int d, int k, int n)
{
  long long work = (long long)n * d * (k + 4);
  return work <= 2048 ? WARP : k > 10 || n > 256 ? 256 : 128;
}

/* Rows per thread of arrow.cu whose factors are held in registers; 0: none.  Only for a team of
 * ARROW_BLOCK threads that sums by products.  With held factors, arrow_resident_blocks() blocks fit
 * on a multiprocessor, and a block has at most arrow_resident_rows() rows. */
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

/* For sums by products: reals of padding between rounds of lanes, so that reads of several rounds
 * have no bank conflict. */
HOST_DEVICE int arrow_pad(int d, int k, int held, int lanes)
{
  int apart = d == 1 ? 4 : d == 2 ? 8 : 0;
  return apart ? ((apart - lanes * arrow_row_reals(d, k, held)) % 16 + 16) % 16 : 0;
}

/* How many of a system's n rows block `part` has, with 1 << shift lanes: the rows of its lanes in
 * every full round of 32 rows, and in the partial round at the end. */
HOST_DEVICE int arrow_rows_of(int n, int part, int shift)
{
  int parts = ARROW_LANES >> shift, left = n % ARROW_LANES - part;
  return (n / ARROW_LANES << shift) + (left > 0 ? (left + parts - 1) >> (5 - shift) : 0);
}

/* halved: every warp makes all products of its lanes, and the upper half of the warps adds its sums
 * to those of the lower half, so that sums take less room.  split: the number of warps among which
 * the products of a lane are divided.  lane_warps: the number of groups of warps with different
 * lanes. */
HOST_DEVICE int arrow_is_halved(int k, int held, int alone)
{
  return held && alone && k > ARROW_FEW;
}
HOST_DEVICE int arrow_split(int k, int team, int held, int alone)
{
  if (arrow_is_halved(k, held, alone)) return 1;
  if (held) return k > 16 ? 4 : k > ARROW_FEW ? 2 : 1; /* so that sums take less room */
  return k > 16 && team > 128 ? 2 : 1;
}
HOST_DEVICE int arrow_lane_warps(int k, int team, int held, int alone)
{
  return team / WARP / arrow_split(k, team, held, alone);
}

/* Reals of the warps' sums.  A single set of sums is in the places of S. */
HOST_DEVICE int arrow_sums_reals(int k, int team, int held, int alone)
{
  int warps = arrow_lane_warps(k, team, held, alone) >> arrow_is_halved(k, held, alone);
  return warps == 1 ? arrow_columns_reals(k) : warps * border_sums(k);
}

/* Shared memory of a team of arrow.cu, as offsets in reals: rows, their pivots, sums of the warps,
 * the border.  If factors are held, the border overwrites the sums, because memory is short. */
struct arrow_layout {
  int shift, pad; /* log2 of the block's lanes; arrow_pad() */
  int pivots, sums, border, reals;
};

/* The layout for systems of at most n rows, each solved by `blocks` blocks. */
HOST_DEVICE struct arrow_layout arrow_layout_of(int d, int k, int team, int mma, int held,
                                                int blocks, int n)
{
  struct arrow_layout l = {5, 0, 0, 0, 0, 0};
  int alone = arrow_is_alone(k, team, mma, blocks);
  int products = mma && team > WARP, rounds = (n + ARROW_LANES - 1) / ARROW_LANES;
  int sums = products ? arrow_sums_reals(k, team, held, alone) : 0;
  while (blocks >> (5 - l.shift) > 1) l.shift--;
  l.pad = products ? arrow_pad(d, k, held, 1 << l.shift) : 0;
  int rows = arrow_rows_of(n, 0, l.shift), pivots = rows * arrow_pivots(d, k, alone);
  /* Sums read past the last row.  Products read less than 16 reals there, which may be pivots. */
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

/* The number of lanes of a segment that a block of arrow_sum.cu sums: it has every arrow_parts()-th
 * lane.  With products a warp has one lane. */
HOST_DEVICE int arrow_part_lanes(int k, int mma)
{
  return mma || k <= 10 ? 4 : 8;
}
HOST_DEVICE int arrow_parts(int k, int mma)
{
  return ARROW_LANES / arrow_part_lanes(k, mma);
}
/* Reals of a part: its sums by rows of the triangle, and its determinant pair. */
HOST_DEVICE int arrow_part_reals(int k)
{
  return border_sums(k) + 2;
}
HOST_DEVICE int arrow_sum_threads(int d, int k, int mma)
{
  int threads = arrow_tiles(k, arrow_tile(d, k, 0)) * arrow_part_lanes(k, mma);
  return threads <= 128 ? 128 : (threads + WARP - 1) / WARP * WARP;
}

/* Rows that arrow_sum.cu adds at a time.  Shared memory has space for twice as many rows: the next
 * rows are copied while these are added. */
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
  const struct arrow_pointers *places; /* [count], for arrow_fetch.cu and arrow_return.cu */
  const struct arrow_unit *units;
  double *parts; /* of arrow_sum.cu: [units][arrow_parts()][arrow_part_reals()] */
  struct arrow_found *found;
  int count;                  /* systems */
  int ahead;                  /* when system i begins, system i + ahead is prefetched; 0: none */
  struct arrow_layout layout; /* of arrow.cu */
  long long numbers, piece;   /* arrow_fetch.cu, arrow_return.cu: numbers in all, and of a piece */
};

#endif
