/* SPDX-License-Identifier: BSD-3-Clause
 * The offset (N.48): a learned vector, subtracted from rows before they are scored.  Every rank has
 * the whole offset, and moves it in the same way.
 *
 * Floor: train, called by step.c alone.  The functions do nothing if the offset is not learned. */
#ifndef TRAIN_OFFSET_H
#define TRAIN_OFFSET_H

#include "model/adam.h"
#include "train/step.h"

/* Of the functions here only offset_move() is collective. */
int offset_open(struct stepper *s);
void offset_close(struct stepper *s);
/* Copy the offset and its moments to the device when steps begin; copy them back to the host. */
int offset_begin(struct stepper *s);
int offset_fetch(struct stepper *s);
/* Subtract the offset from all rows of the batch. */
int offset_subtract(struct stepper *s);

/* Copy the bias gradients of own atoms to their place in s->handed, the array for all atoms. */
int offset_prepare(struct stepper *s);

/* Move the offset, after offset_prepare() and before the encoder moves: the gradient needs the
 * encoder of this step.  Collective; the same status on every rank. */
int offset_move(struct stepper *s, const struct adam_rates *rates);

#endif
