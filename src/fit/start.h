/* SPDX-License-Identifier: BSD-3-Clause
 * The rows of a fit, and the atoms that it begins with.
 *
 * Floor: fit; included by src/fit only. */
#ifndef FIT_START_H
#define FIT_START_H

#include "fit/fit.h"

struct fit;

/* Set up rows, shapes and arrays before anything is read.  ERR_INPUT, ERR_MEMORY.  Not
 * collective. */
int fit_sources_open(struct fit *f);

/* Choose part `part` as the rows in memory.  They are not read yet.  Not collective. */
void fit_part_choose(struct fit *f, gidx part);
/* Choose part `part`, read its rows, and give them to the coder.  Collective. */
int fit_part_load(struct fit *f, gidx part);
/* Begin to read the part of the next sweep, if parts are read ahead.  Not collective. */
void fit_part_begin(struct fit *f);
/* The bytes that reading ahead takes. */
gidx fit_ahead_bytes(const struct fit *f);

/* Draw the first atoms from the fitted rows, and send them to all ranks.  Collective. */
int fit_start_draw(struct fit *f);
/* Take the atoms of an earlier run.  ERR_INPUT.  Not collective. */
int fit_start_take(struct fit *f);

/* Read the rows that the first sweep needs.  ERR_MEMORY: the message says what would help.
 * Collective. */
int fit_state_start(struct fit *f);

#endif
