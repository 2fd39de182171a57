/* SPDX-License-Identifier: BSD-3-Clause
 * Layouts and sizes that launchers and kernels of attention (N.27) share.  C11 that is also CUDA
 * C++.
 *
 * Floor: kernels.  Includes forms.h alone.
 *
 * A head of k is shared by `group` heads of q.  Its rows are the pairs of a query and one of these
 * heads: row r is query r / group and head r mod group.  A task is a tile of rows and one shard of
 * positions.  Its result is one *part* for each of its rows: the row's sums over the shard.  The
 * last task of a tile to end joins the parts of its rows. */
#ifndef ATTENTION_TYPES_H
#define ATTENTION_TYPES_H

#include "forms.h"

enum {
  /* ATTENTION_BLOCK, ATTENTION_SHARD and ATTENTION_CHAIN of model/attention.h. */
  WALK_BLOCK = 64,
  WALK_SHARD = 1024,
  WALK_CHAIN = 128,
  WALK_WARPS = 4, /* warps of a thread block, in both kernels */
  WALK_THREADS = WARP * WALK_WARPS,
  TILE_ROWS = 64,         /* rows of a tile of attention_tile, 16 per warp */
  TILE_CHUNK = 64,        /* columns of keys at a time, in attention_tile */
  TILE_STAGE = 64 * 64,   /* floats of a stage */
  FEW_ROWS = 8,           /* the most rows of a task of attention_few */
  FEW_STAGES = 4,         /* the most stages of keys, and the most of values, in attention_few */
  MAX_WALK_COLUMNS = 256, /* columns of a head */
  PART_PAD = 32           /* the columns of a part are a multiple of this */
};

enum { CELLS_F32, CELLS_F16, CELLS_BF16 };

/* SUMS_NONE: store results only.  SUMS_KEPT: store results, m and l.  SUMS_OPEN: store m, l and the
 * sums, which a later call may continue over later positions. */
enum { SUMS_NONE, SUMS_KEPT, SUMS_OPEN };

HOST_DEVICE int cells_bytes(int type)
{
  return type == CELLS_F32 ? 4 : 2;
}

/* A sequence of a launch; its positions are 0 .. n_kv - 1. */
struct softmax_sequence {
  long long q;     /* index of its first query, in q, out and lse */
  long long cells; /* the cell of position 0, or the first entry of its table */
  long long part;  /* index of the first part of its first row */
  long long first; /* number of position 0 in the whole sequence */
  int n_q, n_kv;
  int at;                  /* position of the first query; may be negative */
  int first_shard, shards; /* the shards that any of its queries sees */
  int goes_on;             /* SUMS_OPEN: 1 if sums over earlier positions are continued */
};

struct softmax_task {
  int sequence, kv_head;
  int row;   /* first row of the tile */
  int shard; /* number of the shard in the sequence */
  int tile;  /* index of the tile in `done` */
  int tasks; /* number of tasks of this tile */
};

struct attention_args {
  const float *q;    /* [..][heads][d] */
  const void *k, *v; /* [cells][kv_heads][d], [cells][kv_heads][dv] */
  const int *table;  /* blocks of cells; 0: cells are consecutive */
  const struct softmax_sequence *sequences;
  const struct softmax_task *tasks; /* [blocks] */
  int *done;                        /* [tiles] tasks that have ended; 0 before and after a launch */
  float *part_m, *part_l, *part;    /* [parts], [parts][part_columns(dv)]; by row, then by shard */
  float *out, *lse;     /* [..][heads][dv], [..][heads]; SUMS_OPEN: [..][heads][sum_columns(dv)] */
  float *sum_m, *sum_l; /* [..][heads]; not used by SUMS_NONE */
  int heads, kv_heads, group;
  int size, shift; /* cells of a block; position p is in table entry (p magic / 2^31) >> shift */
  unsigned magic;
  int causal, window;
  float inner, exponent; /* struct attention_factors */
};

HOST_DEVICE int part_columns(int dv)
{
  return (dv + PART_PAD - 1) / PART_PAD * PART_PAD;
}

/* Columns of open sums; the same as attention_stride() of the host. */
HOST_DEVICE int sum_columns(int dv)
{
  return (dv + 15) / 16 * 16;
}

/* Columns of q and k, padded with zeros. */
HOST_DEVICE int padded_head(int d)
{
  return (d + 3) / 4 * 4;
}

/* Positions of values in a stage of attention_tile. */
HOST_DEVICE int tile_positions(int dv)
{
  int columns = part_columns(dv);
  return columns <= 64 ? 64 : columns <= 128 ? 32 : 16;
}

/* Shared memory of attention_tile: queries, two stages, weights of 32 positions. */
HOST_DEVICE int tile_shared_bytes(int d)
{
  return 4 * (padded_head(d) * TILE_ROWS + 2 * TILE_STAGE + TILE_ROWS * 32);
}

/* Bytes between positions of values, and of keys, in attention_few.  Both are multiples of 32,
 * because a copy that begins inside a sector of 32 bytes reads two sectors.  The pitch of keys is
 * an odd multiple: then eight lanes that read eight positions have few bank conflicts. */
HOST_DEVICE int few_value_pitch(int columns, int type)
{
  return (columns * cells_bytes(type) + 31) / 32 * 32;
}

HOST_DEVICE int few_key_pitch(int columns, int type)
{
  return (few_value_pitch(columns, type) / 32 | 1) * 32;
}

/* FEW of the compiled form of attention_few that does tasks of `rows` rows. */
HOST_DEVICE int few_rows(int rows)
{
  return rows <= 1 ? 1 : rows <= 2 ? 2 : rows <= 4 ? 4 : FEW_ROWS;
}

/* The most blocks of attention_few on a multiprocessor.  With FEW_STAGES stages only few blocks
 * fit, and each can have more registers. */
HOST_DEVICE int few_blocks(int dv, int rows, int stages)
{
  return dv > 128 || stages == FEW_STAGES ? 2 : rows <= 4 ? 5 : 4;
}

/* Shared memory of attention_few: stages of keys and values, cells, queries, products of two
 * blocks, weights, and the state of the rows. */
HOST_DEVICE int few_shared_bytes(int d, int dv, int type, int rows, int stages)
{
  int pitches = few_key_pitch(d, type) + few_value_pitch(dv, type),
      numbers = 16 / cells_bytes(type);
  return stages * WALK_BLOCK * pitches + 4 * WALK_SHARD +
         4 * rows * ((d + numbers - 1) / numbers * numbers + 3 * WALK_BLOCK + 5);
}

#endif
