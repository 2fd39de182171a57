/* SPDX-License-Identifier: BSD-3-Clause
 * What a refit did, and from where it can go on: the group /fit of dictionary.h5.
 *
 * Floor: io.  Not collective. */
#ifndef IO_FIT_HISTORY_H
#define IO_FIT_HISTORY_H

#include "base/memory.h"
#include "io/outputs.h"

/* One line of /fit/history; line 0 is the start.  Columns are named in the file. */
enum { HISTORY_COLUMNS = 8 };
struct history_line {
  real sweep, explained_variance, held_out, dead, revived, accepted, rejected, escalated;
};

/* The root attributes that a resumed run must agree with. */
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

/* Add all of it to a dictionary that is being written; lines[facts->sweeps + 1]. */
int fit_write(struct matrix_file *f, const struct fit_facts *facts,
              const struct history_line *lines, const struct fit_atoms *atoms);

/* Read facts and lines of the dictionary at path, into the arena.  ERR_INPUT when it is not one
 * that a refit wrote, or the two do not agree. */
int fit_read(const char *path, struct arena *arena, struct fit_facts *facts,
             struct history_line **lines);

#endif
