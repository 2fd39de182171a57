/* SPDX-License-Identifier: BSD-3-Clause
 * Refitting atoms on supports that stay (N.20k): codes are solved on them, all atoms move by the
 * normal equations, codes are solved again.
 *
 * Floor: fit.  Knows no files.  Every function is collective, unless it says otherwise; the same
 * status on every rank.
 *
 * Memory, rows and supports are here; sweeps in kept_moves.h.  Each rank has its sum blocks of the
 * rows (refit_blocks_partition()), their supports, of any length, and codes.  Where an encoder
 * gives the supports, it is asked once, at the start. */
#ifndef FIT_KEPT_H
#define FIT_KEPT_H

#include "base/phase.h"
#include "encode/ragged.h"
#include "fit/update.h"
#include "model/encoder.h"
#include "model/results.h"

enum { KEPT_PASSES = 1 }; /* of the descent in a sweep */

struct kept_task {
  const struct row_source *rows;
  const struct atom_source *atoms; /* unit, d = 1 */
  const real *mean;                /* [p] subtracted from rows; NULL: none */
  /* Supports come from a source, or from an encoder, with its weights, which also describes rows
   * that the refit does not see.  One of the two is NULL. */
  const struct support_source *supports;
  const struct encoder *encoder;
  const struct row_source *unseen; /* NULL: none */
  idx top;                         /* atoms of a row, at most; K where that is not known */
  int is_equal;                    /* every row has so many */
  int nonnegative;                 /* codes are at least 0 (N.5n) */
  real rho;
  idx max_cosine; /* the largest K for which the decoder cosine is computed */
  idx threads;
  const char *device, *variant;
  struct identity named; /* what given supports are of, as far as it is known */
};

enum kept_phase { KEPT_READ, KEPT_SUPPORTS, KEPT_CODES, KEPT_UPDATE, KEPT_WRITE, KEPT_PHASES };

/* Rows of this rank, with their supports and codes. */
struct kept_rows {
  gidx total, first; /* of all ranks; the first own one */
  idx n;
  float *x;                    /* [n][p] less the mean */
  gidx *start;                 /* [n + 1] */
  struct entry_list of;        /* its entries; codes are those last solved */
  struct row_quality *quality; /* [n] */
  gidx offset, entries;        /* own entries begin there among all */
  real tss, own;          /* rank 0: total sum of squares, what the codes that were given explain */
  struct metrics metrics; /* rank 0: of the codes last solved; without densities for unseen rows */
  uint64_t terms;
};

struct kept {
  const struct kept_task *task; /* borrowed */
  struct comm *c;
  idx k, p;
  gidx blocks;                /* sum blocks of all ranks, as long as the next two */
  idx *longest;               /* atoms of the longest row of each */
  gidx *sizes;                /* [ranks] */
  struct device device, host; /* host: a CPU, for codes that are given */
  struct refit_task shape_task;
  struct refit_state state; /* shapes and frames alone, for the update */
  struct update update;
  struct ragged ragged;
  float *atoms;               /* [k][p] as files have them */
  struct buffer table, piece; /* the atoms; rows for the encoder */
  struct kept_rows rows, unseen;
  struct atom_step *steps; /* [k] */
  gidx *density;           /* [k] */
  struct identity inputs, contents;
  struct phase phases[KEPT_PHASES];
  struct arena arena;
};

/* *bytes <- what a rank takes, all but the entries: supports and codes, 12 bytes each, where top
 * does not bound them.  Its own allocations, run dry.  Not collective. */
int kept_memory(const struct kept_task *task, struct comm *c, gidx *bytes);

/* Read everything and find the supports.  ERR_INPUT, ERR_MEMORY with the numbers, before anything
 * is read.  kept_close() also after a failure of a caller later; not collective. */
int kept_open(struct kept *w, const struct kept_task *task, struct comm *c);
void kept_close(struct kept *w);

/* Atoms of an earlier run take the place of those that were read. */
int kept_atoms_take(struct kept *w, const struct atom_source *atoms);

#endif
