/* SPDX-License-Identifier: BSD-3-Clause
 * `fit --find features`: find atoms that are active in the rows that have a feature, instead of
 * atoms that describe the rows best.
 *
 * Floor: cli. */
#ifndef CLI_FIT_FIND_H
#define CLI_FIT_FIND_H

#include "cli/fit_job.h"

/* Run `sagitta fit` with these options, which ask for features.  Collective. */
int fit_find_command(struct run *run, const struct fit_options *o);

/* Is --find features given? */
int fit_finds_features(const struct fit_options *o);

#endif
