/* SPDX-License-Identifier: BSD-3-Clause
 * fit --top-s and --encode-s: as given, as --find has them, or chosen by (N.39).
 *
 * Floor: cli. */
#ifndef CLI_FIT_CHOOSE_H
#define CLI_FIT_CHOOSE_H

#include "cli/fit_job.h"

/* Read --top-s: o->top_s <- the number; 0 for auto, which not all other options allow.  o->encode_s
 * <- the number that --find stable encodes with, unless it is given.  ERR_USAGE.  Not
 * collective. */
int fit_numbers_settle(struct fit_options *o);
/* With --top-s auto: choose the number, or take the choice of the run that is resumed.  j->o and
 * j->task <- the number.  The output paths must have been claimed; choosing leaves only lines in
 * the log.  Collective. */
int fit_top_s_choose(struct fit_job *j);
/* Say in the log how --top-s and --encode-s were set; call it once the log is open.  Not
 * collective. */
void fit_top_s_log(const struct fit_job *j);

#endif
