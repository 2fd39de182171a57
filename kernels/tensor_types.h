/* SPDX-License-Identifier: BSD-3-Clause
 * Arguments, layouts and sizes that launchers and kernels of products by the matrix unit share
 * (N.45).  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes triad_types.h alone.
 *
 * An operand is narrowed first (rounded to the precision), and stored as
 * [tile][stage][line][128 bytes].  Lines of the left operand are its rows, and lines of the right
 * one its columns.  The sums run over the depth, which is the other direction.  Missing lines and
 * depths are zeros.  The eight 16-byte pieces of a line are swizzled as wgmma.h says, so that a
 * stage is contiguous and has no bank conflicts.  With wgmma, if both operands are stored in 16
 * bits and tensor maps can describe them, their boxes are copied to stages instead. */
#ifndef TENSOR_TYPES_H
#define TENSOR_TYPES_H

#include "triad_types.h"

#ifdef __CUDACC__
#define TENSOR_MAP_ALIGNED alignas(64)
#else
#define TENSOR_MAP_ALIGNED _Alignas(64)
#endif

/* -D PRECISION; enum precision of model/precision.h. */
enum { TENSOR_BF16 = 1, TENSOR_F16 = 2, TENSOR_TF32 = 3 };

enum {
  TENSOR_WARPS = 8,  /* warps that multiply, 16 rows each */
  TENSOR_ROWS = 128, /* rows of a tile */
  TENSOR_ITEM = 128, /* bytes of a line of a stage */
  TENSOR_PIECES = 8, /* pieces of 16 bytes in a line */
  TENSOR_GROUP = 64, /* columns for each number of triad_args.maxima */
  TENSOR_NARROW_THREADS = 256,
  TENSOR_BESIDE = 3,          /* warps that narrow during a product */
  TENSOR_UNIT = 1024,         /* numbers that one of them narrows at a time */
  TENSOR_BESIDE_BYTES = 10240 /* shared memory of one of them: two units, and a narrowed one */
};

/* One compiled form of tensor_product.cu or tensor_gradient.cu. */
struct tensor_form {
  int wgmma;   /* WGMMA: 1: wgmma (9.0); 0: mma.sync */
  int vectors; /* VECTORS: columns of a tile */
  int stages;  /* STAGES */
  int cluster; /* CLUSTER: blocks whose tiles have the same columns; each copies a part of them */
};

HOST_DEVICE struct tensor_form tensor_form_of(int wgmma, int is_gradient)
{
  struct tensor_form product = {wgmma, wgmma ? 256 : 128, wgmma ? 4 : 2, wgmma ? 2 : 1};
  struct tensor_form gradient = {wgmma, wgmma ? 128 : 64, wgmma ? 6 : 2, wgmma ? 2 : 1};
  return is_gradient ? gradient : product;
}

HOST_DEVICE int tensor_threads(int wgmma)
{
  return TENSOR_WARPS * 32 + (wgmma ? 128 : 0);
}

/* Shared memory: stages, barriers, memory of warps that narrow, and bytes for alignment. */
HOST_DEVICE int tensor_shared_bytes(int vectors, int stages, int narrows)
{
  return stages * (TENSOR_ROWS + vectors) * TENSOR_ITEM + 2 * 8 * stages +
         (narrows ? TENSOR_BESIDE * TENSOR_BESIDE_BYTES : 0) + 1024;
}

/* Do warps of this form narrow the next rows during a product (tensor_beside.h)? */
HOST_DEVICE int tensor_narrows(int wgmma, int precision, int stored)
{
  return wgmma && !stored && precision != TENSOR_TF32;
}

/* The depth of a stage. */
HOST_DEVICE int tensor_depth(int precision)
{
  return precision == TENSOR_TF32 ? 32 : 64;
}

/* Lines in a box of a transposed operand, and the depth of any box. */
enum { TENSOR_BOX = 64 };

/* An operand: number (line i, depth k) is in[i * line + k * depth]; one of the strides is 1. */
struct tensor_narrow_args {
  const void *in; /* f32, or already in the precision (is_stored) */
  char *out;
  long long line, depth; /* strides */
  int lines, depths;     /* how many there are */
  int tiles, items;      /* items: lines of a tile */
  int stages;            /* of a tile */
  int is_stored;
  int is_aligned; /* contiguous along the depth, with lines at multiples of 16 bytes */
};

/* A tensor map: the description of a matrix in memory for bulk copies, made by the driver. */
struct tensor_map {
  TENSOR_MAP_ALIGNED unsigned long long words[16];
};

/* The product or gradient of triad_args, whose members a and b are not read. */
struct tensor_args {
  struct tensor_map rows_map, columns_map; /* of the operands, if STORED */
  struct triad_args t;
  const char *rows, *columns;     /* otherwise the narrowed operands */
  struct tensor_narrow_args next; /* rows that are narrowed during the product; tiles = 0: none */
  int row_tiles, column_tiles, stages;
  int is_stored;  /* 1: c has 16 bits per number, of PRECISION */
  int is_aligned; /* 1: c may be written by pairs of f32, or by eight stored numbers */
};

#endif
