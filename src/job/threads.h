/* SPDX-License-Identifier: BSD-3-Clause
 * How many threads a rank runs: what was asked for, or its share of the cores of its machine.
 *
 * Floor: job.  The rules are those of base/cores.h. */
#ifndef JOB_THREADS_H
#define JOB_THREADS_H

#include "base/cores.h"
#include "job/run.h"

/* Gather the cores of each rank on all ranks; *all, [size], is freed by the caller.  Collective. */
int threads_open(struct comm *c, struct cores **all);

/* Threads for this rank: the option --threads; if that is 0, what the environment asks for;
 * otherwise the rank's share of the cores that it may use. */
int threads_default(const struct run *run, idx option);

/* Log threads, cores and binding.  Warn if there are more threads than cores, or if the launcher's
 * binding leaves only few.  Collective; call it after run_begin(), so that the result's log has
 * it. */
int threads_report(struct run *run, idx option);

#endif
