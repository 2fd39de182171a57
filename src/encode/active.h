/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of rows on their active atoms.  A first choice takes the atoms whose scores are above a cut
 * (N.49), and their codes are solved (N.50).  Further choices score each atom by what the other
 * atoms leave of the row (N.51).
 *
 * Floor: encode.  Not collective: a rank's own rows, on its device.
 *
 * Choosing and solving are separate calls: the caller gives the cut, or finds it for a whole batch
 * in between.  So rows may have different numbers of atoms, at most ACTIVE_MOST. */
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
  ACTIVE_LENGTHS = 15 /* numbers of slots that rows can have */
};
/* The rows of one length.  They are neighbours once rows are sorted by length. */
struct active_length {
  idx first, n, m; /* n rows at positions first .. first + n - 1, of m slots each */
  gidx slot;       /* their first slot */
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
  idx most_k, p;         /* most atoms, and columns; set by the caller */
  idx most_n;
  gidx entries; /* of all rows, at most; set by the caller, as most_n is */
  int threads;  /* host threads that cut and fill lists; set by the caller; 0: one */
  int relative; /* struct find_raise; set by the caller, as floor is */
  real floor;
  const struct score_cuts *cuts; /* if set, active_encode() takes these cuts, not thresholds */
  gidx row;                      /* with cuts: the number of row `first` of x among all rows; set by
                                  * the caller */
  idx k;                         /* atoms in use */
  idx n;                         /* rows in use: first .. first + n - 1 of x */
  const struct buffer *x;
  gidx first;
  gidx *start;  /* [n + 1] on the host: where the entries of a row begin in the next three */
  idx *index;   /* ascending in each row */
  float *score; /* by which the atom was chosen */
  float *code;  /* > 0 once codes are solved */
  gidx found;   /* entries of the last lists; more than `entries`: there was no room */
  idx fits;     /* number of rows whose lists had room */
  const struct score_cut *cut;       /* of the rows in use, while lists are taken */
  struct active_entries other;       /* the entries before those with code 0 were dropped */
  idx *order, *place;                /* [n] rows sorted by length, and the position of each row in
                                      * this order */
  struct buffer atoms;               /* [most_k + 1][p] the last one is 0 */
  struct buffer toward;              /* [most_k + 1] struct found_encoder */
  struct buffer bias;                /* [most_k] zeros */
  struct buffer starts, list, value; /* struct train_entries */
  struct buffer sorted, residual;    /* [most_n][p] */
  struct buffer slot, codes;         /* [n][m] of each length */
  struct active_length lengths[ACTIVE_LENGTHS];
  struct buffer work;
  int is_nested;               /* set by the caller: active_nested.h is used too */
  struct buffer level, before; /* [most_n][p] what is left of rows: in this pass, after the last
                                * pass */
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

/* Use these k atoms.  The penalty draws codes to toward[k], or to 0 if it is NULL. */
int active_atoms(struct active *a, const float *atoms, idx k, const float *toward);

/* Use rows first .. first + n - 1 of x[..][p], and score them. */
int active_score(struct active *a, const struct buffer *x, gidx first, idx n);
/* counts[BATCH_BINS] <- how many scores have each value of the cut's next digit (batch_cut). */
int active_count(struct active *a, const struct batch_cut *cut, gidx *counts);
/* Entries <- the scores above the cut, and the first `ties` of those that equal it.  If there is no
 * room, there are none, and a->found is more than a->entries. */
int active_cut(struct active *a, const struct batch_cut *cut, gidx ties);
/* Solve the codes of the entries with the penalty rho.  Entries whose code is 0 are dropped. */
int active_solve(struct active *a, real rho);
/* Score the rows again: each atom by what all other atoms leave of the row.  Follows
 * active_solve(). */
int active_again(struct active *a);

/* a->starts, a->list and a->value on the host <- the scores above the cut. */
int active_list(struct active *a, const struct batch_cut *cut);

/* All these steps for rows and a finished dictionary, with its thresholds or a->cuts.  With
 * by->looks = -1 the rows are only scored for the first choice; active_again() then scores them for
 * further ones. */
int active_encode(struct active *a, const struct buffer *x, gidx first, idx n,
                  const struct found_encoder *by);
/* The same when there may be no room for all entries.  *n: the rows given; <- how many of them were
 * encoded, as many as there was room for.  a->entries must be at least a->k. */
int active_encode_some(struct active *a, const struct buffer *x, gidx first, idx *n,
                       const struct found_encoder *by);

#endif
