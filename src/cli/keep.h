/* SPDX-License-Identifier: BSD-3-Clause
 * refit --keep-supports: move the atoms and solve the codes on supports that do not change.  An
 * encoder gives the supports (--encoder), or they are read from a file (--supports).
 *
 * Floor: cli. */
#ifndef CLI_KEEP_H
#define CLI_KEEP_H

#include "cli/refit_job.h"

/* Is --keep-supports or --encoder given?  Either asks for a refit on fixed supports. */
int keep_is_wanted(const struct refit_options *o);
/* ERR_USAGE for options that exclude each other, or need one that is missing.  Not collective. */
int keep_options_check(const struct refit_options *o);

/* Run the command.  Collective; the same status on every rank. */
int keep_command(struct run *run, const struct refit_options *o);

#endif
