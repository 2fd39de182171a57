/* SPDX-License-Identifier: BSD-3-Clause
 * Refit atoms on fixed supports (N.20k): solve the codes, move all atoms by the normal equations,
 * solve the codes again.
 *
 * Floor: fit.  Knows no files.  Every function is collective, unless it says otherwise; the same
 * status on every rank.
 *
 * This header has memory, rows and supports; kept_moves.h has the sweeps.  Each rank has its sum
 * blocks of 4,096 rows (refit_blocks_partition()), with their codes and their supports, of any
 * length.  If an encoder gives the supports, it runs once, at the start. */
#ifndef FIT_KEPT_H
#define FIT_KEPT_H

#include "base/phase.h"
#include "encode/ragged.h"
#include "fit/update.h"
#include "model/encoder.h"
#include "model/results.h"

enum { KEPT_PASSES = 1 }; /* passes of the descent in a sweep */

struct kept_task {
  const struct row_source *rows;
  const struct atom_source *atoms; /* unit, d = 1 */
  const real *mean;                /* [p] subtracted from rows; NULL: none */
  /* Supports come from `supports` or from `encoder`; the other is NULL.  The encoder also encodes
   * `unseen`, rows that the refit does not use. */
  const struct support_source *supports;
  const struct encoder *encoder;
  const struct row_source *unseen; /* NULL: none */
  idx top;                         /* largest number of atoms of a row; K if that is not known */
  int is_equal;                    /* 1: every row has exactly `top` atoms */
  int nonnegative;                 /* codes are at least 0 (N.5n) */
  real rho;
  idx max_cosine; /* the largest K for which the decoder cosine is computed */
  idx threads;
  const char *device, *variant;
  struct identity named; /* hashes of the inputs of given supports, as far as they are known */
};

enum kept_phase { KEPT_READ, KEPT_SUPPORTS, KEPT_CODES, KEPT_UPDATE, KEPT_WRITE, KEPT_PHASES };

/* Rows of this rank, with their supports and codes. */
struct kept_rows {
  gidx total, first; /* rows of all ranks; the first row of this rank */
  idx n;
  float *x;                    /* [n][p] less the mean */
  gidx *start;                 /* [n + 1] */
  struct entry_list of;        /* entries of the rows, with the codes that were solved last */
  struct row_quality *quality; /* [n] */
  gidx offset, entries;   /* number of the first own entry among those of all ranks; entries of all
                           * ranks */
  real tss, own;          /* rank 0: total sum of squares; own: explained variance of the given
                           * codes */
  struct metrics metrics; /* rank 0: of the last codes; no densities for unseen rows */
  uint64_t terms;
};

struct kept {
  const struct kept_task *task; /* borrowed */
  struct comm *c;
  idx k, p;
  gidx blocks;                /* sum blocks of all ranks */
  idx *longest;               /* [blocks] atoms of the longest row of each sum block */
  gidx *sizes;                /* [ranks] */
  struct device device, host; /* host: a CPU, to evaluate codes that are given */
  struct refit_task shape_task;
  struct refit_state state; /* has only shapes and frames, for the update */
  struct update update;
  struct ragged ragged;
  float *atoms;               /* [k][p] the atoms as files have them */
  struct buffer table, piece; /* the atoms; rows for the encoder */
  struct kept_rows rows, unseen;
  struct atom_step *steps; /* [k] */
  gidx *density;           /* [k] */
  struct identity inputs, contents;
  struct phase phases[KEPT_PHASES];
  struct arena arena;
};

/* *bytes <- the memory of a rank, from a dry run of the allocations.  If an encoder gives the
 * supports and `top` is K, their entries, 12 bytes each, are not counted.  Not collective. */
int kept_memory(const struct kept_task *task, struct comm *c, gidx *bytes);

/* Read everything and find the supports.  ERR_INPUT.  ERR_MEMORY, with the numbers, comes before
 * anything is read.  Call kept_close(), which is not collective, also after a failure here or
 * later. */
int kept_open(struct kept *w, const struct kept_task *task, struct comm *c);
void kept_close(struct kept *w);

/* Take the atoms of an earlier run instead of the task's atoms. */
int kept_atoms_take(struct kept *w, const struct atom_source *atoms);

#endif
