/* SPDX-License-Identifier: BSD-3-Clause
 * fit --top-s and --encode-s: as given, as --find has them, or chosen by (N.39).
 *
 * Floor: cli. */
#ifndef CLI_FIT_CHOOSE_H
#define CLI_FIT_CHOOSE_H

#include "cli/fit_job.h"

/* Read --top-s: o->top_s <- the number, 0: auto, for which the other options have to do;
 * o->encode_s <- what --find stable encodes with, where it is not given.  ERR_USAGE.  Not
 * collective. */
int fit_numbers_settle(struct fit_options *o);
/* Choose it, or take what an earlier run chose that is resumed: j->o and j->task <- the number.
 * The places were claimed; nothing is left of it but lines of the log.  Collective. */
int fit_top_s_choose(struct fit_job *j);
/* Why they are that, once there is a log.  Not collective. */
void fit_top_s_log(const struct fit_job *j);

#endif
