/* SPDX-License-Identifier: BSD-3-Clause
 * Encoders of autoencoders: the codes of a row by one product with a matrix of their own (N.24).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_ENCODER_H
#define MODEL_ENCODER_H

#include "model/find.h"

/* The last is that of `fit --find features`: its matrix are the atoms themselves, and codes are
 * solved (N.55). */
enum encoder_kind {
  ENCODER_RELU,
  ENCODER_TOPK,
  ENCODER_JUMPRELU,
  ENCODER_BATCHTOPK,
  ENCODER_ACTIVE,
  ENCODER_KINDS
};
extern const char *const encoder_names[ENCODER_KINDS]; /* as files have them */

struct encoder {
  enum encoder_kind kind;
  idx k, p;
  idx top;                     /* of ENCODER_TOPK: codes a row has at most */
  int centered;                /* its rows are those less the mean; else as they are */
  int rescaled;                /* the norm multiplies the scores, else the codes */
  const float *weights;        /* [k][p] */
  const float *bias;           /* [k] */
  const float *threshold;      /* [k] of ENCODER_JUMPRELU and ENCODER_BATCHTOPK, else NULL */
  struct found_encoder active; /* of ENCODER_ACTIVE */
  const float *norm; /* [k] of the source's decoder, of which the atoms are unit; NULL: 1 */
};

/* Reference of (N.24): the score of a row and an atom. */
float encoder_score(const struct encoder *e, const float *row, idx atom);

/* The rest of (N.24) from the products[k] of a row: they become its scores. */
void encoder_finish(const struct encoder *e, float *scores);

/* The code of an atom by its score. */
float encoder_code(const struct encoder *e, float score, idx atom);

/* Reference of (N.24), from scores[k]: the support of a row, at most k atoms, in its order, and
 * their codes.  Returns how many there are. */
idx encoder_select(const struct encoder *e, const float *scores, idx *atoms, float *codes);

/* Supports of rows that follow each other, which grow as they are found; zeros are an empty one. */
struct entry_list {
  idx *atoms; /* [n], as the next two; owned */
  float *score, *codes;
  gidx n, capacity;
};
/* Make room for n more entries; add the n atoms of a row with scores[k]; append those of another
 * list.  0: there is no memory. */
int entries_reserve(struct entry_list *l, gidx n);
int entries_add(struct entry_list *l, const idx *atoms, const float *scores, const float *codes,
                idx n);
int entries_append(struct entry_list *l, const struct entry_list *more);
void entries_free(struct entry_list *l);

/* Lists of the same n rows over two parts of the atoms, of which the second are the larger ones,
 * become one in *l: all entries of a row, or the first `top` by score where that is not 0.
 * lengths[n] of each row become those.  0: there is no memory. */
int entries_merge(struct entry_list *l, idx *lengths, const struct entry_list *more,
                  const idx *more_lengths, idx n, idx top);

/* The hash of an encoder (model/identity.h), from the terms of its weights, atom by atom. */
uint64_t encoder_hash(const struct encoder *e, uint64_t weights_terms);

/* A step of matching pursuit (N.25) on a residual, whose scores[k] with the atoms are given: takes
 * the atom with the largest positive score from the residual and adds it to the support, which has
 * n atoms.  Returns how many it has then. */
idx pursuit_step(const float *atoms, idx k, idx p, const float *scores, float *residual,
                 idx *support, float *codes, idx n);

#endif
