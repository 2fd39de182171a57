/* SPDX-License-Identifier: BSD-3-Clause
 * What the files of the terminal stage share: rank 0's state.
 *
 * Floor: stage; included by stage/terminal*.c only. */
#ifndef STAGE_TERMINAL_INSIDE_H
#define STAGE_TERMINAL_INSIDE_H

#include "device/joint.h"
#include "stage/fit.h"
#include "stage/terminal.h"

/* First Lanczos steps, and parts of the workspace: rows, their parts of S, vectors. */
enum { SLQ_STEPS_FIRST = 32, SLQ_WORKSPACES = 3 };
#define BORDER_MOST 1e9

struct terminal {
  const struct terminal_task *t;
  struct comm *c;
  struct terminal_result *r;
  struct phase *phases;
  struct joint joint;
  float *atoms;   /* [k][d][p] */
  idx *direction; /* [k + 1] */
  real *e;        /* [directions][p] */
  idx longest;    /* most atoms in a row */
  struct dense dense;
  real *s; /* [border][border] */
  struct arena inputs, matrix;
};

struct fit_task terminal_fit(const struct terminal_task *t);

/* Directions of all atoms, on every rank; frees all else that it took.  Collective. */
int terminal_directions(struct terminal *w);

/* Rows of one batch after another.  next: of the row that the next batch begins with. */
struct terminal_rows {
  const struct terminal *w;
  struct joint_work work;
  struct worker worker;
  struct joint_rows batch; /* the last one read */
  gidx next;
  idx room; /* rows */
  float *x, *codes;
  gidx *start;
  idx *list;
  struct arena arena;
};
gidx terminal_rows_bytes(gidx n, const struct atom_source *atoms, idx longest);
/* All in at most `workspace` bytes. */
int terminal_rows_open(struct terminal_rows *rows, struct terminal *w, gidx workspace);
void terminal_rows_close(struct terminal_rows *rows);
/* Read the next batch and make its Y; batch.n = 0 at the end. */
int terminal_rows_next(struct terminal_rows *rows, struct joint_sums *sums);

/* S, and the sums over rows. */
int terminal_assemble(struct terminal *w, struct joint_sums *sums);
/* S is Z = L^-1: blocks of phi S^-1. */
int terminal_covariance(struct terminal *w);
/* From a copy of S, which stays. */
int terminal_spectrum(struct terminal *w);
/* log|S| without S (numerics, terminal). */
int terminal_slq(struct terminal *w, struct joint_sums *sums);
/* Near duplicates among the atoms, and the bytes that finding them takes. */
int terminal_duplicates(struct terminal *w);
gidx terminal_duplicates_bytes(const struct terminal_task *t);

#endif
