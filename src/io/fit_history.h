/* SPDX-License-Identifier: BSD-3-Clause
 * The history of a refit, which a resumed one goes on from: the group /fit of dictionary.h5.
 *
 * Floor: io.  Not collective. */
#ifndef IO_FIT_HISTORY_H
#define IO_FIT_HISTORY_H

#include "base/memory.h"
#include "io/identity.h"
#include "io/matrix.h"
#include "io/schema.h"
#include "model/atom_step.h"
#include "model/points.h"

extern const struct object_table fit_objects;

/* One line of /fit/history: a sweep, or in line 0 the start.  An attribute names the columns. */
enum { HISTORY_COLUMNS = 8 };
struct history_line {
  real sweep, explained_variance, held_out, dead, revived, accepted, rejected, escalated;
};

/* What a run was begun with; a resumed one has to agree with all of it. */
struct fit_start {
  gidx directions, reroute, cosine_limit; /* options */
  gidx rounds;                            /* as the supports say */
  gidx top_s;                             /* atoms a row; 0: of an older file */
  real rho;
  struct identity inputs; /* classes: 0 with reroute, when they change from sweep to sweep */
  struct identity held;   /* .rows: those that the run is judged by; 0: none */
};

/* Root attributes and hashes. */
struct fit_facts {
  gidx sweeps;
  struct fit_start start;
  struct identity contents; /* of the dictionary, and of the supports of the same sweep */
};

/* Parts of what follows, as other files have them too; steps[k] is what became of each atom in the
 * last sweep.  ERR_INPUT when what is read is not of k atoms. */
int fit_start_write(const struct h5_file *h5, const struct fit_start *start);
int fit_start_read(const struct h5_file *h5, struct fit_start *start);
int fit_steps_write(const struct h5_file *h5, const struct atom_step *steps, idx k);
int fit_steps_read(const struct h5_file *h5, struct atom_step *steps, idx k);

/* Add all of it to a dictionary of k atoms that is being written; lines[facts->sweeps + 1]. */
int fit_write(struct matrix_output *f, const struct fit_facts *facts,
              const struct history_line *lines, const struct atom_step *steps, idx k);

/* Read the facts and lines of the dictionary at path into the arena.  ERR_INPUT when no refit wrote
 * it, it does not say what it was made from, or facts and lines do not agree. */
int fit_read(const char *path, struct arena *arena, struct fit_facts *facts,
             struct history_line **lines);

/* What `fit` says of its dictionaries: dictionary.h5 holds the best one, state.h5 the last. */
struct fit_record {
  struct fit_point point; /* what was reached last; of a fit by parts it may have the sums */
  gidx best;              /* the best sweep until then */
  gidx rounds, top_s;     /* of routing, and atoms a row */
};

/* Add all but atoms and mean to a dictionary of k atoms of p columns that is being written. */
int fit_record_write(struct matrix_output *f, const struct fit_record *record, idx k, idx p);
/* Read all but atoms, mean and sums from the dictionary at path, into the arena.  ERR_INPUT when no
 * fit wrote it. */
int fit_record_read(const char *path, struct arena *arena, struct fit_record *record);
/* The sums, or the weights alone.  ERR_INPUT when there are none, or of other shapes. */
int fit_sums_read(const char *path, struct arena *arena, idx k, idx p, int is_conjugate,
                  struct fit_point *point);

#endif
