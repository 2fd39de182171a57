/* SPDX-License-Identifier: BSD-3-Clause
 * The tables at the end of a run: phases over ranks, metrics.
 *
 * Floor: cli. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "base/phase.h"
#include "comm/comm.h"
#include "model/results.h"

/* One line a phase that ran: calls, seconds (least, mean, most over ranks), rate of all ranks
 * together over the most seconds.  Collective. */
int report_phases(struct comm *c, const struct phase *phases, int count);

/* Rank 0 alone. */
void report_metrics(const struct metrics *m, int has_codes);

#endif
