/* SPDX-License-Identifier: BSD-3-Clause
 * The values of --top-s and --encode-s of fit: given, implied by --find, or chosen by (N.39).
 *
 * Floor: cli. */
#ifndef CLI_FIT_CHOOSE_H
#define CLI_FIT_CHOOSE_H

#include "cli/fit_job.h"

/* Read --top-s: o->top_s <- the number, or 0 for auto.  o->encode_s <- the number with which --find
 * stable encodes, unless it is given.  ERR_USAGE: --top-s is wrong, or other options exclude it.
 * Not collective. */
int fit_numbers_settle(struct fit_options *o);
/* With --top-s auto: choose the number, or take that of the run that is resumed; j->o and j->task
 * <- the number.  Without auto do nothing.  Call this when the output paths are claimed.  Choosing
 * writes lines to the log, but no files.  Collective. */
int fit_top_s_choose(struct fit_job *j);
/* Log how --top-s and --encode-s were set, if they were not both given.  Call this when the log is
 * open.  Not collective. */
void fit_top_s_log(const struct fit_job *j);

#endif
