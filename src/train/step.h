/* SPDX-License-Identifier: BSD-3-Clause
 * One step of training over all ranks, with the bits of train_step_reference().
 *
 * Floor: train. */
#ifndef TRAIN_STEP_H
#define TRAIN_STEP_H

#include "base/phase.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/train.h"

/* Entries of some rows: which latents, their codes, and what the error says of them. */
struct train_entry {
  idx atom;
  float code, slope;
};
struct entry_rows {
  idx most;                 /* in a row */
  idx *atoms;               /* [own rows][most] */
  float *codes;             /* [own rows][most] */
  idx *lengths;             /* [batch] those of all rows; own ones at their place */
  gidx *start;              /* [own rows + 1] */
  idx *index;               /* [own rows most] one after another, as are the next two */
  float *value, *slope;     /* the latter: of the dots */
  struct train_entry *mine; /* the same, as they travel */
  struct train_entry *all;  /* [batch most] of all rows */
  float *error;             /* [batch][p] what their decoder entries are multiplied by */
};

struct stepper {
  const struct train_sizes *sizes; /* borrowed, as are the next four */
  struct comm *c;
  struct device *device;
  struct train_state *state;
  struct phase *phases; /* [TRAIN_PHASES] */
  idx batch, threads;
  idx n;                         /* rows of the batch at hand */
  gidx first, own;               /* own rows of it */
  gidx atom_first, atoms;        /* own atoms */
  float *x;                      /* [batch][p] the batch: the caller fills it */
  float *h;                      /* [rows of a piece][k] scores */
  float *ones;                   /* [batch] */
  struct entry_rows live, dead;  /* of the codes, and of the auxiliary loss */
  real *squares;                 /* [batch][2] of errors and of rows */
  unsigned char *is_dead;        /* [k] before the step */
  gidx *start;                   /* [own atoms + 1] where an atom's entries begin in the next */
  idx *row;                      /* [batch most] */
  float *code, *slope;           /* [batch most] */
  float *gradient[TRAIN_ARRAYS]; /* of own atoms */
  idx *counts;                   /* [size] */
  gidx *many;                    /* [size] */
};

/* Set sizes, c, device, state, phases, batch and threads first.  Arrays are the arena's; a dry one
 * counts them. */
int stepper_alloc(struct stepper *s, struct arena *arena);

/* Step t - 1 on the rows s->x[n][p] with this rate.  ERR_INPUT where the error is not finite.
 * Collective; the same status on every rank. */
int stepper_run(struct stepper *s, idx n, real rate, gidx t);

/* The moments of all atoms to rank 0.  Collective. */
int stepper_gather(struct stepper *s);

#endif
