/* SPDX-License-Identifier: BSD-3-Clause
 * The end of a sweep: the state becomes what files hold, and is judged.
 *
 * Floor: stage.  Collective throughout. */
#ifndef STAGE_FIT_ROUND_H
#define STAGE_FIT_ROUND_H

#include "model/results.h"
#include "model/sink.h"
#include "stage/fit.h"

struct fit_round {
  int reroute;     /* route all rows again, first */
  idx rounds;      /* of routing */
  idx cosine_most; /* largest K for which the decoder cosine is computed */
};

/* Round the frames to f32, route again if wanted, solve the codes of every row again (N.5) and
 * round them.  Index, residuals and classes are stale where supports changed.  metrics: on rank 0,
 * those of the new state; density[k] is lent to it. */
int fit_round(struct fit *f, const struct fit_round *options, gidx *density, real tss,
              struct metrics *metrics);

/* *tss <- the total sum of squares of the rows about their column means. */
int fit_tss(const struct fit *f, real *tss);

/* *rss <- the sum of squares of the residuals, which must be those of the state as stored. */
int fit_rss(struct fit *f, real *rss);

/* out[width], on rank 0 <- the sums by (N.0) of chains[own row blocks][width]. */
int fit_sum(const struct fit *f, const real *chains, idx width, real *out);

/* Hand all supports and codes to the sink (used on rank 0), a row block at a time. */
int fit_supports_write(const struct fit *f, const struct support_sink *sink);

/* Hand the frames to the sink, rounded to f32.  Not collective. */
int fit_frames_write(const struct fit *f, const struct matrix_sink *sink);

#endif
