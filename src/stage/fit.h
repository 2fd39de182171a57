/* SPDX-License-Identifier: BSD-3-Clause
 * The state of a fit over all ranks: rows and their residuals stay with their rank.
 *
 * Floor: stage.  Knows no files: rows, atoms and supports come from sources.
 *
 * Rows are dealt in whole row blocks of ROW_BLOCK, consecutive ones to a rank.  Frames are on every
 * rank.  Memory of a rank: its rows twice in f32, its supports, all frames in f64. */
#ifndef STAGE_FIT_H
#define STAGE_FIT_H

#include "base/memory.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/dictionary.h"
#include "model/rows.h"
#include "model/supports.h"

/* Rows and atoms are read in pieces of so much. */
enum { FIT_PIECE_BYTES = 16 << 20 };

struct fit_task {
  const struct row_source *rows;
  const struct atom_source *atoms;
  const struct support_source *supports; /* with codes; every row as many atoms */
  const real *mean;                      /* [p] subtracted from rows; NULL: none */
  real rho;                              /* penalty on codes */
  idx top_s;                             /* atoms a row, where there are no rows to tell */
  idx threads;
  const char *variant;
  const char *filter; /* of rerouting, as struct device_options; NULL: off */
};

struct fit {
  const struct fit_task *task; /* borrowed, with its sources */
  struct comm *c;              /* borrowed */
  struct device device;
  idx k, d, p, s; /* s: atoms a row */
  real rho;
  gidx total;               /* rows of all ranks */
  gidx block_first, blocks; /* own row blocks */
  gidx first;               /* own rows: */
  idx n;
  float *x;       /* [n][p] rows, centred */
  real *residual; /* [n][p] */
  idx *atoms;     /* [n][s] supports */
  float *score;   /* [n][s] */
  real *codes;    /* [n][s][d] */
  real *frames;   /* [k][d][p] */
  /* own rows of each atom, ascending: rows start[a] .. start[a + 1] - 1; entry: row s + place */
  gidx *start; /* [k + 1] */
  gidx *entry; /* [n s] */
  idx *counts; /* [size][k] rows of each atom on each rank */
  struct arena arena;
};

/* Row blocks of a rank; fit_rows gives their rows and where those begin. */
void fit_share(gidx n, int size, int rank, gidx *block_first, gidx *blocks);
gidx fit_rows(gidx n, int size, int rank, gidx *first);

/* ERR_INPUT: shapes that do not fit together.  Not collective. */
int fit_task_check(const struct fit_task *task);

/* The sizes alone, checked; nothing is read or taken.  ERR_INPUT, ERR_MEMORY.  Not collective. */
int fit_shape(struct fit *f, const struct fit_task *task, struct comm *c);

/* Read everything.  ERR_INPUT names the lowest bad row or atom, and what does not fit together;
 * ERR_MEMORY what is needed and present.  Collective, as are the functions below; the same status
 * on every rank. */
int fit_load(struct fit *f, const struct fit_task *task, struct comm *c);
void fit_free(struct fit *f);

/* List the rows of each atom, after supports changed. */
int fit_index(struct fit *f);

/* Compute the residuals from rows, frames and codes.  Not collective. */
int fit_residuals(struct fit *f);

#endif
