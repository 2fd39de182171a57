/* SPDX-License-Identifier: BSD-3-Clause
 * The update of all atoms at once without a Gram matrix (N.65).  Each rank computes some columns of
 * all atoms, from all rows.
 *
 * Floor: fit.
 *
 * As in the joint update (fit/update.h), a rank has its columns of all rows, and the lists of atoms
 * and codes of all rows (fit/all_rows.h).  The steps of the conjugate gradients exchange nothing.
 * After them each rank gets some whole atoms, scales them to unit norm, and sends them to all.  The
 * update runs on a CPU, even if a GPU routes and codes. */
#ifndef FIT_CONJUGATE_H
#define FIT_CONJUGATE_H

#include "fit/all_rows.h"

struct conjugate {
  struct refit_state *f; /* borrowed */
  struct device device;  /* a CPU */
  idx begin, end;        /* own columns */
  idx first, count;      /* atoms that this rank scales */
  real *held, *weight;   /* [k] weights of earlier rows; weight: with the current rows added */
  real *columns;         /* [k][end - begin] */
  real *came;            /* [count][p] with several ranks: the atoms that this rank scales, as
                          * received */
  char *work;
  unsigned char *moved; /* [k] */
  idx *send, *receive;  /* [size] */
  real *energy;         /* [energy_rows] made by conjugate_energies(); owned */
  gidx energy_rows;
  struct all_rows all;
  int has_columns; /* 1: it has the columns of the state's rows; the caller clears it */
  struct arena arena;
};

/* Open for a state with d = 1, and at most `most` rows of all ranks.  ERR_MEMORY.  Collective.
 * conjugate_free() is safe on a zeroed struct, and collective if ranks share lists. */
int conjugate_open(struct conjugate *u, struct refit_state *f, gidx most);
void conjugate_free(struct conjugate *u);

/* Multiply the weight of earlier rows by beta.  Then move the atoms by `count` steps on the rows of
 * the state with their codes, and scale them to unit norm.  All ranks get the frames.  Atoms
 * without codes stay.  steps[k].accepted <- 1 for the atoms that moved; the determinants in steps[]
 * are NaN, all else is 0.  Collective; the same status on every rank. */
int conjugate_move(struct conjugate *u, const struct update_rows *rows, real beta, idx count,
                   struct atom_step *steps);

/* energy[n] <- the same as update_energies().  Not collective. */
int conjugate_energies(struct conjugate *u, const struct update_rows *rows);

/* Forget earlier rows for the atoms with forget[k].  Not collective, like conjugate_put(). */
void conjugate_clear(struct conjugate *u, const unsigned char *forget);

/* Continue with the weights of another run. */
void conjugate_put(struct conjugate *u, const real *weight);

/* *bytes <- the memory of the update.  A function of type batch_bytes_of. */
int conjugate_bytes(const struct refit_state *f, const struct atom_batch *b, idx q, gidx *bytes);

#endif
