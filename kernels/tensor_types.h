/* SPDX-License-Identifier: BSD-3-Clause
 * What launchers and kernels of the matrix unit's tier agree on (N.45).  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes triad_types.h alone.
 *
 * An operand is narrowed first: [tile][stage][line][128 bytes], lines being those along which the
 * result goes, zeros beyond the last line and depth.  The eight pieces of 16 bytes of a line are
 * permuted as wgmma.h says, so that a stage is one piece of memory without bank conflicts. */
#ifndef TENSOR_TYPES_H
#define TENSOR_TYPES_H

#include "triad_types.h"

/* -D PRECISION; enum precision of model/precision.h. */
enum { TENSOR_BF16 = 1, TENSOR_F16 = 2, TENSOR_TF32 = 3 };

enum {
  TENSOR_WARPS = 8,  /* that multiply: 16 rows each */
  TENSOR_ROWS = 128, /* of a tile */
  TENSOR_ITEM = 128, /* bytes of a line of a stage */
  TENSOR_PIECES = 8, /* of 16 bytes, of an item */
  TENSOR_GROUP = 64, /* columns that a number of triad_args.maxima stands for */
  TENSOR_NARROW_THREADS = 256
};

/* One compiled form of tensor_product.cu or tensor_gradient.cu. */
struct tensor_form {
  int wgmma;   /* WGMMA: capability 9.0, else mma.sync */
  int vectors; /* VECTORS: columns of a tile */
  int stages;  /* STAGES */
};

HOST_DEVICE struct tensor_form tensor_form_of(int wgmma, int is_gradient)
{
  struct tensor_form product = {wgmma, wgmma ? 256 : 128, wgmma ? 4 : 2};
  struct tensor_form gradient = {wgmma, wgmma ? 128 : 64, wgmma ? 6 : 2}; /* with sums in f64 */
  return is_gradient ? gradient : product;
}

HOST_DEVICE int tensor_threads(int wgmma)
{
  return TENSOR_WARPS * 32 + (wgmma ? 128 : 0);
}

/* Stages, barriers, and bytes to align. */
HOST_DEVICE int tensor_shared_bytes(int vectors, int stages)
{
  return stages * (TENSOR_ROWS + vectors) * TENSOR_ITEM + 2 * 8 * stages + 1024;
}

/* Depths of a stage. */
HOST_DEVICE int tensor_depth(int precision)
{
  return precision == TENSOR_TF32 ? 32 : 64;
}

/* One operand: number (line, depth) is in[line * lines + depth * depths], one stride being 1. */
struct tensor_narrow_args {
  const float *in;
  char *out;
  long long line, depth; /* strides */
  int lines, depths;     /* that there are */
  int tiles, items;      /* items: lines of a tile */
  int stages;            /* of a tile */
  int is_aligned;        /* depths are beside each other, lines at multiples of 16 bytes */
};

/* The product or gradient of triad_args, whose a and b are not read. */
struct tensor_args {
  struct triad_args t;
  const char *rows, *columns; /* narrowed operands */
  int row_tiles, column_tiles, stages;
  int is_aligned; /* c may be written by pairs */
};

#endif
