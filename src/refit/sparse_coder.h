/* SPDX-License-Identifier: BSD-3-Clause
 * Coding: rows that stay on a device are routed over a dictionary and coded (N.1 to N.5n),
 * repeatedly, while the dictionary changes.
 *
 * Floor: refit.  Every rank has the whole dictionary and rows of its own; or all have the same rows
 * and divide the work (sparse_coder_join()).  Only sparse_coder_join(), the functions it names, and
 * coded_metrics() are collective. */
#ifndef REFIT_SPARSE_CODER_H
#define REFIT_SPARSE_CODER_H

#include "base/phase.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/results.h"

struct sparse_coder_shape {
  idx k, d, p, s, rounds; /* s: atoms per row */
  int nonnegative;        /* codes are at least 0; d = 1 */
  idx threads;
  const char *kind, *variant, *filter; /* as in struct device_options; kind NULL: cpu */
  int local_rank;
  gidx rows;   /* largest number of rows of a struct coded */
  double work; /* multiply-adds of the whole job, for kind auto */
};

struct sparse_coder {
  struct sparse_coder_shape shape;
  struct device device; /* holds all atoms */
  float *table;         /* [k][d][p], borrowed: the dictionary */
  idx piece;            /* rows at a time */
  struct buffer atoms;  /* the table, on a device that does not keep it in its original form */
  struct buffer lists, power, residual, state;
  struct buffer near, score;       /* of sparse_coder_nearest(), for a piece of the atoms */
  struct phase route, codes, copy; /* so far; copy: tables to the device, and results back */
  struct comm *share;              /* borrowed: the ranks that divide the work; NULL: none do */
  idx *counts;                     /* [ranks] rows of each rank in a run; owned */
  /* Results of sparse_coder_rows_at_once() without and with routing, the same on all ranks. */
  idx rows_at_once[2];
};

/* Rows and their results.  On a GPU the arrays are on the device, and coded_get() brings them to
 * their host sides. */
struct coded {
  idx n;
  gidx first;            /* global number of the first row */
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
 * are collective: each rank codes its share, and all get all results.  Joins GPUs like
 * comm_devices_open().  Every rank that joined calls sparse_coder_leave() before
 * sparse_coder_close(); on other ranks the call does nothing. */
int sparse_coder_join(struct sparse_coder *w, struct comm *c);
void sparse_coder_leave(struct sparse_coder *w);

/* table[k][d][p], which must stay in place, is the dictionary from now on. */
int sparse_coder_put(struct sparse_coder *w, float *table);

/* Set up the arrays around the caller's x[n][p], atoms[n][s] and score[n][s], which must stay until
 * coded_close(); the rows are copied to the device. */
int coded_open(struct sparse_coder *w, struct coded *rows, idx n, gidx first, float *x, idx *atoms,
               float *score);
void coded_close(struct sparse_coder *w, struct coded *rows);

/* near[count] <- for each of the atoms first .. first + count - 1 the other atom with the largest
 * score (N.2), or -1; score[count] <- that score.  d = 1. */
int sparse_coder_nearest(struct sparse_coder *w, idx first, idx count, idx *near, float *score);

/* Copy the rows' supports to the device, and their codes[n][s][d], which must be float32
 * numbers. */
int coded_put(struct sparse_coder *w, struct coded *rows, const real *codes);

/* Find the supports and scores of rows first .. first + n - 1 in rounds; then their codes with the
 * penalty rho, rounded, and their quality; all on the device.  ERR_INPUT names the first score that
 * is not finite. */
int sparse_coder_run(struct sparse_coder *w, struct coded *rows, idx first, idx n, real rho);

/* Only the codes and their quality, on the supports that the device has. */
int sparse_coder_solve(struct sparse_coder *w, struct coded *rows, idx first, idx n, real rho);

/* sparse_coder_seconds(): how long `rows` rows take at most, with or without routing, very roughly.
 * sparse_coder_rows_at_once(): how many rows take about a second, at least a piece. */
double sparse_coder_seconds(const struct sparse_coder *w, gidx rows, int routes);
idx sparse_coder_rows_at_once(const struct sparse_coder *w, int routes);

/* Bring some of the results to the host. */
enum { CODED_SUPPORTS = 1, CODED_SCORES = 2, CODED_CODES = 4, CODED_QUALITY = 8, CODED_ALL = 15 };
int coded_get(struct sparse_coder *w, struct coded *rows, int what);

/* Set, on rank 0, the metrics of the m->n rows of all ranks, from rows->quality on the host.  Sum
 * blocks are divided as by refit_blocks_partition().  tss, on rank 0: the total sum of squares of
 * all rows.  Collective. */
int coded_metrics(const struct coded *rows, struct comm *c, real tss, struct metrics *m);

/* *bytes <- the host memory of a coder with n rows, by running its allocations dry. */
int sparse_coder_bytes(const struct sparse_coder_shape *shape, gidx n, gidx *bytes);

/* *dev <- a dry device (device.h) that has counted the memory of a coder, of its dictionary, and of
 * two `struct coded`: one of n rows, and one of `held` rows. */
int sparse_coder_device_dry(const struct sparse_coder_shape *shape, gidx n, gidx held,
                            struct device *dev);

/* device_memory() for a coder of this shape. */
int sparse_coder_device_memory(const struct sparse_coder_shape *shape, int local_size, gidx *bytes);

#endif
