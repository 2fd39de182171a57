/* SPDX-License-Identifier: BSD-3-Clause
 * K = 1 systems of a batch of atoms, each at its owner (N.16).
 *
 * Floor: stage. */
#ifndef STAGE_ASSEMBLE_H
#define STAGE_ASSEMBLE_H

#include "model/arrow.h"
#include "stage/batch.h"

struct assembly {
  idx q;                       /* directions wanted */
  real *e;                     /* [count][q][p] directions of every member, on every rank */
  idx *kept;                   /* [count] */
  struct arrow_system *system; /* [mine] */
  real *before;                /* [mine] the objective */
  struct arena arena;          /* holds the arrays, but: */
  struct arena directions;     /* e */
};

/* Reals that a member takes on every rank, for batch_most. */
gidx assembly_reals(const struct fit *f, idx q);

/* Find directions and assemble.  The batch's atoms may share rows.  Collective. */
int assembly_make(struct assembly *a, struct fit *f, const struct batch *b, idx q);
void assembly_free(struct assembly *a);

#endif
