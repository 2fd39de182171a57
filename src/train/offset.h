/* SPDX-License-Identifier: BSD-3-Clause
 * The offset, a bias that is learned and subtracted from rows before the encoder (N.48).  Every
 * rank has all of it, and moves it in the same way.
 *
 * Floor: train, called by step.c alone.  Nothing is done if the offset is not learned. */
#ifndef TRAIN_OFFSET_H
#define TRAIN_OFFSET_H

#include "model/adam.h"
#include "train/step.h"

/* Not collective, as all here except offset_move(). */
int offset_open(struct stepper *s);
void offset_close(struct stepper *s);
/* Copy it to the device when steps begin; and back to the host, with its moments. */
int offset_begin(struct stepper *s);
int offset_fetch(struct stepper *s);
/* Subtract it from all rows of the batch. */
int offset_subtract(struct stepper *s);

/* Keep the bias gradients of own atoms, in their part of the array for all atoms. */
int offset_prepare(struct stepper *s);

/* Move it, by the gradients of the biases of all atoms, before the encoder moves.  Collective; the
 * same status on every rank. */
int offset_move(struct stepper *s, const struct adam_rates *rates);

#endif
