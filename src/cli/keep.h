/* SPDX-License-Identifier: BSD-3-Clause
 * refit --keep-supports: rows, and an encoder or a dictionary with supports, become atoms that are
 * refitted on supports that stay, and the codes that are solved on them.
 *
 * Floor: cli. */
#ifndef CLI_KEEP_H
#define CLI_KEEP_H

#include "cli/refit_job.h"

/* Is that what the options ask for?  An encoder asks for it, too. */
int keep_is_wanted(const struct refit_options *o);
/* ERR_USAGE: options that do not go together.  Not collective. */
int keep_options_check(const struct refit_options *o);

/* All of the command.  Collective; the same status on every rank. */
int keep_command(struct run *run, const struct refit_options *o);

#endif
