/* SPDX-License-Identifier: BSD-3-Clause
 * Encoders of autoencoders: the codes of a row follow from its product with a matrix (N.24).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_ENCODER_H
#define MODEL_ENCODER_H

#include "model/find.h"

/* ENCODER_ACTIVE is the encoder of `fit --find features`: its matrix has the atoms themselves, and
 * codes are solved (N.55). */
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
  idx top;                     /* of ENCODER_TOPK: largest number of codes of a row */
  int centered;                /* it takes rows less the mean; 0: rows as they are */
  int rescaled;                /* 1: `norm` multiplies the scores; 0: it multiplies the codes */
  const float *weights;        /* [k][p] */
  const float *bias;           /* [k] */
  const float *threshold;      /* [k] of ENCODER_JUMPRELU and ENCODER_BATCHTOPK, otherwise NULL */
  struct found_encoder active; /* of ENCODER_ACTIVE */
  /* [k] norms of the decoder rows of the imported autoencoder, which were scaled to be the atoms;
   * NULL: all are 1 */
  const float *norm;
};

/* Reference of (N.24): the score of a row and an atom. */
float encoder_score(const struct encoder *e, const float *row, idx atom);

/* scores[k] has the products of a row with the matrix; they become the scores of the row by the
 * other steps of (N.24). */
void encoder_finish(const struct encoder *e, float *scores);

/* The code of an atom with this score. */
float encoder_code(const struct encoder *e, float score, idx atom);

/* Reference of (N.24): atoms[] <- the support of a row with scores[k], in its order; codes[] <- the
 * codes.  Both have room for k.  Returns the number of atoms. */
idx encoder_select(const struct encoder *e, const float *scores, idx *atoms, float *codes);

/* Supports of consecutive rows; the arrays grow as entries are added.  A zeroed struct is empty. */
struct entry_list {
  idx *atoms; /* [n], as the next two; owned */
  float *score, *codes;
  gidx n, capacity;
};
/* entries_reserve() makes room for n more entries.  entries_add() adds the n atoms of a row with
 * scores[k].  entries_append() appends the entries of another list.  All return 0 if there is no
 * memory. */
int entries_reserve(struct entry_list *l, gidx n);
int entries_add(struct entry_list *l, const idx *atoms, const float *scores, const float *codes,
                idx n);
int entries_append(struct entry_list *l, const struct entry_list *more);
void entries_free(struct entry_list *l);

/* Merge two lists of the same n rows into *l; the two lists are for different parts of the atoms.
 * The atoms of `more` have the higher numbers.  A row keeps all its entries, or, if top is not 0,
 * only the `top` entries with the largest scores.  lengths[n] become those of the merged rows.
 * Returns 0 if there is no memory. */
int entries_merge(struct entry_list *l, idx *lengths, const struct entry_list *more,
                  const idx *more_lengths, idx n, idx top);

/* The hash of an encoder (model/identity.h), from the sum of the terms of its weights, atom by
 * atom. */
uint64_t encoder_hash(const struct encoder *e, uint64_t weights_terms);

/* A step of matching pursuit (N.25) on a residual; scores[k] are its products with the atoms.  Adds
 * the atom with the largest positive score to the support, which has n atoms, and subtracts it from
 * the residual.  If the support has the atom already, only its code grows.  Returns how many atoms
 * the support then has. */
idx pursuit_step(const float *atoms, idx k, idx p, const float *scores, float *residual,
                 idx *support, float *codes, idx n);

#endif
