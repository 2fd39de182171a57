/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over all rows of a refit by (N.0), and figures from them.
 *
 * Floor: refit.  Collective unless a comment says otherwise. */
#ifndef REFIT_SUMS_H
#define REFIT_SUMS_H

#include "model/results.h"
#include "refit/state.h"

/* The depth that a tree (base/block_tree.h) needs on a rank, for sums over `rows` rows.  The rank
 * pushes its own sum blocks, which may begin anywhere; then the tree is emptied, and the nodes of
 * all ranks are pushed.  Not collective. */
int refit_sums_depth(gidx rows, int size, int rank);

/* out[width], on rank 0 <- the sums of chains[own sum blocks][width], for `total` rows divided as
 * by refit_blocks_partition(). */
int refit_sum(struct comm *c, gidx total, const real *chains, idx width, real *out);

/* *tss, on rank 0 <- the total sum of squares of the rows about their column means; x[..][p]: own
 * rows. */
int refit_tss(struct comm *c, gidx total, const float *x, idx p, real *tss);

/* m, on rank 0 <- the figures of the rows' norms (model/norms.h), with a warning if a few of `what`
 * are massive; NULL: no warning.  ERR_MEMORY. */
int refit_norms(struct comm *c, gidx total, const float *x, idx p, real tss, const char *what,
                struct metrics *m);

/* *rss, on rank 0 <- the sum of squares of the residuals, which the state must hold. */
int refit_rss(struct refit_state *f, real *rss);

/* *bytes <- the largest peak memory of these functions, from a dry run of their allocations.  Not
 * collective. */
int refit_sums_bytes(const struct refit_state *f, gidx *bytes);

#endif
