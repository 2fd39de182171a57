/* SPDX-License-Identifier: BSD-3-Clause
 * Colouring: from the supports of all rows to classes of atoms that share no row (N.6).
 *
 * Floor: refit.  Knows no files: supports come from a source, or from the ranks of a refit.
 *
 * Every rank holds a share of the rows (coloring.h).  The memory of colouring is known before any
 * work. */
#ifndef REFIT_COLOR_H
#define REFIT_COLOR_H

#include "comm/comm.h"
#include "model/classes.h"
#include "model/identity.h"
#include "model/supports.h"
#include "refit/coloring.h"
#include "refit/state.h"

struct color_result { /* the same on every rank, except for the times */
  struct classes classes;
  struct class_report report;
  uint64_t fingerprint;
  struct identity inputs; /* the supports */
  double read_seconds, color_seconds;
};

/* Colour the supports of a source.  ERR_MEMORY, with the numbers, if a rank's share takes more
 * memory than the rank may take; only offsets are read before.  Collective; the same status on all
 * ranks. */
int color_supports(struct comm *c, const struct support_source *source, int threads,
                   struct color_result *result);
void color_free(struct color_result *result);

/* Colour the supports that the ranks of a refit hold, with a looker if there is one (coloring.h);
 * the same classes on every rank.  Collective. */
int color_state(const struct refit_state *f, const struct color_looker *looker,
                struct classes *classes);

/* Log how many atoms the classes have.  If they have fewer than two on average, nearly all atoms
 * move one after another, and another line recommends the joint update. */
void color_log(const struct class_report *report);

/* *bytes <- the memory of color_state() on a rank, from a dry run of its allocations.  Only sizes
 * are used.  Not collective. */
int color_state_bytes(const struct refit_state *f, gidx *bytes);

/* Read rows first .. first + n - 1 in a worker thread.  Not collective. */
int supports_access(const struct support_source *source, gidx first, gidx n, int with_codes,
                    struct supports *out);

#endif
