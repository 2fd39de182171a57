/* SPDX-License-Identifier: BSD-3-Clause
 * Choose the rows of the next step from the queues.
 *
 * Floor: serve; included by src/serve only. */
#ifndef SERVE_CHOOSE_H
#define SERVE_CHOOSE_H

#include "serve/step.h"

/* Plan step s->number; called with the lock held.  *is_there <- 0: no rows wait, or they must wait
 * for the steps in work. */
int step_choose(struct serve *s, struct step *step, int *is_there);

#endif
