/* SPDX-License-Identifier: BSD-3-Clause
 * The part of a step that handles nested widths (N.47): a row has an error for each width.  A block
 * is the atoms from one width to the next.
 *
 * Floor: train, called by step.c and atoms.c alone.  Not collective. */
#ifndef TRAIN_WIDTHS_H
#define TRAIN_WIDTHS_H

#include "model/triad.h"
#include "train/step.h"

/* Allocate what several widths need. */
int widths_open(struct stepper *s, gidx own);
void widths_close(struct stepper *s);

/* *lists <- the codes of own rows, one list per row and block.  Results of operations on the lists
 * have e->blocks vectors per row. */
int widths_lists(struct stepper *s, const struct entry_rows *e, struct triad_lists *lists);

/* Scale the errors of own rows, and sum for each block the errors of all widths that contain it. */
int widths_scale(struct stepper *s, const struct entry_rows *e, float factor);

/* Add what the entries of all rows contribute to the decoder gradients of own atoms.  Does nothing
 * if the decoder is fixed. */
int widths_gradients(struct stepper *s, const struct entry_rows *e);

/* Where own rows begin in e->error. */
float *widths_error(const struct stepper *s, const struct entry_rows *e);

#endif
