/* SPDX-License-Identifier: BSD-3-Clause
 * What launchers and kernels of the matrix unit's tier agree on (N.45).  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes triad_types.h alone.
 *
 * An operand is narrowed first: [tile][stage][line][128 bytes], lines being those along which the
 * result goes, zeros beyond the last line and depth.  The eight pieces of 16 bytes of a line are
 * permuted as wgmma.h says, so that a stage is one piece of memory without bank conflicts.  Where
 * there is wgmma, operands that are stored in 16 bits stay where they are, and tensor maps say how
 * boxes of them become stages. */
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
  TENSOR_WARPS = 8,  /* that multiply: 16 rows each */
  TENSOR_ROWS = 128, /* of a tile */
  TENSOR_ITEM = 128, /* bytes of a line of a stage */
  TENSOR_PIECES = 8, /* of 16 bytes, of an item */
  TENSOR_GROUP = 64, /* columns that a number of triad_args.maxima stands for */
  TENSOR_NARROW_THREADS = 256,
  TENSOR_BESIDE = 3,          /* warps that narrow beside a product */
  TENSOR_UNIT = 1024,         /* numbers that one of them narrows at a time */
  TENSOR_BESIDE_BYTES = 10240 /* its memory: two units, and a narrowed one */
};

/* One compiled form of tensor_product.cu or tensor_gradient.cu. */
struct tensor_form {
  int wgmma;   /* WGMMA: capability 9.0, else mma.sync */
  int vectors; /* VECTORS: columns of a tile */
  int stages;  /* STAGES */
  int cluster; /* CLUSTER: blocks whose tiles have the same columns, which each brings a part of */
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

/* Stages, barriers, what narrows beside, and bytes to align. */
HOST_DEVICE int tensor_shared_bytes(int vectors, int stages, int narrows)
{
  return stages * (TENSOR_ROWS + vectors) * TENSOR_ITEM + 2 * 8 * stages +
         (narrows ? TENSOR_BESIDE * TENSOR_BESIDE_BYTES : 0) + 1024;
}

/* Does a form narrow beside? */
HOST_DEVICE int tensor_narrows(int wgmma, int precision, int stored)
{
  return wgmma && !stored && precision != TENSOR_TF32;
}

/* Depths of a stage. */
HOST_DEVICE int tensor_depth(int precision)
{
  return precision == TENSOR_TF32 ? 32 : 64;
}

/* Lines of an operand in a box that is turned, and depths of any box. */
enum { TENSOR_BOX = 64 };

/* One operand: number (line, depth) is in[line * line + depth * depth], one stride being 1. */
struct tensor_narrow_args {
  const void *in; /* f32, or stored: as they are to be */
  char *out;
  long long line, depth; /* strides */
  int lines, depths;     /* that there are */
  int tiles, items;      /* items: lines of a tile */
  int stages;            /* of a tile */
  int is_stored;
  int is_aligned; /* depths are beside each other, lines at multiples of 16 bytes */
};

/* What a bulk copy knows of a matrix in memory, as the driver writes it. */
struct tensor_map {
  TENSOR_MAP_ALIGNED unsigned long long words[16];
};

/* The product or gradient of triad_args, whose a and b are not read. */
struct tensor_args {
  struct tensor_map rows_map, columns_map; /* STORED: of the operands */
  struct triad_args t;
  const char *rows, *columns;     /* else: narrowed ones */
  struct tensor_narrow_args next; /* rows that are narrowed beside; no tiles: none */
  int row_tiles, column_tiles, stages;
  int is_stored;  /* c has 16 bits a number, of PRECISION */
  int is_aligned; /* c may be written by pairs of f32, or eight stored numbers */
};

#endif
