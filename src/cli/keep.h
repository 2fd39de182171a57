/* SPDX-License-Identifier: BSD-3-Clause
 * refit --keep-supports: refit atoms on supports that stay, and solve the codes on them.  Supports
 * come from an imported encoder, or from a file beside a dictionary.
 *
 * Floor: cli. */
#ifndef CLI_KEEP_H
#define CLI_KEEP_H

#include "cli/refit_job.h"

/* Do the options ask for it?  --encoder does, too. */
int keep_is_wanted(const struct refit_options *o);
/* ERR_USAGE for options that exclude each other.  Not collective. */
int keep_options_check(const struct refit_options *o);

/* Run the command.  Collective; the same status on every rank. */
int keep_command(struct run *run, const struct refit_options *o);

#endif
