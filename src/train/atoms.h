/* SPDX-License-Identifier: BSD-3-Clause
 * The atoms' side of a step: gradients of own atoms, their move, and who knows of it.
 *
 * Floor: train, called by step.c alone.  Weights go to all ranks beside what their GPUs compute:
 * the encoder's while decoder atoms move, the decoder's while the next batch is scored. */
#ifndef TRAIN_ATOMS_H
#define TRAIN_ATOMS_H

#include "train/step.h"

/* The entries of these rows, as operations of the device take them. */
struct train_entries entries_of(const struct entry_lists *l, idx most);

/* is_dead and any_dead <- from what is known when the steps begin; then, with idle, after the rows
 * at hand.  Not collective, as all here but encoder_begin(), decoder_begin() and
 * moments_gather(). */
int atoms_begin_idle(struct stepper *s);
int atoms_count_idle(struct stepper *s);

/* Gradients of own atoms <- 0; then what the entries of all rows say is added. */
int atoms_clear(struct stepper *s);
int atoms_gradients(struct stepper *s, int any_dead);

/* Own atoms' encoder and bias take their step, or their decoder does. */
int atoms_move_encoder(struct stepper *s, const struct adam_rates *rates);
int atoms_move_decoder(struct stepper *s, const struct adam_rates *rates);

/* Begin to tell all ranks the weights of own atoms, which nobody may use before they have ended. */
int encoder_begin(struct stepper *s);
int encoder_end(struct stepper *s);
int decoder_begin(struct stepper *s);
int decoder_end(struct stepper *s);

/* The moments of all atoms to the hosts.  The same status on every rank. */
int moments_gather(struct stepper *s);

#endif
