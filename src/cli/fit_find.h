/* SPDX-License-Identifier: BSD-3-Clause
 * `fit --find features`: atoms that fire when features of rows do, instead of atoms that describe
 * the rows best.
 *
 * Floor: cli. */
#ifndef CLI_FIT_FIND_H
#define CLI_FIT_FIND_H

#include "cli/fit_job.h"

/* Run the command, with parsed options.  Collective. */
int fit_find_command(struct run *run, const struct fit_options *o);

/* Is --find features given? */
int fit_finds_features(const struct fit_options *o);

#endif
