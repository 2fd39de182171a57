/* SPDX-License-Identifier: BSD-3-Clause
 * The state of a refit over all ranks: rows and their residuals, codes, frames.
 *
 * Floor: refit.  Knows no files: rows, atoms and supports come from sources.
 *
 * Rows are dealt in whole sum blocks (base/sums.h), consecutive ones to a rank.  They stay on their
 * rank, with their residuals, supports and codes.  Frames are on every rank, or once on every node
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
  const struct support_source *supports; /* with codes; the same number of atoms in every row */
  const real *mean;                      /* [p] subtracted from rows; NULL: none */
  real rho;                              /* penalty on codes */
  int nonnegative;                       /* codes are at least 0; d = 1 */
  idx top_s;                             /* atoms per row, if there are no rows to take it from */
  idx threads;
  const char *variant;
  const char *filter;    /* for routing again, as in struct device_options; NULL: off */
  int writes;            /* supports are written again, so they must be in order */
  int no_steps;          /* atoms take no steps by systems of their own: residuals are not held */
  int colors;            /* the job finds classes: rank 0 needs the memory for it */
  int has_table;         /* 1: the frames are also held as files have them, in f32; only then are
                          * routes and max_cosine used */
  int routes;            /* a coder has the whole dictionary at the ends of sweeps */
  idx max_cosine;        /* the largest K for which the ends of sweeps compute the decoder cosine */
  int shares;            /* frames and table are stored once per node (refit/frames.h) */
  int shares_gram;       /* for updates of all atoms at once: lists, and Gram rows in transit, are
                          * stored once per node */
  int lends_sums;        /* for joint updates: rank 0 needs the whole sums (fit/update.h) */
  gidx beside;           /* bytes that the job holds besides the state, for the memory checks */
  float *x;              /* [n][p] array of the caller for own rows; NULL: the state allocates it */
  const uint64_t *read;  /* sum of the hash terms of the rows, if x has the rows, centred and
                          * checked; NULL: the state reads the rows */
  struct identity named; /* the inputs that the codes were solved for, as far as known */
};

struct refit_state {
  const struct refit_task *task; /* borrowed, with its sources */
  struct comm *c;                /* borrowed */
  struct device device;
  idx k, d, p, s; /* s: atoms per row */
  real rho;
  gidx total;                /* rows of all ranks */
  gidx block_first, blocks;  /* own sum blocks */
  gidx first;                /* the first own row */
  idx n;                     /* own rows */
  float *x;                  /* [n][p] rows, centred */
  real *residual;            /* [n][p], unless the task has no steps */
  idx *atoms;                /* [n][s] supports */
  float *score;              /* [n][s] */
  real *codes;               /* [n][s][d] */
  real *frames;              /* [k][d][p] */
  float *table;              /* [k][d][p] if the task has a table; otherwise the caller's, for
                              * files */
  struct comm_shared shared; /* holds frames and table if they are stored once per node */
  idx own_first, own_count;  /* atoms whose frames this rank writes; all if nothing is shared */
  int names;                 /* 1: this rank adds its own atoms to the hash of all atoms: on rank 0,
                              * and on ranks that share frames with it */
  gidx *start;               /* [k + 1] where each atom's entries begin in entry */
  gidx *entry;               /* [n * s] of each atom by ascending own row: row * s + position in the
                              * row; stale after resident_index() */
  idx *counts;               /* [size][k] rows of each atom on each rank */
  idx *tallies;              /* [n_tallies][k] work space: rows of each atom in each of n_tallies
                              * parts of the own entries */
  int n_tallies;
  struct identity inputs;   /* of the state as it was loaded */
  struct identity contents; /* dictionary, supports and codes as files have them: set by
                             * refit_sweep_end() */
  struct arena arena;
};

/* refit_blocks_partition() gives the sum blocks of a rank.  refit_rows_partition() returns the
 * rank's number of rows; *first <- its first row. */
void refit_blocks_partition(gidx n, int size, int rank, gidx *block_first, gidx *blocks);
gidx refit_rows_partition(gidx n, int size, int rank, gidx *first);

/* Number of rows of an atom on all ranks. */
gidx refit_atom_rows(const struct refit_state *f, idx atom);

/* x[n][p] <- rows first .. first + n - 1, less the mean; their hash terms are added to *terms
 * (model/identity.h).  ERR_INPUT.  Not collective. */
int refit_rows_load(const struct row_source *rows, const real *mean, gidx first, gidx n,
                    int threads, float *x, uint64_t *terms);

/* ERR_INPUT when the sources' shapes do not fit together.  refit_shapes_check() allows rows with
 * different numbers of atoms.  Not collective. */
int refit_shapes_check(const struct row_source *rows, const struct atom_source *atoms,
                       const struct support_source *supports);
int refit_task_check(const struct refit_task *task);

/* Set and check the sizes only; nothing is read or allocated.  ERR_INPUT, ERR_MEMORY.  Not
 * collective. */
int refit_state_shape(struct refit_state *f, const struct refit_task *task, struct comm *c);

/* Allocate the arrays of a state that has its sizes; a dry arena counts them.  *held <- their bytes
 * by kind.  What ranks share is only counted: refit_frames_open() allocates it.  Not collective. */
struct refit_resident_bytes {
  gidx rows, supports, frames;
  gidx shared; /* frames of all ranks of a node together */
};
int refit_state_alloc(struct refit_state *f, struct refit_resident_bytes *held);

/* *bytes <- the peak memory of reading, without the state, from a dry run of its allocations. */
int refit_state_load_bytes(const struct refit_state *f, gidx *bytes);

/* Read everything.  ERR_INPUT names the lowest bad row or atom, and what does not fit together,
 * such as codes of other rows or atoms.  ERR_MEMORY, with the numbers, before anything is read.
 * After a failure a thread may still read into its arrays: then *f must not be freed.  Collective,
 * like the functions below; the same status on every rank. */
int refit_state_load(struct refit_state *f, const struct refit_task *task, struct comm *c);
void refit_state_free(struct refit_state *f); /* collective if frames are shared */

/* Replace the frames by others of the same shape, and also the supports and codes unless `supports`
 * is NULL; *found <- the hashes of what was read. */
int refit_state_replace(struct refit_state *f, const struct atom_source *atoms,
                        const struct support_source *supports, struct identity *found);

/* *out <- the hashes of the whole inputs, from each rank's sums of terms (model/identity.h).
 * Collective. */
int refit_identity(const struct refit_state *f, const struct identity *terms, struct identity *out);

/* Call one of these after supports changed.  refit_state_count() counts the rows of each atom;
 * refit_state_index() also lists them. */
int refit_state_count(struct refit_state *f);
int refit_state_index(struct refit_state *f);

/* Compute the residuals from rows, frames and codes.  Not collective. */
int refit_state_residuals(struct refit_state *f);

#endif
