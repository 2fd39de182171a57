/* SPDX-License-Identifier: BSD-3-Clause
 * One step of training over all ranks, with the bits of train_step_reference().
 *
 * Floor: train. */
#ifndef TRAIN_STEP_H
#define TRAIN_STEP_H

#include "base/phase.h"
#include "base/stop.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/precision.h"
#include "model/train.h"

/* Codes of rows, or of the dead in them, and what the error says of each. */
struct entry_lists {
  struct buffer start, index, value, slope; /* struct train_entries; [entries] */
};
struct entry_rows {
  idx most;                /* in a row; 0: there are none */
  gidx own_most, all_most; /* of own rows, of the batch */
  struct entry_lists own;  /* of own rows */
  struct entry_lists all;  /* of all rows of the batch; with one rank there are none */
  int blocks;              /* of a row: nested widths (N.47), of which the dead have one */
  struct buffer error;     /* [batch][blocks][p] what their decoder entries are multiplied by */
};

/* What hosts tell each other of a row: squares of its error and of itself, and how many entries of
 * either kind it has. */
struct row_known {
  real error, size;
  idx live, dead;
};

struct stepper {
  const struct train_sizes *sizes; /* borrowed, as are the next four */
  struct comm *c;
  struct device *device;
  struct train_state *state; /* the host's; stepper_fetch() and stepper_gather() say when */
  struct phase *phases;      /* [TRAIN_PHASES] */
  const struct stops *stops; /* borrowed; NULL: none */
  uint64_t asked;            /* what asked some rank in the last step to stop, the same on all */
  idx batch;
  enum precision precision;          /* of scores */
  idx n;                             /* rows of the batch at hand */
  gidx first, own;                   /* own rows of it */
  gidx atom_first, atoms;            /* own atoms */
  struct buffer x;                   /* [batch][p] the batch, which the caller puts there */
  struct buffer ones;                /* [batch] */
  struct entry_rows live, dead;      /* of the codes, and of the auxiliary loss */
  struct buffer squares;             /* [batch][2] of errors and of rows */
  struct buffer idle, is_dead, used; /* [k] */
  int any_dead;                      /* before the step */
  struct buffer begin;               /* [own atoms + 2] where an atom's entries begin in the next */
  struct buffer row, code, slope;    /* [batch most] */
  struct buffer block_start, block_error; /* [own blocks + 1], [batch][p] of several blocks */
  struct buffer offset[3];                /* around the state's, where it is learned (N.48) */
  struct buffer handed, target, offset_gradient; /* [k], [p], [p] of it */
  struct buffer work;
  struct buffer w[TRAIN_ARRAYS], m[TRAIN_ARRAYS], v[TRAIN_ARRAYS]; /* around the state's */
  struct buffer gradient[TRAIN_ARRAYS];                            /* of own atoms */
  struct row_known *known;                                         /* [batch] */
  idx *counts, *many;                                              /* [size] */
  gidx *ties; /* [size] scores of each rank that equal the last code of the batch (N.46) */
  gidx encoder_exchange, decoder_exchange; /* of their exchanges (comm/buffers.h) */
  struct arena arena;
};

/* Set sizes, c, device, state, phases, batch and precision first.  With a dry device memory is
 * counted alone, and then stepper_bytes() says what it takes beside the state's own arrays.
 * ERR_MEMORY; ERR_INPUT: more codes than ranks can tell each other. */
int stepper_open(struct stepper *s);
void stepper_bytes(const struct stepper *s, gidx *host, gidx *gpu);
void stepper_close(struct stepper *s);
/* Bytes of the longest exchange of a step, for comm_devices_open(). */
gidx stepper_message(const struct stepper *s);

/* The state on the host is where the steps begin. */
int stepper_begin(struct stepper *s);

/* Step t - 1 on the rows x[n][p] with this rate.  ERR_INPUT where the error is not finite.
 * Collective; the same status on every rank. */
int stepper_run(struct stepper *s, idx n, real rate, gidx t);

/* Weights and idle of the state <- where the steps are.  Not collective. */
int stepper_fetch(struct stepper *s);

/* The moments of all atoms to rank 0.  Collective; the same status on every rank. */
int stepper_gather(struct stepper *s);

#endif
