/* SPDX-License-Identifier: BSD-3-Clause
 * The bias that is learned before the encoder (N.48): every rank has all of it, and moves it alike.
 *
 * Floor: train, called by step.c alone.  Nothing is done where it is not learned. */
#ifndef TRAIN_OFFSET_H
#define TRAIN_OFFSET_H

#include "model/adam.h"
#include "train/step.h"

/* Not collective, as all here but the last. */
int offset_open(struct stepper *s);
void offset_close(struct stepper *s);
/* To the device from the host, where steps begin; to the host, with its moments. */
int offset_begin(struct stepper *s);
int offset_fetch(struct stepper *s);
/* Subtract it from all rows of the batch. */
int offset_subtract(struct stepper *s);

/* Keep what own atoms' biases learned, among those of all. */
int offset_prepare(struct stepper *s);

/* Move it by the gradients that all own atoms have, before the encoder moves.  Collective; the same
 * status on every rank. */
int offset_move(struct stepper *s, const struct adam_rates *rates);

#endif
