/* SPDX-License-Identifier: BSD-3-Clause
 * The tables at the end of a run: phases over ranks, metrics.
 *
 * Floor: cli. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "base/phase.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/results.h"

/* One line a phase that ran: calls, seconds (least, mean, most over ranks), rate of all ranks
 * together over the most seconds.  Collective. */
int report_phases(struct comm *c, const struct phase *phases, int count);

/* What the certified filter did, one line and one for each reason to go without; nothing where it
 * was off.  *counts becomes that of all ranks.  Collective. */
int report_filter(struct comm *c, struct filter_counts *counts);

/* Rank 0 alone. */
void report_metrics(const struct metrics *m, int has_codes);

#endif
