/* SPDX-License-Identifier: BSD-3-Clause
 * Codes that are chosen over all rows of a batch, on all ranks (N.46).
 *
 * Floor: train, called by step.c alone. */
#ifndef TRAIN_SELECTION_H
#define TRAIN_SELECTION_H

#include "device/train.h"
#include "train/step.h"

/* Score own rows (not collective).  Then choose the entries of the whole batch, with any_dead those
 * of dead atoms, too, and update the state's threshold (collective). */
int selection_scores(struct stepper *s, int any_dead);
int selection_run(struct stepper *s, int any_dead);

/* The job for the device's operations that choose codes of own rows. */
struct train_codes_job codes_job_of(const struct stepper *s, int any_dead);

#endif
