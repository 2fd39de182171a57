/* SPDX-License-Identifier: BSD-3-Clause
 * One step of training on all ranks, with the bits of train_step_reference().
 *
 * Floor: train.  "Own" rows and atoms are those of this rank. */
#ifndef TRAIN_STEP_H
#define TRAIN_STEP_H

#include "base/phase.h"
#include "base/stop.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/precision.h"
#include "model/train.h"

/* The codes of rows, live or dead (N.44), and how the error changes with each code. */
struct entry_lists {
  struct buffer start, index, value, slope; /* as struct train_entries; slope: [entries] */
};
struct entry_rows {
  idx most;                /* entries of a row at most; 0: there are none */
  gidx own_most, all_most; /* entries at most: of own rows, of the batch */
  struct entry_lists own;  /* of own rows */
  struct entry_lists all;  /* of all rows of the batch; empty with one rank */
  int blocks;              /* nested widths (N.47), each with an error per row; dead entries have
                            * one */
  struct buffer error;     /* [batch][blocks][p] errors, which decoder gradients multiply by
                            * codes */
};

/* What hosts send each other about a row: the squares of its error and of itself, and its numbers
 * of live and dead entries. */
struct row_known {
  real error, size;
  idx live, dead;
};

struct stepper {
  const struct train_sizes *sizes; /* borrowed, as are c, device, state and phases */
  struct comm *c;
  struct device *device;
  struct train_state *state; /* on the host; stepper_fetch() and stepper_gather() update it */
  struct phase *phases;      /* [TRAIN_PHASES] */
  const struct stops *stops; /* borrowed; NULL: none */
  uint64_t asked;            /* reasons to stop that any rank had in the last step, as bits; the
                              * same on all */
  idx batch;
  enum precision precision;          /* of scores */
  idx n;                             /* rows of this batch */
  gidx first, own;                   /* own rows of it */
  gidx atom_first, atoms;            /* own atoms */
  struct buffer x;                   /* [batch][p] filled by the caller */
  struct buffer ones;                /* [batch] */
  struct entry_rows live, dead;      /* entries of the codes, and of the auxiliary loss */
  struct buffer squares;             /* [batch][2] of errors and rows */
  struct buffer idle, is_dead, used; /* [k] */
  int any_dead;                      /* before this step */
  struct buffer begin;               /* [own atoms + 2] where an atom's entries begin in the next
                                      * three */
  struct buffer row, code, slope;    /* [batch most] */
  struct buffer block_start, block_error; /* [own blocks + 1], [batch][p]; for several blocks */
  struct buffer offset[3];                /* of the state; learned offset and its moments (N.48) */
  struct buffer handed, target, offset_gradient; /* [k], [p], [p] for the offset */
  struct buffer work;
  struct buffer w[TRAIN_ARRAYS], m[TRAIN_ARRAYS], v[TRAIN_ARRAYS]; /* of the state */
  struct buffer gradient[TRAIN_ARRAYS];                            /* of own atoms */
  struct row_known *known;                                         /* [batch] */
  idx *counts, *many;                                              /* [size] */
  gidx *ties; /* [size] scores of each rank that equal the batch's cut (N.46) */
  gidx encoder_exchange, decoder_exchange; /* numbers of their exchanges (comm/buffers.h) */
  struct arena arena;
};

/* Set sizes, c, device, state, phases, batch and precision first.  With a dry device it only counts
 * memory; stepper_bytes() then gives it, without the state's arrays.  ERR_MEMORY; ERR_INPUT when
 * there are more codes than an exchange can have. */
int stepper_open(struct stepper *s);
void stepper_bytes(const struct stepper *s, gidx *host, gidx *gpu);
void stepper_close(struct stepper *s);
/* Bytes of the largest exchange of a step, for comm_devices_open(). */
gidx stepper_message(const struct stepper *s);

/* Start the steps from the state on the host. */
int stepper_begin(struct stepper *s);

/* Do step t - 1 on n rows of s->x, with this rate.  ERR_INPUT if the error is not finite.
 * Collective; the same status on every rank. */
int stepper_run(struct stepper *s, idx n, real rate, gidx t);

/* Copy weights and idle counts to the state on the host.  Not collective. */
int stepper_fetch(struct stepper *s);

/* Bring the moments of all atoms to rank 0.  Collective; the same status on every rank. */
int stepper_gather(struct stepper *s);

#endif
