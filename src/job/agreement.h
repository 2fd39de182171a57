/* SPDX-License-Identifier: BSD-3-Clause
 * What ranks agree on before work begins, and before a result is published: their options, and the
 * inputs that they see.
 *
 * Floor: job. */
#ifndef JOB_AGREEMENT_H
#define JOB_AGREEMENT_H

#include "job/run.h"

/* Apply the deck, which only rank 0 reads, since only rank 0 has a standard input.  Check that all
 * ranks run the same program with the same options, except those that only change speed.  status:
 * of options_parse() on this rank.  ERR_INPUT names the rank and the first option that differs.
 * Collective. */
int options_agree(struct run *run, const char **arguments, int status);

/* Make the status of opening inputs common, and check that all ranks see the same files: ERR_INPUT
 * names the rank and the file.  Every parallel command opens its inputs in the argument of such a
 * call, before any collective operation whose counts depend on them.  Collective. */
int inputs_agree(struct comm *c, int status);

/* Before a result is published: ERR_IO if an input of any rank changed while it was read.
 * result_publish() fails without this call.  Collective. */
int inputs_confirm(struct comm *c);

#endif
