/* SPDX-License-Identifier: BSD-3-Clause
 * Choose the rows of the next step from the queues.
 *
 * Floor: serve; included by src/serve only. */
#ifndef SERVE_CHOOSE_H
#define SERVE_CHOOSE_H

#include "serve/step.h"

/* Choose the parts of step s->number.  Call with the lock held.  *is_there <- 0: the step has no
 * parts, because no request or file row waits, or because steps in work must end first.
 * ERR_MEMORY. */
int step_choose(struct serve *s, struct step *step, int *is_there);

#endif
