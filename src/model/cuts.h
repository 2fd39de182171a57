/* SPDX-License-Identifier: BSD-3-Clause
 * Which scores are codes where all rows together have a number of them (N.58): the largest, in the
 * order of value, then row, then atom.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The bits of positive floats ascend as the floats do, so the last code is found by counting keys:
 * counts are integers, whose sums do not depend on how rows are divided. */
#ifndef MODEL_CUTS_H
#define MODEL_CUTS_H

#include "model/encoder.h"
#include "model/find.h"

enum { CUTS_MOST = FIND_LOOKS + 1 };

/* Of a choice: scores above `least` are codes, and those that equal it in rows before `row`, and
 * the first `ties` of this row, by atom.  row is the number of rows where all that equal it are. */
struct score_cut {
  float least; /* >= 0; only positive scores are codes */
  gidx row, ties;
};

struct score_cuts {
  real l0; /* codes a row, on average, that were asked for */
  int n;   /* choices; 0: they are not known yet */
  struct score_cut at[CUTS_MOST];
  real floor;    /* of (N.49), of atoms that have no encoder of their own; else 0 */
  uint64_t rows; /* the hash of all rows, which were counted */
};

/* Is a score one of the codes?  *tied: of this row so far, 0 at first. */
static inline int cut_takes(const struct score_cut *cut, float score, gidx row, gidx *tied)
{
  if (score != cut->least) return score > cut->least;
  return score > 0 && (row < cut->row || (row == cut->row && (*tied)++ < cut->ties));
}

/* Are these the same? */
int cuts_are_same(const struct score_cuts *a, const struct score_cuts *b);

/* Codes of n rows: floor(l0 n). */
gidx cuts_most(real l0, gidx n);

/* Counts of scores by their keys, batch_key(): of those from `base` on in steps of 2^shift, and of
 * those beyond. */
enum { WINDOW_BITS = 21, WINDOW_BINS = 1 << WINDOW_BITS };
struct key_window {
  int32_t base; /* >= 1 */
  int shift;
  gidx *bins; /* [WINDOW_BINS + 1] the last one: of keys beyond */
};
void window_begin(struct key_window *w, int32_t base, int shift);
void window_add(struct key_window *w, const float *scores, gidx n);
/* *bin <- that of the `most`-th largest key, of which *left are still wanted of the bin: 1, or 0
 * where it is beyond the window, or before it. */
int window_find(const struct key_window *w, gidx most, gidx *bin, gidx *left);
/* The least key of a bin. */
int32_t window_key(const struct key_window *w, gidx bin);

/* What encodes by such a cut, for encoders whose codes are not solved: that one, with the cut in
 * the place of its choice, and all that equal it.  threshold[k] is written. */
struct encoder cuts_encoder(const struct encoder *of, float least, float *threshold);
/* Of n rows from `row` on, which have these entries, those leave that the cut does not take. */
void cuts_entries(const struct score_cut *cut, gidx row, idx n, idx *lengths, struct entry_list *l);

/* codes[n][k] <- scores[n][k] of the `most` largest, else 0, by sorting, and *cut <- what says
 * which.  ERR_MEMORY. */
int cuts_reference(const float *scores, idx n, idx k, gidx most, float *codes,
                   struct score_cut *cut);

#endif
