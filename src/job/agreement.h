/* SPDX-License-Identifier: BSD-3-Clause
 * What ranks agree on before work begins, and before a result is published: what they were told,
 * and which inputs they see.
 *
 * Floor: job. */
#ifndef JOB_AGREEMENT_H
#define JOB_AGREEMENT_H

#include "job/run.h"

/* Apply the deck, which rank 0 alone reads, since it alone has a standard input, and check that all
 * ranks run the same program with the same options, but for those of speed alone.  status is that
 * of options_parse() on this rank.  ERR_INPUT names the rank and the first option that differs.
 * Collective. */
int options_agree(struct run *run, const char **arguments, int status);

/* Make the status of opening inputs common, then check that all ranks see the same files:
 * ERR_INPUT names the rank and the file.  Every parallel command opens its inputs in a call of it,
 * before any collective operation whose counts depend on them.  Collective. */
int inputs_agree(struct comm *c, int status);

/* Before a result is published: ERR_IO when an input of any rank changed while it was read.
 * result_publish() fails without it.  Collective. */
int inputs_confirm(struct comm *c);

#endif
