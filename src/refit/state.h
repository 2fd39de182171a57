/* SPDX-License-Identifier: BSD-3-Clause
 * The state of a refit over all ranks: rows and their residuals, codes, frames.
 *
 * Floor: refit.  Knows no files: rows, atoms and supports come from sources.
 *
 * Rows are dealt in whole sum blocks of ROW_BLOCK, consecutive ones to a rank, and stay there with
 * their residuals, supports and codes.  Frames are on every rank, or once on every node
 * (refit/frames.h). */
#ifndef REFIT_STATE_H
#define REFIT_STATE_H

#include "base/memory.h"
#include "comm/shared.h"
#include "device/device.h"
#include "model/dictionary.h"
#include "model/identity.h"
#include "model/rows.h"
#include "model/supports.h"

struct refit_task {
  const struct row_source *rows;
  const struct atom_source *atoms;
  const struct support_source *supports; /* with codes; every row as many atoms */
  const real *mean;                      /* [p] subtracted from rows; NULL: none */
  real rho;                              /* penalty on codes */
  int nonnegative;                       /* codes are at least 0; d = 1 */
  idx top_s;                             /* atoms a row, where there are no rows to tell */
  idx threads;
  const char *variant;
  const char *filter;    /* of rerouting, as struct device_options; NULL: off */
  int writes;            /* supports are written again, so that they have to be in order */
  int no_steps;          /* atoms take none by systems of their own: no residuals are held */
  int colors;            /* the job finds classes: rank 0 must have the memory for it */
  int has_table;         /* the frames are wanted as files have them, too; then the next two say */
  int routes;            /* that a coder has the whole dictionary as sweeps end, and */
  idx max_cosine;        /* the largest K for which the decoder cosine is computed then */
  int shares;            /* frames and table are once a node (refit/frames.h) */
  int shares_gram;       /* lists, and Gram rows on their way, of joint updates are once a node */
  int lends_sums;        /* and their sums are wanted as a whole on rank 0 (fit/update.h) */
  gidx beside;           /* bytes that the job keeps beside the state, for the memory checks */
  struct identity named; /* what the codes were solved for, as far as it is known */
};

struct refit_state {
  const struct refit_task *task; /* borrowed, with its sources */
  struct comm *c;                /* borrowed */
  struct device device;
  idx k, d, p, s; /* s: atoms a row */
  real rho;
  gidx total;                /* rows of all ranks */
  gidx block_first, blocks;  /* own sum blocks */
  gidx first;                /* the first own row */
  idx n;                     /* own rows */
  float *x;                  /* [n][p] rows, centred */
  real *residual;            /* [n][p], but for a task without steps */
  idx *atoms;                /* [n][s] supports */
  float *score;              /* [n][s] */
  real *codes;               /* [n][s][d] */
  real *frames;              /* [k][d][p] */
  float *table;              /* [k][d][p] where the task has one: the caller's, for files */
  struct comm_shared shared; /* these two, where they are once a node */
  idx own_first, own_count;  /* atoms whose frames this rank writes; all where nothing is shared */
  int names;                 /* do they count for the hash of all: in the memory of rank 0? */
  gidx *start;               /* [k + 1] where the entries of each atom begin in entry */
  gidx *entry;               /* [n s] of an atom by ascending own row: row s + place in the row;
                              * stale after resident_index() */
  idx *counts;               /* [size][k] rows of each atom on each rank */
  idx *tallies;              /* [n_tallies][k] work: the same of equal parts of the own entries */
  int n_tallies;
  struct identity inputs;   /* of the state as it was loaded */
  struct identity contents; /* dictionary, supports and codes as files have them: refit_sweep_end */
  struct arena arena;
};

/* The sum blocks of a rank; refit_rows_partition returns its rows, *first where they begin. */
void refit_blocks_partition(gidx n, int size, int rank, gidx *block_first, gidx *blocks);
gidx refit_rows_partition(gidx n, int size, int rank, gidx *first);

/* Rows of an atom on all ranks. */
gidx refit_atom_rows(const struct refit_state *f, idx atom);

/* Read rows first .. first + n - 1 into x[n][p]; *terms <- it and their hash's terms
 * (model/identity.h); then the mean is subtracted, by so many threads.  ERR_INPUT.  Not
 * collective. */
int refit_rows_load(const struct row_source *rows, const real *mean, gidx first, gidx n,
                    int threads, float *x, uint64_t *terms);

/* ERR_INPUT when the sources' shapes do not fit together; the first lets rows differ in length.
 * Not collective. */
int refit_shapes_check(const struct row_source *rows, const struct atom_source *atoms,
                       const struct support_source *supports);
int refit_task_check(const struct refit_task *task);

/* Set the sizes alone, checked; nothing is read or allocated.  ERR_INPUT, ERR_MEMORY.  Not
 * collective. */
int refit_state_shape(struct refit_state *f, const struct refit_task *task, struct comm *c);

/* Allocate the arrays of a state that has its sizes; a dry arena counts them.  *held <- their bytes
 * by kind.  What ranks share is counted alone: refit_frames_open() makes it.  Not collective. */
struct refit_resident_bytes {
  gidx rows, supports, frames;
  gidx shared; /* frames of all ranks of a node together */
};
int refit_state_alloc(struct refit_state *f, struct refit_resident_bytes *held);

/* *bytes <- the most that reading takes beside the state: the same allocations, run dry. */
int refit_state_load_bytes(const struct refit_state *f, gidx *bytes);

/* Read everything.  ERR_INPUT names the lowest bad row or atom, and what does not fit together, as
 * codes of other rows or atoms; ERR_MEMORY what is needed and present, before anything is read.
 * After a failure a thread may still read into what it was given: *f is then to be kept.
 * Collective, as are the functions below; the same status on every rank. */
int refit_state_load(struct refit_state *f, const struct refit_task *task, struct comm *c);
void refit_state_free(struct refit_state *f); /* collective where frames are shared */

/* Put other frames, and unless NULL other supports and codes, of the same shapes in the place of
 * those that were loaded; *found <- the hashes of what was read. */
int refit_state_replace(struct refit_state *f, const struct atom_source *atoms,
                        const struct support_source *supports, struct identity *found);

/* *out <- the hashes of the wholes of which each rank has these sums of terms (model/identity.h).
 * Collective. */
int refit_identity(const struct refit_state *f, const struct identity *terms, struct identity *out);

/* After supports changed: count the rows of each atom, and list them too. */
int refit_state_count(struct refit_state *f);
int refit_state_index(struct refit_state *f);

/* Compute the residuals from rows, frames and codes.  Not collective. */
int refit_state_residuals(struct refit_state *f);

#endif
