/* SPDX-License-Identifier: BSD-3-Clause
 * The part of a step that is divided by atoms: the gradients of the rank's own atoms, their move,
 * and the exchange of their weights.
 *
 * Floor: train, called by step.c, selection.c and widths.c.  GPUs compute while weights go to all
 * ranks: the encoder is sent while the decoder's atoms move, the decoder while the next batch is
 * scored. */
#ifndef TRAIN_ATOMS_H
#define TRAIN_ATOMS_H

#include "train/step.h"

/* The entries `l`, at most `most` per row, in the form that operations of the device take. */
struct train_entries entries_of(const struct entry_lists *l, idx most);

/* Set s->is_dead and s->any_dead from s->idle.  atoms_begin_idle() is for the start of the steps;
 * atoms_count_idle() first counts the rows of this batch in s->idle.  Only encoder_begin(),
 * decoder_begin() and moments_gather() are collective here. */
int atoms_begin_idle(struct stepper *s);
int atoms_count_idle(struct stepper *s);

/* atoms_clear() sets the gradients of own atoms to 0.  atoms_gradients() adds what the live entries
 * of all rows contribute, and with any_dead the dead entries, too. */
int atoms_clear(struct stepper *s);
int atoms_gradients(struct stepper *s, int any_dead);

/* By Adam: atoms_move_encoder() moves the encoder's rows and the biases of own atoms,
 * atoms_move_decoder() moves their rows of the decoder. */
int atoms_move_encoder(struct stepper *s, const struct adam_rates *rates);
int atoms_move_decoder(struct stepper *s, const struct adam_rates *rates);

/* Begin to send the weights of own atoms to all ranks.  No rank may use them before encoder_end()
 * or decoder_end(). */
int encoder_begin(struct stepper *s);
int encoder_end(struct stepper *s);
int decoder_begin(struct stepper *s);
int decoder_end(struct stepper *s);

/* Bring the moments of all atoms to the hosts of all ranks.  The same status on every rank. */
int moments_gather(struct stepper *s);

#endif
