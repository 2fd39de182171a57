/* SPDX-License-Identifier: BSD-3-Clause
 * Does a fit have room in the memory of its ranks and GPUs?
 *
 * Floor: fit; included by src/fit only. */
#ifndef FIT_PLAN_H
#define FIT_PLAN_H

#include "fit/fit.h"

struct fit;

/* Nothing is read before that is known; then the GPU's context is made meanwhile.  ERR_MEMORY says
 * what is short, and what would fit.  Collective. */
int fit_state_plan(struct fit *f);

#endif
