/* SPDX-License-Identifier: BSD-3-Clause
 * What launchers and kernels of the certified filter agree on (doc/certified.md).  C11 that is also
 * CUDA C++.
 *
 * Floor: kernels.  Includes forms.h alone.
 *
 * Operands of the matrix unit are fp16, in units that are powers of two.  They stand as
 * [tile][stage][item][64 columns], 128 bytes an item of a stage, whose 16-byte pieces are permuted:
 * piece c stands at c ^ (item % 8).  So a stage is one piece of memory without bank conflicts.
 *
 * An item of a tile of atoms is a vector.  Frames are padded to a power of two of vectors, and
 * vector m of frame f stands at item screen_item(): one thread of the product then has a frame's
 * scores.  Frames are not in the order of their slots: position i has slot i turn mod slots, so
 * that the first positions are a sample of all, and neighbours among atoms are far apart. */
#ifndef SCREEN_TYPES_H
#define SCREEN_TYPES_H

#include "forms.h"

enum {
  SCREEN_WARPS = 8,      /* that multiply, in a block of screen.cu: 16 rows each */
  SCREEN_ROWS = 128,     /* rows a tile */
  SCREEN_DEPTH = 64,     /* columns a stage */
  SCREEN_ITEM = 128,     /* bytes of an item of a stage */
  SCREEN_HITS = 32,      /* that a lane can hold of a tile */
  SCREEN_PEAKS = 32,     /* sampled sizes kept of a row and a tile */
  SCREEN_ATOM_POWER = 8, /* atoms are scaled by 2^8 */
  SCREEN_ROW_POWER = 6,  /* rows to a largest magnitude in [2^6, 2^7) */
  SCREEN_LOST = 1 << 30, /* length of a list that lost some */
  SCREEN_ROW_WARPS = 8,  /* rows a block of the kernels that have a warp a row */
  RESCORE_WARPS = 4      /* of a block of rescore.cu */
};

/* One compiled form of screen.cu; its members are the -D options of the same names. */
struct screen_form {
  int wgmma;   /* WGMMA: capability 9.0, else mma.sync */
  int frame;   /* FRAME: vectors a frame, padded: 1, 2, 4 or 8 */
  int sample;  /* SAMPLE: keep peaks and sizes, not candidates */
  int vectors; /* VECTORS: items of an atom tile */
  int stages;  /* STAGES */
};

HOST_DEVICE struct screen_form screen_form_of(int wgmma, int d, int sample)
{
  struct screen_form f = {wgmma, 1, sample, wgmma ? 256 : 128, wgmma ? 4 : 2};
  while (f.frame < d) f.frame *= 2;
  return f;
}

HOST_DEVICE int screen_threads(int wgmma)
{
  return SCREEN_WARPS * WARP + (wgmma ? 128 : 0);
}

/* Dynamic shared memory of a block of screen.cu: stages, hits, barriers, and bytes to align. */
HOST_DEVICE int screen_shared_bytes(int vectors, int stages)
{
  return stages * (SCREEN_ROWS + vectors) * SCREEN_ITEM + SCREEN_WARPS * WARP * SCREEN_HITS * 4 +
         2 * 8 * stages + 1024;
}

/* Stages of an item. */
HOST_DEVICE int screen_stages(int p)
{
  return (p + SCREEN_DEPTH - 1) / SCREEN_DEPTH;
}

/* Where vector m of frame f of a tile stands: scores 2 q and 2 q + 1 of every eight items belong to
 * the threads q of a quad. */
HOST_DEVICE int screen_item(int frame, int f, int m)
{
  return frame == 1 ? f : 8 * (frame / 2 * (f / 4) + m / 2) + 2 * (f % 4) + m % 2;
}

/* Byte of column c of an item within the stages of a tile of so many items. */
HOST_DEVICE long long screen_byte(int items, int item, int c)
{
  return ((long long)(c / SCREEN_DEPTH) * items + item) * SCREEN_ITEM +
         ((c % SCREEN_DEPTH / 8) ^ (item % 8)) * 16 + c % 8 * 2;
}

/* Largest norms of the frames on the device, and of what rounding took from them: bits of f32. */
struct screen_max_norms {
  unsigned norm, error;
};

struct to_f16_args {
  const float *in;                /* [..][d][pitch] */
  char *out;                      /* tiles */
  int frames, turn;               /* frame i of out is frame i turn mod frames of in */
  int padded;                     /* frames written, zeros from `frames` on */
  int d, p, pitch, items;         /* items: of a tile */
  int frame;                      /* as in struct screen_form */
  struct screen_max_norms *norms; /* raised; 0: not wanted */
};

/* Why a row goes without the filter; as enum screen_path of device/counts.h. */
enum { PATH_CERTIFIED, PATH_LIST, PATH_SCORE, PATH_ESTIMATE, PATH_SMALL, PATHS };

struct screen_totals {
  int pairs;         /* of certified rows, also of those that the array of pairs cannot hold */
  int max_pairs;     /* of one row */
  int rows[PATHS];   /* by the path that their lists said */
  int crowded;       /* certified rows whose pairs did not fit; they take the direct path */
  int crowded_pairs; /* pairs of those */
  int left;          /* rows for the direct path */
};

struct screen_pair {
  int row, slot;
};

/* What tests do against the proof (test_hooks.h); zeros are right. */
struct screen_test {
  float bound;     /* the part of every bound that is left out */
  float threshold; /* the part that is added to every threshold estimate */
};

struct screen_args {
  const float *x;      /* [n][p] */
  const float *frames; /* [slots][d][pitch] */
  const int *atom_of;  /* [slots] global numbers */
  const int *excluded; /* as in struct route_args */
  int excluded_count, excluded_stride;
  int n, slots, turn, p, pitch, d, top_k;
  int positive;      /* values and sizes are those of positive parts (N.2); d is 1 */
  char *rows;        /* fp16 tiles, [row_tiles] */
  const char *atoms; /* fp16 tiles of all, the sample first */
  int stages;        /* of an item */
  int row_tiles, atom_tiles, blocks;
  int first_tile; /* of atoms, from which on a product takes atom_tiles */
  const struct screen_max_norms *norms;
  double gamma;              /* (C.8) */
  float *reach;              /* [n] bound, in units of the row's products */
  float *threshold;          /* [rows of all tiles] the estimate: sizes below are not listed */
  int *path;                 /* [n] */
  float *peaks;              /* [rows of all tiles][peaks_row] of the sample */
  int peaks_row;             /* SCREEN_PEAKS for each of its tiles */
  float *sizes;              /* [rows of all tiles][sizes_row] of the sample, if they are kept */
  int sizes_row;             /* all of them; 0: they are not kept */
  int peak_rank;             /* which of them gives the estimate, from 1 */
  int capacity;              /* of a list */
  int *counts;               /* [rows of all tiles], zeros before */
  struct candidate *lists;   /* [rows of all tiles][capacity] size and position */
  struct screen_pair *pairs; /* [pairs_capacity] what is evaluated */
  int pairs_capacity;
  float *values;                /* [pairs_capacity] exact */
  int first_column, end_column; /* whose terms a launch of rescore.cu adds */
  int *start, *held;            /* [n] a row's pairs */
  struct screen_totals *totals; /* zeros before */
  int *left;                    /* [n] rows for the direct path, in any order */
  struct candidate *out;        /* [n][top_k] of certified rows, in order (N.2) */
  struct screen_test test;
};

#endif
