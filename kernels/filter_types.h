/* SPDX-License-Identifier: BSD-3-Clause
 * What launchers and kernels of the certified filter agree on (doc/certified.md).  C11 that is also
 * CUDA C++.
 *
 * Floor: kernels.  Includes plan.h alone.
 *
 * Short operands are fp16, in units that are powers of two.  They stand as [tile][stage][item][64
 * columns], 128 bytes an item of a stage, whose 16-byte pieces are permuted: piece c stands at
 * c ^ (item % 8).  So a stage is one piece of memory without bank conflicts.
 *
 * An item of a tile of atoms is a vector.  Frames are padded to a power of two of vectors, and
 * vector m of frame f stands at item filter_item(): one thread of the product then has a frame's
 * scores.  Frames are not in the order of their slots: position i has slot i turn mod slots, so
 * that the first positions are a sample of all, and neighbours among atoms are far apart. */
#ifndef FILTER_TYPES_H
#define FILTER_TYPES_H

#include "plan.h"

enum {
  FILTER_WARPS = 8,      /* that multiply, in a block of filter: 16 rows each */
  FILTER_ROWS = 128,     /* rows a tile */
  FILTER_DEPTH = 64,     /* columns a stage */
  FILTER_ITEM = 128,     /* bytes of an item of a stage */
  FILTER_HITS = 32,      /* that a lane has room for in a tile */
  FILTER_PEAKS = 32,     /* sampled sizes kept of a row and a tile */
  FILTER_ATOM_POWER = 8, /* atoms are scaled by 2^8 */
  FILTER_ROW_POWER = 6,  /* rows to a largest magnitude in [2^6, 2^7) */
  FILTER_LOST = 1 << 30, /* length of a list that lost some */
  FILTER_ROW_WARPS = 8,  /* rows a block of the kernels that have a warp a row */
  CHAIN_WARPS = 4        /* of a block of chains */
};

/* One compiled form of filter.cu; its members are the -D options of the same names. */
struct filter_form {
  int wgmma;   /* WGMMA: capability 9.0, else mma.sync */
  int frame;   /* FRAME: vectors a frame, padded: 1, 2, 4 or 8 */
  int sample;  /* SAMPLE: keep peaks, not candidates */
  int vectors; /* VECTORS: items of an atom tile */
  int stages;  /* STAGES */
};

PLAN struct filter_form filter_form_of(int wgmma, int d, int sample)
{
  struct filter_form f = {wgmma, 1, sample, wgmma ? 256 : 128, wgmma ? 4 : 2};
  while (f.frame < d) f.frame *= 2;
  return f;
}

PLAN int filter_threads(int wgmma)
{
  return FILTER_WARPS * WARP + (wgmma ? 128 : 0);
}

/* Dynamic shared memory of a block of filter: stages, hits, barriers, and room to align. */
PLAN int filter_shared_bytes(int vectors, int stages)
{
  return stages * (FILTER_ROWS + vectors) * FILTER_ITEM + FILTER_WARPS * WARP * FILTER_HITS * 4 +
         2 * 8 * stages + 1024;
}

/* Stages of an item. */
PLAN int filter_stages(int p)
{
  return (p + FILTER_DEPTH - 1) / FILTER_DEPTH;
}

/* Where vector m of frame f of a tile stands: scores 2 q and 2 q + 1 of every eight items belong to
 * the threads q of a quad. */
PLAN int filter_item(int frame, int f, int m)
{
  return frame == 1 ? f : 8 * (frame / 2 * (f / 4) + m / 2) + 2 * (f % 4) + m % 2;
}

/* Byte of column c of an item within the stages of a tile of so many items. */
PLAN long long filter_byte(int items, int item, int c)
{
  return ((long long)(c / FILTER_DEPTH) * items + item) * FILTER_ITEM +
         ((c % FILTER_DEPTH / 8) ^ (item % 8)) * 16 + c % 8 * 2;
}

/* Largest norms of the frames on the device, and of what rounding took from them: bits of f32. */
struct filter_most {
  unsigned norm, error;
};

struct halve_args {
  const float *in;          /* [..][d][pitch] */
  char *out;                /* tiles */
  int frames, turn;         /* frame i of out is frame i turn mod frames of in */
  int padded;               /* frames written, zeros from `frames` on */
  int d, p, pitch, items;   /* items: of a tile */
  int frame;                /* as in struct filter_form */
  struct filter_most *most; /* raised; 0: not wanted */
};

/* Why a row goes without the filter; as enum filter_path of device/device.h. */
enum { PATH_CERTIFIED, PATH_LIST, PATH_SCORE, PATH_GUESS, PATH_SMALL, PATHS };

struct filter_totals {
  int pairs;       /* of certified rows, whether there is room or not */
  int most;        /* of one row */
  int rows[PATHS]; /* by the path that their lists said */
  int crowded;     /* certified ones without room for their pairs, which take the exact path */
  int no_room;     /* pairs of those */
  int left;        /* rows for the exact path */
};

struct filter_pair {
  int row, slot;
};

struct filter_args {
  const float *x;      /* [n][p] */
  const float *frames; /* [slots][d][pitch] */
  const int *atom_of;  /* [slots] global numbers */
  const int *excluded; /* as in struct route_args */
  int excluded_count, excluded_stride;
  int n, slots, turn, p, pitch, d, take;
  char *rows;        /* short, [row_tiles] */
  const char *atoms; /* short, [atom_tiles], the sample first */
  int stages;        /* of an item */
  int row_tiles, atom_tiles, blocks;
  const struct filter_most *most;
  double gamma;     /* (C.8) */
  float less, high; /* for tests: part of the bound left out, of the guess added; 0 is right */
  float *reach;     /* [n] bound, in units of the row's products */
  float *least;     /* [rows of all tiles] the guess: sizes below are not listed */
  int *path;        /* [n] */
  float *peaks;     /* [rows of all tiles][peaks_row] of the sample */
  int peaks_row;    /* FILTER_PEAKS for each of its tiles */
  int peak_rank;    /* which of them is the guess, from 1 */
  int capacity;     /* of a list */
  int *counts;      /* [rows of all tiles], zeros before */
  struct candidate *lists;   /* [rows of all tiles][capacity] size and position */
  struct filter_pair *pairs; /* [pairs_room] what is evaluated */
  int pairs_room;
  float *values;                /* [pairs_room] exact */
  int *start, *held;            /* [n] a row's pairs */
  struct filter_totals *totals; /* zeros before */
  int *left;                    /* [n] rows for the exact path, in any order */
  struct candidate *out;        /* [n][take] of certified rows, in order (N.2) */
};

#endif
