/* SPDX-License-Identifier: BSD-3-Clause
 * The update of all atoms at once without a Gram matrix (N.65): each rank finds its own columns of
 * all atoms by all rows.
 *
 * Floor: fit.
 *
 * As for the joint update (fit/update.h) a rank has its columns of all rows and the lists of all
 * (fit/all_rows.h); steps send nothing.  Then each rank gets some atoms whole, scales them, and all
 * get all.  It computes on a CPU, also where a GPU routes and codes. */
#ifndef FIT_CONJUGATE_H
#define FIT_CONJUGATE_H

#include "fit/all_rows.h"

struct conjugate {
  struct refit_state *f; /* borrowed */
  struct device device;  /* a CPU */
  idx begin, end;        /* own columns */
  idx first, count;      /* atoms that this rank scales */
  real *held, *weight; /* [k] what earlier rows say of each atom, and that with the rows at hand */
  real *columns;       /* [k][end - begin] */
  real *came;          /* [count][p] of several ranks */
  char *work;
  unsigned char *moved; /* [k] */
  idx *send, *receive;  /* [size] */
  real *energy;         /* [energy_rows] conjugate_energies(); owned */
  gidx energy_rows;
  struct all_rows all;
  int has_columns; /* it has those of the state's rows; the caller's to clear */
  struct arena arena;
};

/* For a state with d = 1, and at most so many rows of all ranks.  ERR_MEMORY.  conjugate_free() is
 * safe on a zeroed struct.  Both are collective where ranks share lists. */
int conjugate_open(struct conjugate *u, struct refit_state *f, gidx most);
void conjugate_free(struct conjugate *u);

/* What was known is multiplied by beta; then atoms take steps by rows, those of the state, with
 * their codes, and get unit norm.  Frames on every rank; those without codes stay.  steps[k] <-
 * accepted for atoms with codes, nothing else.  Collective; the same status on every rank. */
int conjugate_move(struct conjugate *u, const struct update_rows *rows, real beta, idx count,
                   struct atom_step *steps);

/* energy[n] <- as update_energies().  Not collective. */
int conjugate_energies(struct conjugate *u, const struct update_rows *rows);

/* Nothing is known any more of the atoms with forget[k].  Not collective, as is the next. */
void conjugate_clear(struct conjugate *u, const unsigned char *forget);

/* Go on from the weights of another run. */
void conjugate_put(struct conjugate *u, const real *weight);

/* A batch_bytes_of: what the update takes. */
int conjugate_bytes(const struct refit_state *f, const struct atom_batch *b, idx q, gidx *bytes);

#endif
