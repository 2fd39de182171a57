/* SPDX-License-Identifier: BSD-3-Clause
 * The part of a step that is divided by atoms: the gradients of the rank's own atoms, their move,
 * and the exchange of their weights.
 *
 * Floor: train, called by step.c alone.  Weights go to all ranks while GPUs compute: those of the
 * encoder while decoder atoms move, those of the decoder while the next batch is scored. */
#ifndef TRAIN_ATOMS_H
#define TRAIN_ATOMS_H

#include "train/step.h"

/* The entries of these rows, in the form that operations of the device take. */
struct train_entries entries_of(const struct entry_lists *l, idx most);

/* Set s->is_dead and s->any_dead.  The first function does so when the steps begin; the second
 * counts the rows of this batch, and updates s->idle, too.  Not collective, as all here except
 * encoder_begin(), decoder_begin() and moments_gather(). */
int atoms_begin_idle(struct stepper *s);
int atoms_count_idle(struct stepper *s);

/* Set the gradients of own atoms to 0; then add what the entries of all rows contribute. */
int atoms_clear(struct stepper *s);
int atoms_gradients(struct stepper *s, int any_dead);

/* Move the encoder and bias of own atoms; or their decoder. */
int atoms_move_encoder(struct stepper *s, const struct adam_rates *rates);
int atoms_move_decoder(struct stepper *s, const struct adam_rates *rates);

/* Begin to send the weights of own atoms to all ranks.  No rank may use them before encoder_end()
 * or decoder_end(). */
int encoder_begin(struct stepper *s);
int encoder_end(struct stepper *s);
int decoder_begin(struct stepper *s);
int decoder_end(struct stepper *s);

/* Bring the moments of all atoms to the hosts.  The same status on every rank. */
int moments_gather(struct stepper *s);

#endif
