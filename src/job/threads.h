/* SPDX-License-Identifier: BSD-3-Clause
 * How many threads a rank runs: what was asked for, or its share of the cores of its machine.
 *
 * Floor: job.  The rules are those of base/cores.h. */
#ifndef JOB_THREADS_H
#define JOB_THREADS_H

#include "base/cores.h"
#include "job/run.h"

/* *all <- [size] the cores of each rank, on all ranks; the caller frees it.  Collective. */
int threads_open(struct comm *c, struct cores **all);

/* The number of threads of this rank: the option --threads; if it is 0, what the environment asks
 * for; if that asks for none, the rank's share of the cores that it may use. */
int threads_default(const struct run *run, idx option);

/* Log threads, cores and binding.  Warn if there are more threads than cores, if OpenMP binds
 * several ranks to the same cores, or if the launcher's binding leaves few cores.  Collective.
 * Call it after run_begin(), so that the log of the result has these lines. */
int threads_report(struct run *run, idx option);

#endif
