/* SPDX-License-Identifier: BSD-3-Clause
 * An estimate of log|S| where S is too large to form, by stochastic Lanczos quadrature.
 *
 * Floor: terminal; included by src/terminal only.  Not collective: rank 0 alone works. */
#ifndef TERMINAL_SLQ_H
#define TERMINAL_SLQ_H

#include "terminal/terminal_impl.h"

/* SLQ_STEPS_FIRST: the Lanczos steps of the first estimate.  The workspace has SLQ_WORKSPACES equal
 * parts: for rows, for what rows contribute to S, and for Lanczos vectors. */
enum { SLQ_STEPS_FIRST = 32, SLQ_WORKSPACES = 3 };

/* Estimate log|S| without forming S, and make the sums over rows. */
int terminal_slq(struct terminal *w, struct joint_sums *sums);

#endif
