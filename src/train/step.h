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

/* Entries of rows (N.43): the codes, with the derivative of the loss by each code.  Live entries
 * are the codes of a row.  Dead entries are codes of dead atoms alone, for the auxiliary loss. */
struct entry_lists {
  struct buffer start, index, value, slope; /* as struct train_entries; slope: [entries] */
};
struct entry_rows {
  idx most;                /* largest number of entries of a row; 0: there are none */
  gidx own_most, all_most; /* largest number of entries: of own rows, of the batch */
  struct entry_lists own;  /* of own rows */
  struct entry_lists all;  /* of all rows of the batch; empty with one rank */
  int blocks;              /* nested widths (N.47), each with an error per row; dead entries have
                            * one */
  struct buffer error;     /* [batch][blocks][p] errors, which decoder gradients multiply by
                            * codes */
};

/* What hosts send each other about a row: the sums of squares of its error and of the row, and its
 * numbers of live and dead entries. */
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
  uint64_t asked;            /* bits: the reasons to stop of all ranks in the last step; the same
                              * on every rank */
  idx batch;
  enum precision precision;          /* of scores */
  idx n;                             /* rows of this batch */
  gidx first, own;                   /* first own row in the batch, number of own rows */
  gidx atom_first, atoms;            /* first own atom, number of own atoms */
  struct buffer x;                   /* [batch][p] filled by the caller */
  struct buffer ones;                /* [batch] */
  struct entry_rows live, dead;      /* entries of the codes, and of the auxiliary loss */
  struct buffer squares;             /* [batch][2] sums of squares of error and row */
  struct buffer idle, is_dead, used; /* [k] for struct train_idle_job (device/train.h) */
  int any_dead;                      /* 1: before this step some atom is dead */
  struct buffer begin;               /* [own atoms + 2] where the entries of an own atom begin in
                                      * row, code and slope */
  struct buffer row, code, slope;    /* [larger all_most of live and dead] entries of own atoms,
                                      * sorted by atom, then by row */
  struct buffer block_start, block_error; /* [own * blocks + 1], [batch][p]; if blocks > 1 */
  struct buffer offset[3];                /* of the state; learned offset and its moments (N.48) */
  struct buffer handed, target, offset_gradient; /* [k] bias gradients; [p] sum of errors; [p] */
  struct buffer work;
  struct buffer w[TRAIN_ARRAYS], m[TRAIN_ARRAYS], v[TRAIN_ARRAYS]; /* of the state */
  struct buffer gradient[TRAIN_ARRAYS];                            /* of own atoms */
  struct row_known *known;                                         /* [batch] */
  idx *counts, *many; /* [size] in an exchange, for each rank: its rows or atoms; its entries */
  gidx *ties;         /* [size] scores of each rank that equal the batch's cut (N.46) */
  gidx encoder_exchange, decoder_exchange; /* numbers of their exchanges (comm/buffers.h) */
  struct arena arena;
};

/* Set sizes, c, device, state, phases, stops, batch and precision first.  With a dry device it only
 * counts memory.  stepper_bytes() then gives the bytes of all that is allocated on the device,
 * without the state's arrays.  ERR_MEMORY; ERR_INPUT: a batch may have more codes than a GPU sorts,
 * or a rank more codes than one exchange carries. */
int stepper_open(struct stepper *s);
void stepper_bytes(const struct stepper *s, gidx *host, gidx *gpu);
void stepper_close(struct stepper *s);
/* Bytes of the largest exchange of a step, for comm_devices_open(). */
gidx stepper_message(const struct stepper *s);

/* Start the steps from the state on the host. */
int stepper_begin(struct stepper *s);

/* Do step number t, counted from 1, on n rows of s->x, with this learning rate.  ERR_INPUT if the
 * error is not finite.  Collective; the same status on every rank. */
int stepper_run(struct stepper *s, idx n, real rate, gidx t);

/* Copy weights, offset and idle counts to the state on the host.  Not collective. */
int stepper_fetch(struct stepper *s);

/* Bring the moments of all atoms to the hosts of all ranks.  Collective; the same status on every
 * rank. */
int stepper_gather(struct stepper *s);

#endif
