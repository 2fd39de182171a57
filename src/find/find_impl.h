/* SPDX-License-Identifier: BSD-3-Clause
 * The state of finding features, which its files share.
 *
 * Floor: find; included by src/find only.
 *
 * To read the job from top to bottom: find.c (the loop over updates), open.c (rows and memory),
 * batch.c (codes from rows), sums.c (sums from codes), move.c (atoms from sums), grow.c and renew.c
 * (new atoms), judge.c (held-out rows). */
#ifndef FIND_FIND_IMPL_H
#define FIND_FIND_IMPL_H

#include "base/memory.h"
#include "device/dense.h"
#include "encode/active.h"
#include "find/find.h"
#include "model/split.h"
#include "model/shuffle.h"
#include "train/batches.h"

enum {
  /* rows that are added to the sums at a time; each time the whole Gram matrix is read */
  SUM_ROWS = 8192,
  SUM_MOST = ACTIVE_MOST + 1, /* largest number of entries of a row, with the intercept */
  LEFT_ROWS = 1024            /* rows that are copied to the host at a time */
};

/* The codes of all rows of a batch, on every rank. */
struct batch_codes {
  idx n;
  gidx *start; /* [n + 1] */
  idx *index;  /* [entries] */
  float *code;
  idx *lengths; /* [batch] work space */
  real *weight; /* [n] weight of a row (N.52) */
  gidx most;    /* largest number of entries */
};

/* The sums of an update, over all atoms and the intercept, which is the last row and column.  A
 * rank computes some rows of the Gram matrix, and some columns of the target. */
struct find_shares {
  idx first, count;                  /* own atoms: rows of the Gram matrix */
  idx begin, end;                    /* this rank's columns */
  struct buffer gram, target;        /* real: [k + 1][k + 1], [k + 1][end - begin] */
  struct buffer slots, codes, work;  /* [rows at a time][SUM_MOST] */
  idx rows;                          /* rows at a time */
  struct buffer moved;               /* real [k][end - begin]: atoms after the move */
  struct buffer panel, square, half; /* real: [k / 2][k / 2], [k][k], [k][end - begin] */
  struct dense dense;
  real *gathered, *all; /* [k][p] */
  real *intercept;      /* [p] */
  /* sum of the weights of all rows: the diagonal entry of the intercept in the Gram matrix */
  real weights;
  real *pivot; /* [k] */
};

/* The rows that are evaluated: the held-out rows, or some fitted rows if none are held out.  Each
 * rank has some sum blocks (base/sums.h) of them. */
struct find_validation {
  struct row_source rows; /* all ranks' rows */
  gidx first;
  idx n;
  float *x; /* [n][p] */
  struct buffer all;
  struct device host; /* a CPU device for row qualities, if f->device is a GPU */
  gidx *start;
  idx *index;
  float *code; /* [entries] of a piece of rows */
  struct row_quality *quality;
  real tss, explained, l0;
  uint64_t hash;
};

/* Directions that may become atoms (grow.c). */
struct find_growth {
  /* rows in use; largest number of rows; largest number of directions */
  idx n, most_n, most_m;
  /* the threshold of a direction is its rank-th largest product with the rows */
  idx rank;
  struct buffer rows, directions; /* [n][p], [m][p] */
  struct buffer table;            /* [k + m][p] the atoms, then accepted and tested directions */
  struct buffer values;           /* products of some directions with rows or atoms */
  struct buffer sums;             /* [some][p] */
  float *column, *threshold;      /* [some][n]; [m] */
  real *wide;                     /* [some][p] */
  idx *order;                     /* [m] */
  unsigned char *state;           /* [m] is it accepted? */
  gidx first;                     /* first of the current directions */
  idx together, most_together;
  gidx known; /* rows of the table that are on the device */
};

struct finder {
  const struct find_task *task;
  struct comm *c;
  const struct find_sink *sink;
  struct find_result *result;
  struct find_plan plan;
  struct row_split split;
  struct row_source fitted;
  struct row_part sample; /* some fitted rows, which are evaluated if no rows are held out */
  struct batches batches;
  struct device device;
  struct active active;
  struct batch_codes codes;
  struct find_shares sums;
  struct find_validation judge;
  struct find_growth growth;
  struct buffer x; /* [batch][p] all rows of a batch, on every rank */
  idx p, k;        /* columns; atoms so far */
  idx widest;      /* largest number of atoms of a block */
  gidx update;
  float *atoms, *before;  /* [K][p] */
  float *means;           /* [K] */
  gidx *firing, *ordered; /* [K] rows of the update that used each atom; the same in a new order */
  real *code_sums;        /* [K] */
  idx *order;             /* [K] */
  unsigned char *renew;   /* [K] */
  float *fresh;           /* [K][p] new atoms */
  real *wide;             /* [p] */
  struct buffer left;     /* [LEFT_ROWS][p] residuals of some rows, or some atoms */
  struct buffer squares;  /* [own rows][2] real */
  struct buffer offset;   /* [p] subtracted from rows in addition to the mean */
  real *described;        /* [p] mean and offset together */
  struct find_step step;  /* the present update */
  real ridge;             /* its ridge */
  int is_coded;           /* the batch has codes, and the residuals of its rows are known */
  /* rows of the update; number of rows of the batch that were used for new atoms */
  gidx fired_rows, taken;
  gidx replaced;
  struct found_encoder encoder;
  real square; /* mean squared norm of the first rows, less the mean */
  real *mean;  /* [p]; NULL: rows are not centred */
  struct find_line *lines;
  gidx count;
  idx *counts, *more; /* [size] */
  gidx *ties;         /* [size] */
  uint64_t rows_hash;
  double begun;
  struct arena arena;
};

#endif
