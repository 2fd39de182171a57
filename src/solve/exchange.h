/* SPDX-License-Identifier: BSD-3-Clause
 * What ranks send each other in a solve job: systems to their owners (order.h), results to rank 0.
 *
 * Floor: solve; included by src/solve only.  Collective. */
#ifndef SOLVE_EXCHANGE_H
#define SOLVE_EXCHANGE_H

#include "solve/solve_impl.h"

/* Send the systems of a block to their owners; s->recv <- the systems that this rank owns,
 * ascending. */
int solve_alltoallv(struct solve *s, const struct systems_block *block);

/* Gather steps and outcomes of all ranks on rank 0, in the order of the systems.  If each rank
 * solves the systems that it reads (s->batch.stays), the parts of the ranks are already in this
 * order, and the steps of rank 0 are already in `to`. */
int solve_gather(struct solve *s, const struct arrow_job *job, struct batch_results *to);

#endif
