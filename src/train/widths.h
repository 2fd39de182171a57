/* SPDX-License-Identifier: BSD-3-Clause
 * The side of a step that knows of nested widths (N.47): a row has an error for each of them.
 *
 * Floor: train, called by step.c and atoms.c alone.  Not collective. */
#ifndef TRAIN_WIDTHS_H
#define TRAIN_WIDTHS_H

#include "model/triad.h"
#include "train/step.h"

/* What several widths need beside. */
int widths_open(struct stepper *s, gidx own);
void widths_close(struct stepper *s);

/* The codes of own rows, a list for each of e->blocks blocks of a row: what they and the decoder
 * give, or are given, has so many vectors a row. */
int widths_lists(struct stepper *s, const struct entry_rows *e, struct triad_lists *lists);

/* Scale the errors of own rows, and add up what moves each block. */
int widths_scale(struct stepper *s, const struct entry_rows *e, float factor);

/* Add what the entries of all rows say to the decoder gradients of own atoms. */
int widths_gradients(struct stepper *s, const struct entry_rows *e);

/* Where own rows begin in the errors. */
float *widths_error(const struct stepper *s, const struct entry_rows *e);

#endif
