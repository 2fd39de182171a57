/* SPDX-License-Identifier: BSD-3-Clause
 * What ranks send each other in a solve job: systems to their owners, results to rank 0.
 *
 * Floor: solve; included by src/solve only.  Collective. */
#ifndef SOLVE_EXCHANGE_H
#define SOLVE_EXCHANGE_H

#include "solve/solve_impl.h"

/* Send what was read to the owners; recv <- this rank's systems, ascending. */
int solve_alltoallv(struct solve *s, const struct systems_block *block);

/* Steps and outcomes of all ranks to rank 0, in the order of the systems.  Where these stay with
 * who reads them, ranks' parts are one behind another, and rank 0 has its own where they belong. */
int solve_gather(struct solve *s, const struct arrow_job *job, struct batch_results *to);

#endif
