/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of codes of one instruction set, as a table: Gram matrices, factors, substitution.
 *
 * Floor: device.
 *
 * New rows of a factor are made CODES_CHUNK at a time, one row a lane. */
#ifndef DEVICE_CPU_CODES_LOOPS_H
#define DEVICE_CPU_CODES_LOOPS_H

#include "model/codes.h"

enum { CODES_CHUNK = 32, GRAM_BLOCK = 8, GRAM_COLUMNS = 64 };

/* Gram entries of a chunk.  vector[8 blocks] holds the vectors before the chunk, padded with a zero
 * vector to a multiple of GRAM_BLOCK, then the chunk's, from block `first` on, padded too. */
struct gram_job {
  const float *const *vector;
  const float *row;
  idx blocks, first, p;
  real *g;    /* [8 blocks][CODES_CHUNK]: g[k][i] of vector k and row i of the chunk (N.4) */
  real *b;    /* [CODES_CHUNK] */
  real *pack; /* [blocks + 4][GRAM_COLUMNS][8], work */
};

/* Rows old .. old + count - 1 of a factor, packed by rows (N.5). */
struct factor_job {
  idx old, count; /* count <= CODES_CHUNK */
  real rho;
  real *a;   /* [..][CODES_CHUNK] gram_job's g; overwritten */
  real *b;   /* [CODES_CHUNK] overwritten */
  real *l;   /* row i begins at i (i + 1) / 2; rows before old are read */
  real *y;   /* [old + count]; NULL: not wanted */
  idx *kept; /* [old + count] what the rank test keeps; before old it is read */
};

/* The nonnegative problem of a row of m vectors (N.5n).  stride: m rounded up to a multiple of
 * CODES_CHUNK. */
struct nonnegative_work {
  idx *in, *try_in, *refused; /* [m] sets */
  idx *member, *kept;         /* [m] of the set that is being solved */
  real *a, *b, *l, *y, *back; /* factor_job's and back()'s */
  real *packed, *z, *try_x;   /* [m] */
  real *slope, *size;         /* [stride] */
};
struct nonnegative_job {
  idx m, stride;
  real rho;
  const real *g;   /* [m][stride] the whole Gram matrix (N.4) */
  const real *b;   /* [m] */
  const idx *kept; /* [m] what the rank test kept */
  real *codes;     /* [m] written */
  const struct nonnegative_work *work;
};

struct codes_loops {
  void (*gram)(const struct gram_job *job);
  void (*factor)(const struct factor_job *job);
  /* codes[m] <- back substitution; work[m + 8] */
  void (*back)(const real *l, const real *y, const idx *kept, idx m, real *codes, real *work);
  void (*nonnegative)(const struct nonnegative_job *job);
  void (*residual)(const float *row, const float *const *vector, idx m, idx p, const real *codes,
                   float *out);
  /* all of *q but nonzero; codes[m] as stored, widened; work[2 p] */
  void (*quality)(const float *row, const float *const *vector, idx m, idx p, const real *codes,
                  real *work, struct row_quality *q);
};

#endif
