/* SPDX-License-Identifier: BSD-3-Clause
 * What launchers and the kernels of attention (N.27) agree on.  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes forms.h alone.
 *
 * The rows of a head of k are the queries of a sequence times the heads of q that share it: row r
 * is query r / group, head r mod group of these.  A task is a tile of rows and one shard; what it
 * finds is a part, and the last task of a tile to end joins the parts of its rows. */
#ifndef ATTENTION_TYPES_H
#define ATTENTION_TYPES_H

#include "forms.h"

enum {
  WALK_BLOCK = 64, /* ATTENTION_BLOCK, ATTENTION_SHARD, ATTENTION_CHAIN of model/attention.h */
  WALK_SHARD = 1024,
  WALK_CHAIN = 128,
  WALK_WARPS = 4, /* of a block of threads, in both kernels */
  WALK_THREADS = WARP * WALK_WARPS,
  TILE_ROWS = 64,         /* of attention_tile: 16 a warp */
  TILE_CHUNK = 64,        /* columns of keys at a time, there */
  TILE_STAGE = 64 * 64,   /* floats of a stage */
  FEW_ROWS = 8,           /* of attention_few, at most */
  FEW_STAGES = 4,         /* of its keys and of its values, at most */
  MAX_WALK_COLUMNS = 256, /* of a head */
  PART_PAD = 32           /* columns of a part are a multiple of this */
};

enum { CELLS_F32, CELLS_F16, CELLS_BF16 };

/* What is stored of the sums that a walk ends with: nothing but results, m and l beside them, or m,
 * l and the columns as they are, which later positions may go on from. */
enum { SUMS_NONE, SUMS_KEPT, SUMS_OPEN };

HOST_DEVICE int cells_bytes(int type)
{
  return type == CELLS_F32 ? 4 : 2;
}

/* A sequence of a launch; a position is in 0 .. n_kv - 1. */
struct softmax_sequence {
  long long q;     /* its first query, in q, out and lse */
  long long cells; /* the cell of position 0, or the first entry of its table */
  long long part;  /* where the parts of its first row begin */
  long long first; /* what position 0 is in the whole sequence */
  int n_q, n_kv;
  int at;                  /* the position of the first query; may be negative */
  int first_shard, shards; /* that any of its queries sees */
  int goes_on;             /* of SUMS_OPEN: positions come before these, whose sums are there */
};

struct softmax_task {
  int sequence, kv_head;
  int row;   /* the first of the tile */
  int shard; /* by its number in the sequence */
  int tile;  /* its counter */
  int tasks; /* of this tile */
};

struct attention_args {
  const float *q;    /* [..][heads][d] */
  const void *k, *v; /* [cells][kv_heads][d], [cells][kv_heads][dv] */
  const int *table;  /* blocks of cells; 0: plain */
  const struct softmax_sequence *sequences;
  const struct softmax_task *tasks; /* [blocks] */
  int *done;                        /* [tiles] tasks that have ended; zeros before and after */
  float *part_m, *part_l, *part;    /* [parts], [parts][part_columns(dv)]; row by row, by shards */
  float *out, *lse; /* [..][heads][dv], [..][heads]; of SUMS_OPEN [..][heads][sum_columns(dv)] */
  float *sum_m, *sum_l; /* [..][heads], unless SUMS_NONE */
  int heads, kv_heads, group;
  int size, shift; /* cells of a block; position p is in entry (p magic / 2^31) >> shift */
  unsigned magic;
  int causal, window;
  float inner, exponent; /* struct attention_factors */
};

HOST_DEVICE int part_columns(int dv)
{
  return (dv + PART_PAD - 1) / PART_PAD * PART_PAD;
}

/* Columns of open sums, attention_stride() of the host. */
HOST_DEVICE int sum_columns(int dv)
{
  return (dv + 15) / 16 * 16;
}

/* Columns of q and k, with zeros behind. */
HOST_DEVICE int padded_head(int d)
{
  return (d + 3) / 4 * 4;
}

/* attention_tile: positions of values in a stage. */
HOST_DEVICE int tile_positions(int dv)
{
  int columns = part_columns(dv);
  return columns <= 64 ? 64 : columns <= 128 ? 32 : 16;
}

/* Queries, two stages, weights of 32 positions. */
HOST_DEVICE int tile_shared_bytes(int d)
{
  return 4 * (padded_head(d) * TILE_ROWS + 2 * TILE_STAGE + TILE_ROWS * 32);
}

/* attention_few: bytes from a position to the next.  A copy that begins within a sector of 32 bytes
 * reads two, so both are multiples of it; of keys an odd one, so that few of eight lanes, each with
 * a position of its own, meet in a bank. */
HOST_DEVICE int few_value_pitch(int columns, int type)
{
  return (columns * cells_bytes(type) + 31) / 32 * 32;
}

HOST_DEVICE int few_key_pitch(int columns, int type)
{
  return (few_value_pitch(columns, type) / 32 | 1) * 32;
}

/* The rows that it is compiled for. */
HOST_DEVICE int few_rows(int rows)
{
  return rows <= 1 ? 1 : rows <= 2 ? 2 : rows <= 4 ? 4 : FEW_ROWS;
}

/* Blocks a multiprocessor, at most: with all stages there are few, and they have more registers. */
HOST_DEVICE int few_blocks(int dv, int rows, int stages)
{
  return dv > 128 || stages == FEW_STAGES ? 2 : rows <= 4 ? 5 : 4;
}

/* Stages of keys and values, cells, queries, products of two blocks, weights, what rows have and
 * see. */
HOST_DEVICE int few_shared_bytes(int d, int dv, int type, int rows, int stages)
{
  int pitches = few_key_pitch(d, type) + few_value_pitch(dv, type),
      numbers = 16 / cells_bytes(type);
  return stages * WALK_BLOCK * pitches + 4 * WALK_SHARD +
         4 * rows * ((d + numbers - 1) / numbers * numbers + 3 * WALK_BLOCK + 5);
}

#endif
