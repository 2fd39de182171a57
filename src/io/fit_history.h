/* SPDX-License-Identifier: BSD-3-Clause
 * The history of a refit or fit, from which a resumed run continues: the group /fit of
 * dictionary.h5.
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

/* One line of /fit/history: a sweep, or in line 0 the state before the first sweep.  An attribute
 * names the columns. */
enum { HISTORY_COLUMNS = 8 };
struct history_line {
  real sweep, explained_variance, held_out, dead, revived, accepted, rejected, escalated;
};

/* The settings of a run; a resumed run must have the same ones. */
struct fit_start {
  gidx directions, reroute, cosine_limit; /* options */
  gidx rounds;                            /* of routing, as the supports say */
  gidx top_s;                             /* atoms per row; 0: an older file, which does not have
                                           * it */
  real rho;
  struct identity inputs; /* with reroute .classes is 0, since the classes then change from sweep to
                           * sweep */
  struct identity held;   /* .rows: hash of the held-out rows; 0: none */
};

/* The root attributes and hashes of a dictionary that refit wrote. */
struct fit_facts {
  gidx sweeps;
  struct fit_start start;
  struct identity contents; /* the dictionary, and the supports of the same sweep */
};

/* Parts of the group that are also in files of other kinds.  steps[k]: the outcome of each atom's
 * step in the last sweep.  ERR_INPUT: the file has another number of atoms. */
int fit_start_write(const struct h5_file *h5, const struct fit_start *start);
int fit_start_read(const struct h5_file *h5, struct fit_start *start);
int fit_steps_write(const struct h5_file *h5, const struct atom_step *steps, idx k);
int fit_steps_read(const struct h5_file *h5, struct atom_step *steps, idx k);

/* Add the whole group to a dictionary of k atoms that is being written; lines[facts->sweeps +
 * 1]. */
int fit_write(struct matrix_output *f, const struct fit_facts *facts,
              const struct history_line *lines, const struct atom_step *steps, idx k);

/* Read the facts and lines of the dictionary at path into the arena.  ERR_INPUT: no refit wrote the
 * dictionary, hashes of its contents are missing, or facts and lines disagree. */
int fit_read(const char *path, struct arena *arena, struct fit_facts *facts,
             struct history_line **lines);

/* What `fit` writes about a dictionary.  dictionary.h5 has the dictionary of the best sweep,
 * state.h5 that of the last sweep. */
struct fit_record {
  struct fit_point point; /* the state after the last sweep; of a fit by parts it may contain
                           * sums */
  gidx best;              /* the best sweep so far */
  gidx rounds, top_s;     /* routing rounds, atoms per row */
};

/* Add all except atoms and mean to a dictionary of k atoms of p columns that is being written. */
int fit_record_write(struct matrix_output *f, const struct fit_record *record, idx k, idx p);
/* Read all except atoms, mean, sums, rounds and top_s from the dictionary at path, into the arena.
 * ERR_INPUT: no fit wrote it. */
int fit_record_read(const char *path, struct arena *arena, struct fit_record *record);
/* Read the sums of a fit by parts, or with is_conjugate the weights of atoms instead.  Also read
 * the number of parts since a row used each atom.  ERR_INPUT: there are none, or they have other
 * shapes. */
int fit_sums_read(const char *path, struct arena *arena, idx k, idx p, int is_conjugate,
                  struct fit_point *point);

#endif
