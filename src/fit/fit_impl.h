/* SPDX-License-Identifier: BSD-3-Clause
 * The state of a fit, which its files share.
 *
 * Floor: fit; included by src/fit only.
 *
 * Reading order: fit.c (the loop over sweeps), plan.c (whether a fit has enough memory), start.c
 * (the first rows and atoms), sweep.c (how atoms move), sweep_end.c (rows are coded again and
 * evaluated). */
#ifndef FIT_FIT_IMPL_H
#define FIT_FIT_IMPL_H

#include "base/memory.h"
#include "base/worker.h"
#include "fit/ahead.h"
#include "fit/fit.h"
#include "fit/validation.h"
#include "fit/conjugate.h"
#include "fit/update.h"
#include "model/split.h"
#include "model/supports.h"
#include "refit/sparse_coder.h"
#include "refit/refit.h"
#include "refit/resident.h"

struct fit {
  const struct fit_task *task;
  struct comm *c, *all; /* all: all ranks; c: the same, or &alone if every rank has all rows */
  struct comm alone;    /* made by comm_alone() */
  const struct fit_sink *sink;
  struct fit_result *result;
  struct row_split split;
  struct row_source fitted, held, part_source; /* part_source: the rows in memory */
  struct row_part part;
  gidx parts, part_rows;
  struct part_ahead ahead; /* the next part, if reads_ahead: there is memory for it */
  int reads_ahead;
  enum fit_update how;
  struct atom_source table_source;
  struct support_source no_supports;
  struct refit_task refit_task;
  struct refit_state state;
  struct sparse_coder coder;
  struct sparse_coder_shape shape; /* of the coder */
  int shares_gram;                 /* the same as refit_task.shares_gram */
  gidx gpu;             /* bytes that this rank needs on its GPU at least; 0: it uses none */
  struct worker warmer; /* creates the context of the GPU while rows are read */
  struct coded coded;   /* the rows in memory */
  struct fit_validation validation;
  struct classes classes;                  /* for UPDATE_ATOMS */
  struct resident resident;                /* for UPDATE_ATOMS on a GPU */
  struct fit_within within;                /* the sweep in work, if it can be stopped inside */
  struct update update;                    /* for UPDATE_JOINT */
  struct conjugate conjugate;              /* for UPDATE_CONJUGATE */
  struct phase steps_phases[REFIT_PHASES]; /* for UPDATE_ATOMS */
  float *table;                            /* [k][d][p] the atoms, as files hold them */
  real *mean;                              /* [p]; NULL: rows are not centred */
  real norm;                               /* median norm of the rows less the mean; 0: not known */
  struct atom_step *steps;                 /* [k] */
  unsigned char *dead;                     /* [k] */
  idx *idle;                               /* [k] parts since a row used the atom */
  idx *near;                               /* [k] the atom most similar to each, if duplicates are
                                            * replaced */
  float *likeness;                         /* [k] the cosine of each atom and its `near` */
  idx *shares;              /* [ranks] number of atoms whose `near` each rank finds */
  int stopped;              /* 1: the fit was stopped, before or inside a sweep */
  int relaxes;              /* 1: this sweep relaxes atoms */
  real *moves;              /* [k] square of the distance that each atom moved in a sweep */
  struct fit_line *lines;   /* [sweeps + 1] */
  gidx sweep, sweeps, best; /* number of the last sweep; largest number of sweeps;
                             * the best sweep */
  gidx first;               /* the sweep that this run started from */
  real tss;                 /* rank 0: total sum of squares of the rows in memory */
  double begun;
  struct arena arena;
};

/* Free all fields, and the struct itself. */
void fit_close(struct fit *f);

#endif
