/* SPDX-License-Identifier: BSD-3-Clause
 * The history of a refit, which a resumed one goes on from: the group /fit of dictionary.h5.
 *
 * Floor: io.  Not collective. */
#ifndef IO_FIT_HISTORY_H
#define IO_FIT_HISTORY_H

#include "base/memory.h"
#include "io/matrix.h"
#include "io/schema.h"

extern const struct object_table fit_objects;

/* One line of /fit/history: a sweep, or in line 0 the start.  An attribute names the columns. */
enum { HISTORY_COLUMNS = 8 };
struct history_line {
  real sweep, explained_variance, held_out, dead, revived, accepted, rejected, escalated;
};

/* Root attributes; a resumed run has to agree with them. */
struct fit_facts {
  gidx sweeps, directions, reroute;
};

/* What became of each atom in the last sweep; arrays of [k]. */
struct fit_atoms {
  idx k;
  const idx *accepted, *status, *retries;
  const real *ridge, *log_det, *mantissa;
  const gidx *exponent;
};

/* Add lines[sweeps + 1] to a dictionary that is being written, and the number of sweeps. */
int history_write(struct matrix_output *f, const struct history_line *lines, gidx sweeps);

/* Add all of it to a dictionary that is being written; lines[facts->sweeps + 1]. */
int fit_write(struct matrix_output *f, const struct fit_facts *facts,
              const struct history_line *lines, const struct fit_atoms *atoms);

/* Read the facts and lines of the dictionary at path into the arena.  ERR_INPUT when no refit wrote
 * it, or facts and lines do not agree. */
int fit_read(const char *path, struct arena *arena, struct fit_facts *facts,
             struct history_line **lines);

#endif
