/* SPDX-License-Identifier: BSD-3-Clause
 * The state of finding features, which its files share.
 *
 * Floor: find; included by src/find only.
 *
 * To read the job from top to bottom: find.c (the loop over updates), open.c (rows and memory),
 * batch.c (rows become codes), sums.c (codes become sums), move.c (sums become atoms), renew.c
 * (atoms that are new), judge.c (held-out rows). */
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
  SUM_ROWS = 8192, /* that are added at a time: each time all of the Gram matrix is read */
  SUM_MOST = ACTIVE_MOST + 1, /* entries of a row */
  LEFT_ROWS = 1024            /* that are copied to the host at a time */
};

/* Codes of all rows of a batch, on every rank. */
struct batch_codes {
  idx n;
  gidx *start; /* [n + 1] */
  idx *index;  /* [entries] */
  float *code;
  idx *lengths; /* [batch] work */
  real *weight; /* [n] how much a row counts (N.52) */
  gidx most;    /* entries at most */
};

/* Sums of an update, of all atoms and the intercept behind them: own rows of the Gram matrix, own
 * columns of the target. */
struct find_shares {
  idx first, count;                  /* atoms */
  idx begin, end;                    /* columns */
  struct buffer gram, target;        /* [k + 1][k + 1], [k + 1][end - begin] real */
  struct buffer slots, codes, work;  /* [rows at a time][SUM_MOST] */
  idx rows;                          /* at a time */
  struct buffer moved;               /* [k][end - begin] real */
  struct buffer panel, square, half; /* [k / 2][k / 2], [k][k], [k][end - begin] real */
  struct dense dense;
  real *gathered, *all; /* [k][p] */
  real *intercept;      /* [p] */
  real weights;         /* of all rows: the intercept's corner of the Gram matrix */
  real *pivot;          /* [k] */
};

/* Rows to judge by: each rank holds its sum blocks. */
struct find_validation {
  struct row_source rows; /* n = 0: there are none */
  gidx first;
  idx n;
  float *x; /* [n][p] */
  struct buffer all;
  struct device host; /* a CPU, for qualities; none where the device is one */
  gidx *start;
  idx *index;
  float *code; /* [entries] of a piece */
  struct row_quality *quality;
  real tss, explained, l0;
  uint64_t hash;
};

/* Directions that may become atoms. */
struct find_growth {
  idx n, most_n, most_m;          /* rows at hand, and at most; directions at most */
  idx rank;                       /* of the row that is a direction's threshold */
  struct buffer rows, directions; /* [n][p], [m][p] */
  struct buffer table;            /* [k + m][p] atoms, and those that follow */
  struct buffer values;           /* products of some directions */
  struct buffer sums;             /* [some][p] */
  float *column, *threshold;      /* [some][n]; [m] */
  real *wide;                     /* [some][p] */
  idx *order;                     /* [m] */
  unsigned char *state;           /* [m] is it an atom? */
  gidx first;                     /* the directions at hand */
  idx together, most_together;
  gidx known; /* rows of the table that the device has */
};

struct finder {
  const struct find_task *task;
  struct comm *c;
  const struct find_sink *sink;
  struct find_result *result;
  struct find_plan plan;
  struct row_split split;
  struct row_source fitted;
  struct row_part sample; /* of the fitted rows, to judge by where none are held out */
  struct batches batches;
  struct device device;
  struct active active;
  struct batch_codes codes;
  struct find_shares sums;
  struct find_validation judge;
  struct find_growth growth;
  struct buffer x; /* [batch][p] all rows of a batch, on every rank */
  idx p, k;        /* columns; atoms so far */
  idx widest;      /* atoms of a block at most, where there are many */
  gidx update;
  float *atoms, *before;  /* [K][p] */
  float *means;           /* [K] */
  gidx *firing, *ordered; /* [K] */
  real *code_sums;        /* [K] */
  idx *order;             /* [K] */
  unsigned char *renew;   /* [K] */
  float *fresh;           /* [K][p] new atoms */
  real *wide;             /* [p] */
  struct buffer left;     /* [LEFT_ROWS][p] what is left of some rows, or some atoms */
  struct buffer squares;  /* [own rows][2] real */
  struct buffer offset;   /* [p] what rows lose beside the mean */
  real *described;        /* [p] the mean, and that */
  struct find_step step;  /* the update at hand, */
  real ridge;             /* and what holds atoms in it */
  int is_coded;           /* the batch at hand is, and what is left of its rows is known */
  gidx fired_rows, taken; /* rows of the batch that became atoms already */
  gidx replaced;
  struct found_encoder encoder;
  real square; /* mean square of the first rows, less the mean */
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
