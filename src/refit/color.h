/* SPDX-License-Identifier: BSD-3-Clause
 * Colouring: the supports of all rows in, classes of atoms that share no row out (N.6).
 *
 * Floor: refit.  Knows no files: supports come from a source, or from the ranks of a refit.
 *
 * The greedy order is serial, and its work is small beside a sweep's: rank 0 does it alone, with
 * the supports of all rows in its memory.  What that takes is known before any work. */
#ifndef REFIT_COLOR_H
#define REFIT_COLOR_H

#include "comm/comm.h"
#include "model/classes.h"
#include "model/identity.h"
#include "model/supports.h"
#include "refit/state.h"

struct color_result { /* of rank 0; elsewhere empty */
  struct classes classes;
  struct class_report report;
  uint64_t fingerprint;
  struct identity inputs; /* the supports */
  double read_seconds, color_seconds;
};

/* Colour the supports of a source.  ERR_MEMORY with the numbers, before anything is read, when they
 * are more than rank 0 may take.  Collective; the same status on every rank. */
int color_supports(struct comm *c, const struct support_source *source,
                   struct color_result *result);
void color_free(struct color_result *result);

/* Colour the supports that the ranks of a refit hold; the same classes on every rank.
 * Collective. */
int color_state(const struct refit_state *f, struct classes *classes);

/* *bytes <- what these two take on rank 0 at most: their allocations, run dry.  Of a state only the
 * sizes are used.  Not collective. */
int color_supports_bytes(const struct support_source *source, gidx *bytes);
int color_state_bytes(const struct refit_state *f, gidx *bytes);

/* Read rows first .. first + n - 1 in a worker thread.  Not collective. */
int supports_access(const struct support_source *source, gidx first, gidx n, int with_codes,
                    struct supports *out);

#endif
