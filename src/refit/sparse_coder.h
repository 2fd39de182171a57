/* SPDX-License-Identifier: BSD-3-Clause
 * Coding: rows that stay with a device are routed over a dictionary and coded (N.1 to N.5n), again
 * and again while the dictionary changes.
 *
 * Floor: refit.  Every rank has the whole dictionary and rows of its own, or all have the same rows
 * and share the work (sparse_coder_join()).  Nothing here is collective but sparse_coder_join(),
 * what it says, and coded_metrics(). */
#ifndef REFIT_SPARSE_CODER_H
#define REFIT_SPARSE_CODER_H

#include "base/phase.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/results.h"

struct sparse_coder_shape {
  idx k, d, p, s, rounds; /* s: atoms a row */
  int nonnegative;        /* codes are at least 0; d = 1 */
  idx threads;
  const char *kind, *variant, *filter; /* as struct device_options; kind NULL: cpu */
  int local_rank;
  gidx rows;   /* of a struct coded, at most */
  double work; /* multiply-adds of the whole job, for kind auto */
};

struct sparse_coder {
  struct sparse_coder_shape shape;
  struct device device; /* holds all atoms */
  float *table;         /* [k][d][p], borrowed: the dictionary */
  idx piece;            /* rows at a time */
  struct buffer atoms;  /* the table on a device that does not keep it as it was put */
  struct buffer lists, power, residual, state;
  struct buffer near, score;       /* of a piece of the atoms */
  struct phase route, codes, copy; /* so far; copies are of tables to the device and results back */
  struct comm *share;              /* borrowed; NULL: rows are this rank's */
  idx *counts;                     /* [ranks] rows of each in a run; owned */
  idx rows_at_once
      [2]; /* sparse_coder_rows_at_once() without and with routing, the same on all ranks */
};

/* Rows and what became of them.  On a GPU the arrays are its own, and the host's sides are what
 * coded_get() brought. */
struct coded {
  idx n;
  gidx first;            /* global number of the first */
  struct buffer x;       /* float [n][p] */
  struct buffer atoms;   /* idx [n][s] supports */
  struct buffer score;   /* float [n][s] */
  struct buffer codes;   /* float [n][s][d] */
  struct buffer quality; /* struct row_quality [n] */
};

/* device_warm() for a coder of this shape. */
void sparse_coder_warm(const struct sparse_coder_shape *shape);

/* ERR_DEVICE, ERR_MEMORY as device_open().  sparse_coder_close() is safe on a zeroed struct. */
int sparse_coder_open(struct sparse_coder *w, const struct sparse_coder_shape *shape);
void sparse_coder_close(struct sparse_coder *w);
/* From here on all ranks of c have the same rows, and sparse_coder_run() and sparse_coder_solve()
 * are collective: each codes its share, and all get what became of all.  Joins GPUs as
 * comm_devices_open(); before sparse_coder_close() every rank calls sparse_coder_leave(), which is
 * safe where nothing is shared. */
int sparse_coder_join(struct sparse_coder *w, struct comm *c);
void sparse_coder_leave(struct sparse_coder *w);

/* table[k][d][p], which stays where it is, is the dictionary from now on. */
int sparse_coder_put(struct sparse_coder *w, float *table);

/* Arrays around x[n][p], atoms[n][s] and score[n][s] of the caller, which stay until coded_close();
 * the rows go to the device. */
int coded_open(struct sparse_coder *w, struct coded *rows, idx n, gidx first, float *x, idx *atoms,
               float *score);
void coded_close(struct sparse_coder *w, struct coded *rows);

/* near[count] <- the atom other than itself with which each of the atoms first .. first + count - 1
 * has the largest score (N.2), or -1, and score[count] <- that score.  d = 1. */
int sparse_coder_nearest(struct sparse_coder *w, idx first, idx count, idx *near, float *score);

/* The rows' supports, and codes [n][s][d] that are float32 numbers, go to the device. */
int coded_put(struct sparse_coder *w, struct coded *rows, const real *codes);

/* Find the supports and scores of n rows from `first` on in rounds, then their codes with the
 * penalty rho, rounded, and their quality; all on the device.  ERR_INPUT names the first score that
 * is not finite. */
int sparse_coder_run(struct sparse_coder *w, struct coded *rows, idx first, idx n, real rho);

/* The codes and their quality alone, on the supports that the device has. */
int sparse_coder_solve(struct sparse_coder *w, struct coded *rows, idx first, idx n, real rho);

/* Seconds that so many rows take at most in one or the other, very roughly; rows that take one, at
 * least a piece. */
double sparse_coder_seconds(const struct sparse_coder *w, gidx rows, int routes);
idx sparse_coder_rows_at_once(const struct sparse_coder *w, int routes);

/* Bring some of it to the host. */
enum { CODED_SUPPORTS = 1, CODED_SCORES = 2, CODED_CODES = 4, CODED_QUALITY = 8, CODED_ALL = 15 };
int coded_get(struct sparse_coder *w, struct coded *rows, int what);

/* Fill in the metrics of fits of the rows of all ranks, m->n of them in sum blocks that are shared
 * out as refit_blocks_partition() does, from their quality on the host; tss, on rank 0: their total
 * sum of squares.  The metrics are rank 0's.  Collective. */
int coded_metrics(const struct coded *rows, struct comm *c, real tss, struct metrics *m);

/* *bytes <- what a coder and n rows take of the host's memory, run dry. */
int sparse_coder_bytes(const struct sparse_coder_shape *shape, gidx n, gidx *bytes);

/* *dev <- a dry device (device.h) that has counted what a coder takes with rows in two structs of n
 * and held rows, and at least with its dictionary. */
int sparse_coder_device_dry(const struct sparse_coder_shape *shape, gidx n, gidx held,
                            struct device *dev);

/* device_memory() for a coder of this shape. */
int sparse_coder_device_memory(const struct sparse_coder_shape *shape, int local_size, gidx *bytes);

#endif
