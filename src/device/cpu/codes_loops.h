/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops for the codes of rows, as a table for each instruction set: Gram matrices, factors,
 * substitution.
 *
 * Floor: device.
 *
 * New rows of a factor are made in chunks of CODES_CHUNK, one row per lane. */
#ifndef DEVICE_CPU_CODES_LOOPS_H
#define DEVICE_CPU_CODES_LOOPS_H

#include "model/codes.h"

enum { CODES_CHUNK = 32, GRAM_BLOCK = 8, GRAM_COLUMNS = 64 };

/* Gram entries of a chunk.  vector[8 blocks] has the vectors before the chunk and, from block
 * `first` on, the vectors of the chunk.  Both are padded with zero vectors to multiples of
 * GRAM_BLOCK. */
struct gram_job {
  const float *const *vector;
  const float *row;
  idx blocks, first, p;
  real *g; /* [8 blocks][CODES_CHUNK]: g[k][i] is G of vector k and vector i of the chunk (N.4) */
  real *b; /* [CODES_CHUNK] of (N.4) */
  real *pack; /* [blocks + 4][GRAM_COLUMNS][8] workspace */
};

/* Rows old .. old + count - 1 of a factor, packed by rows (N.5). */
struct factor_job {
  idx old, count; /* count <= CODES_CHUNK */
  real rho;
  real *a;   /* [..][CODES_CHUNK] g of gram_job; overwritten */
  real *b;   /* [CODES_CHUNK] overwritten */
  real *l;   /* row i begins at i (i + 1) / 2; rows before old are read */
  real *y;   /* [old + count]; NULL: not wanted */
  idx *kept; /* [old + count] results of the rank test; the first `old` of them are read */
};

/* The nonnegative problem of a row of m vectors (N.5n).  stride: m rounded up to a multiple of
 * CODES_CHUNK. */
struct nonnegative_work {
  idx *in, *try_in, *refused; /* [m] flags: in the set, in the trial set, refused */
  idx *member, *kept;         /* [m] vectors of the set that is being solved; the rank test */
  real *a, *b, *l, *y, *back; /* arguments of factor() and back() */
  real *packed, *z, *try_x;   /* [m] */
  real *slope, *size;         /* [stride] */
};
struct nonnegative_job {
  idx m, stride;
  real rho;
  const real *g;   /* [m][stride] the whole Gram matrix (N.4) */
  const real *b;   /* [m] */
  const idx *kept; /* [m] vectors that the rank test kept */
  real *codes;     /* [m] written */
  const struct nonnegative_work *work;
};

struct codes_loops {
  void (*gram)(const struct gram_job *job);
  void (*factor)(const struct factor_job *job);
  /* codes[m] <- back substitution; work[m + 8] is workspace */
  void (*back)(const real *l, const real *y, const idx *kept, idx m, real *codes, real *work);
  void (*nonnegative)(const struct nonnegative_job *job);
  void (*residual)(const float *row, const float *const *vector, idx m, idx p, const real *codes,
                   float *out);
  /* all of *q except nonzero; codes[m]: the stored codes, widened; work[2 p] is workspace */
  void (*quality)(const float *row, const float *const *vector, idx m, idx p, const real *codes,
                  real *work, struct row_quality *q);
};

#endif
