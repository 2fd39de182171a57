/* SPDX-License-Identifier: BSD-3-Clause
 * Arguments, layouts and sizes that launchers and kernels of the certified filter share
 * (doc/certified.md).  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes forms.h alone.
 *
 * Operands of the matrix unit are fp16, scaled by powers of two.  They are stored as
 * [tile][stage][item][64 columns], so a stage is contiguous.  An item has 128 bytes in a stage.
 * Its 16-byte pieces are swizzled, so that they are read without bank conflicts: piece c is stored
 * at c ^ (item % 8).
 *
 * An item of an atom tile is a vector.  Frames are padded to a power of two of vectors.  Vector m
 * of frame f of a tile is item screen_item(), so that one thread computes the scores of a row with
 * all vectors of a frame.  Frames are not in the order of their slots: position i has slot
 * (i * turn) % slots.  In jobs, turn is golden_stride(slots) (base/rng.h).  So the first positions
 * are a sample of all, and neighbouring slots are far apart. */
#ifndef SCREEN_TYPES_H
#define SCREEN_TYPES_H

#include "forms.h"

enum {
  SCREEN_WARPS = 8,      /* warps of a block of screen.cu that multiply, 16 rows each */
  SCREEN_ROWS = 128,     /* rows per tile */
  SCREEN_DEPTH = 64,     /* columns per stage */
  SCREEN_ITEM = 128,     /* bytes of an item in a stage */
  SCREEN_HITS = 32,      /* words for the hits of a lane in a tile; MAX_HITS of screen.h is less */
  SCREEN_PEAKS = 32,     /* sampled sizes that are kept per row and tile */
  SCREEN_ATOM_POWER = 8, /* atoms are scaled by 2^8 */
  SCREEN_ROW_POWER = 6,  /* rows are scaled to a largest magnitude in [2^6, 2^7) */
  SCREEN_LOST = 1 << 30, /* length of a list that lost entries */
  SCREEN_ROW_WARPS = 8,  /* rows of a block, in kernels with one warp per row */
  RESCORE_WARPS = 4      /* warps of a block of rescore.cu */
};

/* One compiled form of screen.cu; its members are the -D options of the same names. */
struct screen_form {
  int wgmma;   /* WGMMA: 1: wgmma (9.0); 0: mma.sync */
  int frame;   /* FRAME: vectors per frame, padded: 1, 2, 4 or 8 */
  int sample;  /* SAMPLE: 1: keep peaks and sizes, not candidates */
  int vectors; /* VECTORS: items of an atom tile */
  int stages;  /* STAGES: stages in shared memory at a time (not screen_stages()) */
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

/* Dynamic shared memory of a block of screen.cu: stages, hits, barriers, and bytes for
 * alignment. */
HOST_DEVICE int screen_shared_bytes(int vectors, int stages)
{
  return stages * (SCREEN_ROWS + vectors) * SCREEN_ITEM + SCREEN_WARPS * WARP * SCREEN_HITS * 4 +
         2 * 8 * stages + 1024;
}

/* The number of stages of an item. */
HOST_DEVICE int screen_stages(int p)
{
  return (p + SCREEN_DEPTH - 1) / SCREEN_DEPTH;
}

/* The item of vector m of frame f of a tile.  Of every eight items, thread q of a quad gets the
 * scores of items 2 q and 2 q + 1. */
HOST_DEVICE int screen_item(int frame, int f, int m)
{
  return frame == 1 ? f : 8 * (frame / 2 * (f / 4) + m / 2) + 2 * (f % 4) + m % 2;
}

/* Byte offset of column c of an item, in the stages of a tile of `items` items. */
HOST_DEVICE long long screen_byte(int items, int item, int c)
{
  return ((long long)(c / SCREEN_DEPTH) * items + item) * SCREEN_ITEM +
         ((c % SCREEN_DEPTH / 8) ^ (item % 8)) * 16 + c % 8 * 2;
}

/* The largest norms of the frames on the device, and of their rounding errors, as bits of f32. */
struct screen_max_norms {
  unsigned norm, error;
};

struct to_f16_args {
  const float *in;                /* [..][d][pitch] */
  char *out;                      /* tiles */
  int frames, turn;               /* frame i of out is frame (i * turn) % frames of in */
  int padded;                     /* frames that are written; those from `frames` on are zeros */
  int d, p, pitch, items;         /* items: of a tile */
  int frame;                      /* as in struct screen_form */
  struct screen_max_norms *norms; /* raised to the norms of these frames; 0: not wanted */
};

/* The path of a row, as enum screen_path of device/counts.h. */
enum { PATH_CERTIFIED, PATH_LIST, PATH_SCORE, PATH_ESTIMATE, PATH_SMALL, PATHS };

struct screen_totals {
  int pairs;         /* of certified rows, including those that did not fit in the array of pairs */
  int max_pairs;     /* the largest number for one row */
  int rows[PATHS];   /* rows for which prune.cu found this path */
  int crowded;       /* certified rows whose pairs did not fit; they take the direct path */
  int crowded_pairs; /* pairs of those rows */
  int left;          /* number of rows for the direct path */
};

struct screen_pair {
  int row, slot;
};

/* Faults that tests set against the proof (test_hooks.h); zeros change nothing. */
struct screen_test {
  float bound;     /* the fraction of every bound that is left out */
  float threshold; /* the fraction that is added to every threshold estimate */
};

struct screen_args {
  const float *x;      /* [n][p] */
  const float *frames; /* [slots][d][pitch] */
  const int *atom_of;  /* [slots] global numbers */
  const int *excluded; /* as in struct route_args */
  int excluded_count, excluded_stride;
  int n, slots, turn, p, pitch, d, top_k;
  int positive;      /* 1: values and sizes are those of positive parts (N.2); d is 1 */
  char *rows;        /* fp16 tiles, [row_tiles] */
  const char *atoms; /* fp16 tiles of all atoms; the first ones are the sample */
  int stages;        /* of an item */
  int row_tiles, atom_tiles, blocks;
  int first_tile; /* a product takes atom_tiles tiles of atoms from this one on */
  const struct screen_max_norms *norms;
  double gamma;              /* (C.8) */
  float *reach;              /* [n] error bounds, in units of the row's products */
  float *threshold;          /* [rows of all tiles] estimates; smaller sizes are not listed */
  int *path;                 /* [n] */
  float *peaks;              /* [rows of all tiles][peaks_row] of the sample */
  int peaks_row;             /* SCREEN_PEAKS for each tile of the sample */
  float *sizes;              /* [rows of all tiles][sizes_row] of the sample, if they are kept */
  int sizes_row;             /* all sizes of a row in the sample; 0: they are not kept */
  int peak_rank;             /* the rank, from 1, of the peak that gives the estimate */
  int capacity;              /* of a list */
  int *counts;               /* [rows of all tiles], zeroed before */
  struct candidate *lists;   /* [rows of all tiles][capacity] size and position */
  struct screen_pair *pairs; /* [pairs_capacity] pairs that get exact scores */
  int pairs_capacity;
  float *values;                /* [pairs_capacity] exact scores */
  int piece;                    /* columns that rescore.cu adds at a time, a multiple of 32; or p */
  int *start, *held;            /* [n] first pair of a row, and number of pairs */
  struct screen_totals *totals; /* zeroed before */
  int *left;                    /* [n] rows for the direct path, in any order */
  struct candidate *out;        /* [n][top_k] of certified rows, in the order of (N.2) */
  struct screen_test test;
};

#endif
