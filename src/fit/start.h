/* SPDX-License-Identifier: BSD-3-Clause
 * The rows of a fit, and the atoms that it begins with.
 *
 * Floor: fit; included by src/fit only. */
#ifndef FIT_START_H
#define FIT_START_H

#include "fit/fit.h"

struct fit;

/* Rows, shapes and arrays, before anything is read; ERR_INPUT, ERR_MEMORY.  Not collective. */
int fit_sources_open(struct fit *f);

/* The rows of part `part` are those to be in memory; they are not read yet.  Not collective. */
void fit_part_choose(struct fit *f, gidx part);
/* Read them, and hand them to the coder.  Collective. */
int fit_part_load(struct fit *f, gidx part);

/* Draw the start from the fitted rows, and bring it to all ranks.  Collective. */
int fit_start_draw(struct fit *f);
/* Take that of an earlier run; ERR_INPUT.  Not collective. */
int fit_start_take(struct fit *f);

/* Read what the first sweep needs; ERR_MEMORY says what would help.  Collective. */
int fit_state_start(struct fit *f);

#endif
