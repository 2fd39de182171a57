/* SPDX-License-Identifier: BSD-3-Clause
 * fit --top-s: a number, or chosen by (N.39).
 *
 * Floor: cli. */
#ifndef CLI_FIT_CHOOSE_H
#define CLI_FIT_CHOOSE_H

#include "cli/fit_job.h"

/* Read --top-s: o->top_s <- the number, 0: auto, for which the other options have to do.
 * ERR_USAGE.  Not collective. */
int fit_top_s_parse(struct fit_options *o);
/* Choose it, or take what an earlier run chose that is resumed: j->o and j->task <- the number.
 * The places were claimed; nothing is left of it but lines of the log.  Collective. */
int fit_top_s_choose(struct fit_job *j);
/* Why it is that, once there is a log.  Not collective. */
void fit_top_s_log(const struct fit_job *j);

#endif
