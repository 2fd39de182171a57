/* SPDX-License-Identifier: BSD-3-Clause
 * An estimate of log|S| where S is too large to form, by stochastic Lanczos quadrature.
 *
 * Floor: terminal; included by src/terminal only.  Not collective: rank 0 alone works. */
#ifndef TERMINAL_SLQ_H
#define TERMINAL_SLQ_H

#include "terminal/terminal_impl.h"

/* Lanczos steps of the first estimate, and the thirds of the workspace that SLQ divides it in: for
 * rows, for their parts of S, for vectors. */
enum { SLQ_STEPS_FIRST = 32, SLQ_WORKSPACES = 3 };

/* Estimate log|S|, and make the sums over rows, without forming S. */
int terminal_slq(struct terminal *w, struct joint_sums *sums);

#endif
