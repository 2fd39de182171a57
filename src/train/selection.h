/* SPDX-License-Identifier: BSD-3-Clause
 * The codes of a batch that are chosen over all its rows and ranks (N.46).
 *
 * Floor: train, called by step.c alone. */
#ifndef TRAIN_SELECTION_H
#define TRAIN_SELECTION_H

#include "device/train.h"
#include "train/step.h"

/* The scores of own rows, which is not collective; then, of the whole batch, live and, with
 * any_dead, dead entries, and the state's threshold goes on.  Collective. */
int selection_scores(struct stepper *s, int any_dead);
int selection_run(struct stepper *s, int any_dead);

/* What operations of the device take to choose codes of own rows. */
struct train_codes_job codes_job_of(const struct stepper *s, int any_dead);

#endif
