/* SPDX-License-Identifier: BSD-3-Clause
 * Which scores are codes if all rows together have a given number of codes (N.58): the largest
 * scores, in the order of value, then row, then atom.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The key of a positive score is the bits of its float, which ascend as the floats do
 * (batch_key()).  The last code is found by counting keys: counts are integers, so their sums do
 * not depend on how rows are divided. */
#ifndef MODEL_CUTS_H
#define MODEL_CUTS_H

#include "model/encoder.h"
#include "model/find.h"

enum { CUTS_MOST = FIND_LOOKS + 1 };

/* The cut of one choice of atoms.  Scores above `least` are codes.  Scores that equal `least` are
 * codes in rows before `row`.  In row `row` the first `ties` of them, by atom, are codes.  If all
 * scores that equal `least` are codes, row is the number of rows. */
struct score_cut {
  float least; /* >= 0; only positive scores are codes */
  gidx row, ties;
};

struct score_cuts {
  real l0; /* mean codes per row that were asked for */
  int n;   /* choices; 0: the cuts are not known yet */
  struct score_cut at[CUTS_MOST];
  real floor;    /* of (N.49), if the dictionary has no encoder; otherwise 0 */
  uint64_t rows; /* hash of the rows from which the cuts were found */
};

/* Is this score a code?  *tied counts the scores of the row so far that equal the cut; 0 at
 * first. */
static inline int cut_takes(const struct score_cut *cut, float score, gidx row, gidx *tied)
{
  if (score != cut->least) return score > cut->least;
  return score > 0 && (row < cut->row || (row == cut->row && (*tied)++ < cut->ties));
}

/* Are two sets of cuts the same? */
int cuts_are_same(const struct score_cuts *a, const struct score_cuts *b);

/* The number of codes of n rows: floor(l0 n). */
gidx cuts_most(real l0, gidx n);

/* A window: counts of scores by key.  Bin i counts keys base + i 2^shift .. base + (i + 1) 2^shift
 * - 1, and the last bin all greater keys. */
enum { WINDOW_BITS = 21, WINDOW_BINS = 1 << WINDOW_BITS };
struct key_window {
  int32_t base; /* >= 1 */
  int shift;
  gidx *bins; /* [WINDOW_BINS + 1] the last one is for greater keys */
};
void window_begin(struct key_window *w, int32_t base, int shift);
void window_add(struct key_window *w, const float *scores, gidx n);
/* *bin <- the bin of the `most`-th largest key; *left <- the number of scores of this bin that are
 * among the `most` largest.  Returns 1; or 0 if that key is outside the window. */
int window_find(const struct key_window *w, gidx most, gidx *bin, gidx *left);
/* The least key of a bin. */
int32_t window_key(const struct key_window *w, gidx bin);

/* A copy of encoder `of` that chooses atoms by the cut `least`, for encoders whose codes are not
 * solved.  It takes all scores that equal the cut.  threshold[k] <- its thresholds. */
struct encoder cuts_encoder(const struct encoder *of, float least, float *threshold);
/* Drop the entries of rows row .. row + n - 1 that the cut does not take. */
void cuts_entries(const struct score_cut *cut, gidx row, idx n, idx *lengths, struct entry_list *l);

/* codes[n][k] <- the `most` largest positive scores[n][k], and 0 elsewhere, by sorting; *cut <- the
 * cut that takes these.  ERR_MEMORY. */
int cuts_reference(const float *scores, idx n, idx k, gidx most, float *codes,
                   struct score_cut *cut);

#endif
