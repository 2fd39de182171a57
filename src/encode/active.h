/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of rows on their active atoms: those whose scores are above a cut (N.49), solved (N.50),
 * and chosen again by what each row says of an atom when the others are described (N.51).
 *
 * Floor: encode.  Not collective: a rank's own rows, on its device.
 *
 * In between a caller finds the cut of a whole batch, or knows it: so rows have any number of
 * atoms, ACTIVE_MOST at most. */
#ifndef ENCODE_ACTIVE_H
#define ENCODE_ACTIVE_H

#include "base/memory.h"
#include "device/device.h"
#include "device/train.h"
#include "model/cuts.h"
#include "model/find.h"
#include "model/find_update.h"

enum {
  ACTIVE_STEP = 8,    /* short rows are solved by lengths that are multiples of it */
  ACTIVE_LENGTHS = 15 /* of rows with as many slots */
};
/* Rows of one length, in the order by it. */
struct active_length {
  idx first, n, m; /* n rows from place `first` on, of m slots each */
  gidx slot;       /* where these begin */
};
/* Entries of rows. */
struct active_entries {
  gidx *start;
  idx *index;
  float *score;
};

/* Entries of a pass over blocks of atoms (active_nested.h), block after block: those of block b
 * begin at start[b][i], and have the number of their atom in the block. */
struct active_pass {
  gidx *start;  /* [blocks][most_n + 1] */
  idx *index;   /* [entries] */
  float *code;  /* [entries] */
  idx *lengths; /* [most_n] of all blocks together, ACTIVE_MOST at most */
};

struct active {
  struct device *device; /* borrowed; d = 1, nonnegative */
  idx most_k, p;         /* atoms and rows at most, set by the caller, as is the next */
  idx most_n;
  gidx entries; /* of all rows at most */
  int threads;  /* of the host, which cut and fill lists, set by the caller; 0: one */
  int relative; /* struct find_raise, set by the caller, as is the next */
  real floor;
  const struct score_cuts *cuts; /* of active_encode(), in the place of thresholds; NULL: none; */
  gidx row;                      /* then row `first` of x is this one of all, set by the caller */
  idx k;                         /* atoms at hand */
  idx n;                         /* rows at hand; those of x from row `first` on */
  const struct buffer *x;
  gidx first;
  gidx *start;  /* [n + 1] the host's: where the entries of a row begin in the next three, */
  idx *index;   /* by ascending atoms */
  float *score; /* that chose the atom */
  float *code;  /* 0 < code, once they are solved */
  gidx found;   /* entries of the last lists; more than `entries`: there was no room */
  idx fits;     /* rows whose lists had room */
  const struct score_cut *cut;       /* of the rows at hand, while lists are taken */
  struct active_entries other;       /* those before the codes of 0 were dropped */
  idx *order, *place;                /* [n] rows by length, and where each is among these */
  struct buffer atoms;               /* [most_k + 1][p] the last one is 0 */
  struct buffer toward;              /* [most_k + 1] */
  struct buffer bias;                /* [most_k] 0 */
  struct buffer starts, list, value; /* struct train_entries */
  struct buffer sorted, residual;    /* [most_n][p] */
  struct buffer slot, codes;         /* of each length [n][m] */
  struct active_length lengths[ACTIVE_LENGTHS];
  struct buffer work;
  int is_nested;               /* set by the caller: active_nested.h is used, too */
  struct buffer level, before; /* [most_n][p] what blocks leave of rows, and the last pass */
  struct buffer squares;       /* [most_n][2] work */
  struct active_pass pass, last;
  int look, block; /* number of the pass at hand, and of the block, */
  idx block_first; /* whose atoms begin here, of these: */
  const struct find_blocks *blocks;
  struct arena arena;
};

/* Set device, most_k, p, most_n and entries first.  A dry device and arena count memory.
 * ERR_DEVICE where the device lacks an operation; ERR_MEMORY. */
int active_open(struct active *a);
void active_close(struct active *a);

/* The atoms are these k, and codes are drawn to toward[k], NULL: to 0. */
int active_atoms(struct active *a, const float *atoms, idx k, const float *toward);

/* Rows first .. first + n - 1 of x[..][p] are at hand, and scored. */
int active_score(struct active *a, const struct buffer *x, gidx first, idx n);
/* counts[BATCH_BINS] <- how many scores have each next digit of a cut. */
int active_count(struct active *a, const struct batch_cut *cut, gidx *counts);
/* Entries are the scores above the cut and the first `ties` that equal it; none, and a->found is
 * more than a->entries, where there is no room for them. */
int active_cut(struct active *a, const struct batch_cut *cut, gidx ties);
/* Solve their codes with the penalty rho; those of 0 are no entries any more. */
int active_solve(struct active *a, real rho);
/* Score the rows again: each atom by what all others leave over.  Follows active_solve(). */
int active_again(struct active *a);

/* a->starts, a->list and a->value of the host <- the scores above the cut. */
int active_list(struct active *a, const struct batch_cut *cut);

/* All of this for rows of a dictionary that is known, by its thresholds, or a->cuts.  With looks
 * -1 the rows are at hand and scored for the first choice; active_again() scores for further
 * ones. */
int active_encode(struct active *a, const struct buffer *x, gidx first, idx n,
                  const struct found_encoder *by);
/* The same where all scores of so many rows could not be entries: *n rows, or as many of the first
 * of them as there is room for.  a->entries is a->k or more. */
int active_encode_some(struct active *a, const struct buffer *x, gidx first, idx *n,
                       const struct found_encoder *by);

#endif
