/* SPDX-License-Identifier: BSD-3-Clause
 * `fit --find features`: atoms that fire where the features of rows do, in the place of those that
 * describe rows best.
 *
 * Floor: cli. */
#ifndef CLI_FIT_FIND_H
#define CLI_FIT_FIND_H

#include "cli/fit_job.h"

/* The command, with options that were told.  Collective. */
int fit_find_command(struct run *run, const struct fit_options *o);

/* Does --find ask for that? */
int fit_finds_features(const struct fit_options *o);

#endif
