/* SPDX-License-Identifier: BSD-3-Clause
 * The choice of codes among the scores of a whole batch, whose rows ranks divide (N.46).
 *
 * Floor: train, called by step.c alone. */
#ifndef TRAIN_SELECTION_H
#define TRAIN_SELECTION_H

#include "device/train.h"
#include "train/step.h"

/* selection_scores() scores own rows; not collective.  selection_run() then chooses the codes of
 * the whole batch, and with any_dead also the dead entries.  It updates the state's threshold;
 * collective. */
int selection_scores(struct stepper *s, int any_dead);
int selection_run(struct stepper *s, int any_dead);

/* The job for the device's operations that choose codes of own rows. */
struct train_codes_job codes_job_of(const struct stepper *s, int any_dead);

#endif
