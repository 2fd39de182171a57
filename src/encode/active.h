/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of rows on their active atoms.  A first choice takes the atoms whose scores are above a cut
 * (N.49), and their codes are solved (N.50).  Each further choice scores an atom on the row minus
 * the other chosen atoms times their codes (N.51).
 *
 * Floor: encode.  Not collective: a rank's own rows, on its device.
 *
 * Scoring, choosing and solving are separate calls.  So the caller can find one cut for a whole
 * batch after the scoring.  Rows have different numbers of atoms, at most ACTIVE_MOST. */
#ifndef ENCODE_ACTIVE_H
#define ENCODE_ACTIVE_H

#include "base/memory.h"
#include "device/device.h"
#include "device/train.h"
#include "model/cuts.h"
#include "model/find.h"
#include "model/find_update.h"

enum {
  ACTIVE_STEP = 8,    /* short rows are padded to a length that is a multiple of it */
  ACTIVE_LENGTHS = 15 /* number of different padded lengths, including 0 */
};
/* The rows of one length.  They are neighbours once rows are sorted by length. */
struct active_length {
  idx first, n, m; /* n rows at positions first .. first + n - 1, of m slots each */
  gidx slot;       /* first slot of the first of these rows */
};
/* The atoms of rows: row i has entries start[i] .. start[i + 1] - 1. */
struct active_entries {
  gidx *start;
  idx *index;
  float *score;
};

/* Entries of a pass over blocks of atoms (active_nested.h), block after block: row i has entries
 * start[b][i] .. start[b][i + 1] - 1 in block b.  index counts from the first atom of the block. */
struct active_pass {
  gidx *start;  /* [blocks][most_n + 1] */
  idx *index;   /* [entries] */
  float *code;  /* [entries] */
  idx *lengths; /* [most_n] entries of a row in all blocks, at most ACTIVE_MOST */
};

struct active {
  struct device *device; /* borrowed; it has d = 1 and nonnegative codes */
  idx most_k, p;         /* largest number of atoms, and number of columns; set by the caller */
  idx most_n;
  gidx entries; /* room for the entries of all rows; set by the caller, like most_n */
  int threads;  /* host threads that cut and fill lists; set by the caller; 0: one */
  int relative; /* as in struct find_raise; set by the caller, like floor */
  real floor;
  const struct score_cuts *cuts; /* if set, active_encode() takes these cuts, not thresholds */
  gidx row;                      /* with cuts: the number of row `first` of x among all rows; set by
                                  * the caller */
  idx k;                         /* atoms in use */
  idx n;                         /* rows in use: first .. first + n - 1 of x */
  const struct buffer *x;
  gidx first;
  gidx *start;  /* [n + 1] on the host: where the entries of each row begin in index, score and
                 * code */
  idx *index;   /* ascending in each row */
  float *score; /* the score that chose the atom */
  float *code;  /* > 0 once codes are solved */
  gidx found;   /* entries of the last lists; more than `entries`: there was no room */
  idx fits;     /* largest number of rows that active_encode_some() tries; halved whenever there is
                 * no room for their entries */
  const struct score_cut *cut;       /* given to active_lists_take(); NULL: all scores of the lists
                                      * are taken */
  struct active_entries other;       /* work memory of active_solve(), which swaps it with start,
                                      * index and score */
  idx *order, *place;                /* [n] rows sorted by length, and the position of each row in
                                      * this order */
  struct buffer atoms;               /* [most_k + 1][p] zeros after the k atoms in use */
  struct buffer toward;              /* float [most_k + 1], as in struct found_encoder */
  struct buffer bias;                /* [most_k] zeros */
  struct buffer starts, list, value; /* struct train_entries */
  struct buffer sorted, residual;    /* [most_n][p] */
  struct buffer slot, codes;         /* [n][m] of each length */
  struct active_length lengths[ACTIVE_LENGTHS];
  struct buffer work;
  int is_nested;               /* set by the caller: active_nested.h is used too */
  struct buffer level, before; /* [most_n][p] residuals of the rows: in this pass, and after the
                                * pass before */
  struct buffer squares;       /* [most_n][2] work */
  struct active_pass pass, last;
  int look, block; /* numbers of the current pass and block */
  idx block_first; /* first atom of the current block */
  const struct find_blocks *blocks;
  struct arena arena;
};

/* Set device, most_k, p, most_n and entries first.  With a dry device and arena it only counts
 * memory.  ERR_DEVICE when the device lacks an operation; ERR_MEMORY. */
int active_open(struct active *a);
void active_close(struct active *a);

/* Use these k atoms.  The penalty draws codes to toward[k], or to 0 if toward is NULL. */
int active_atoms(struct active *a, const float *atoms, idx k, const float *toward);

/* Use rows first .. first + n - 1 of x[..][p], and score them. */
int active_score(struct active *a, const struct buffer *x, gidx first, idx n);
/* counts[BATCH_BINS] <- how many scores have each value of the cut's next digit (batch_cut). */
int active_count(struct active *a, const struct batch_cut *cut, gidx *counts);
/* Entries <- the scores above the cut, and the first `ties` scores that equal the cut.  A row keeps
 * its ACTIVE_MOST largest.  If there is no room, there are no entries, and a->found is more than
 * a->entries. */
int active_cut(struct active *a, const struct batch_cut *cut, gidx ties);
/* Solve the codes of the entries with the penalty rho.  Entries whose code is 0 are dropped. */
int active_solve(struct active *a, real rho);
/* Score the rows again, each atom on the row minus all other chosen atoms times their codes.  Call
 * it after active_solve(). */
int active_again(struct active *a);

/* a->starts, a->list and a->value on the host <- the scores above the cut.  ERR_INTERNAL when there
 * is no room. */
int active_list(struct active *a, const struct batch_cut *cut);

/* Score, choose and solve by->looks + 1 times, with the thresholds of a finished dictionary or with
 * a->cuts.  With by->looks = -1 the rows are only scored for the first choice.  ERR_INTERNAL when
 * there is no room for the entries. */
int active_encode(struct active *a, const struct buffer *x, gidx first, idx n,
                  const struct found_encoder *by);
/* The same, but if there is no room for the entries of *n rows, the number of rows is halved until
 * there is.  *n <- how many rows were encoded.  a->entries must be at least a->k, the entries of
 * one row. */
int active_encode_some(struct active *a, const struct buffer *x, gidx first, idx *n,
                       const struct found_encoder *by);

#endif
