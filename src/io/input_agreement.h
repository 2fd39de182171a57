/* SPDX-License-Identifier: BSD-3-Clause
 * Check that all ranks see the same input files, and that these files do not change.
 *
 * Floor: io. */
#ifndef IO_INPUT_AGREEMENT_H
#define IO_INPUT_AGREEMENT_H

#include "comm/comm.h"

/* Make `status`, the status of opening the inputs, the same on all ranks, and check that all ranks
 * see the same files: ERR_INPUT names the rank and the file.  Every parallel command calls this
 * function when it has opened its inputs.  So the counts of later collective operations, which
 * depend on the inputs, are the same on all ranks.  Collective. */
int inputs_agree(struct comm *c, int status);

/* Call this before a result is published.  ERR_IO: an input of any rank changed while it was read.
 * result_publish() fails without this call.  Collective. */
int inputs_confirm(struct comm *c);

#endif
