/* SPDX-License-Identifier: BSD-3-Clause
 * The queues, and which of their rows the next step takes.
 *
 * Floor: serve; included by src/serve only. */
#ifndef SERVE_CHOOSE_H
#define SERVE_CHOOSE_H

#include "serve/step.h"

/* Plan the step whose number is s->number, under the lock; *is_there <- 0: nothing waits, or it has
 * to wait for the steps in work. */
int step_choose(struct serve *s, struct step *step, int *is_there);

#endif
