/* SPDX-License-Identifier: BSD-3-Clause
 * The arrow systems of one batch of atoms, each assembled by the atom's owner (N.16).
 *
 * Floor: refit.  The systems of all atoms, batch by batch: refit/all_systems.h. */
#ifndef REFIT_BATCH_SYSTEMS_H
#define REFIT_BATCH_SYSTEMS_H

#include "model/arrow.h"
#include "refit/atom_batch.h"

struct batch_systems {
  idx q;                       /* directions wanted */
  real *e;                     /* [count][q][p] directions of every member, on every rank */
  idx *kept;                   /* [count] number of directions of each member */
  struct arrow_system *system; /* [mine] */
  real *before;                /* [mine] the present objective */
  struct arena arena;          /* holds all arrays except e */
  struct arena directions;     /* holds e */
};

/* Find directions and assemble.  The batch's atoms may share rows.  Collective. */
int batch_systems_make(struct batch_systems *a, struct refit_state *f, const struct atom_batch *b,
                       idx q);
void batch_systems_free(struct batch_systems *a);

/* The sizes d, k and n of own member i's system, without arrays.  For a dry batch the sizes are
 * upper bounds, and their sum over members is the bound for all members.  Not collective. */
struct arrow_system batch_systems_shape(const struct batch_systems *a, const struct refit_state *f,
                                        const struct atom_batch *b, idx i);

/* held: the bytes that batch_systems_make() leaves allocated; peak: its peak memory, which includes
 * `held`.  Both come from a dry run of its allocations, for a batch or a dry batch.  Not
 * collective. */
struct batch_systems_bytes {
  gidx held, peak;
};
int batch_systems_bytes(const struct refit_state *f, const struct atom_batch *b, idx q,
                        struct batch_systems_bytes *bytes);

#endif
