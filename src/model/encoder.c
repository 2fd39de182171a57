/* SPDX-License-Identifier: BSD-3-Clause
 * With relu, the atoms with a positive score get a code; with thresholds, the atoms with a positive
 * score above their threshold; both in ascending order of atoms.  With topk, the atoms with the
 * largest positive scores get one, the largest first. */
#include "model/encoder.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "model/identity.h"

const char *const encoder_names[ENCODER_KINDS] = {"relu", "topk", "jumprelu", "batchtopk",
                                                  "active"};

float encoder_score(const struct encoder *e, const float *row, idx atom)
{
  const float *w = e->weights + (gidx)atom * e->p;
  float acc = 0;
  for (idx c = 0; c < e->p; c++) acc += row[c] * w[c];
  acc += e->bias[atom];
  return e->rescaled && e->norm ? acc * e->norm[atom] : acc;
}

void encoder_finish(const struct encoder *e, float *scores)
{
  for (idx a = 0; a < e->k; a++) {
    scores[a] += e->bias[a];
    if (e->rescaled && e->norm) scores[a] *= e->norm[a];
  }
}

float encoder_code(const struct encoder *e, float score, idx atom)
{
  return e->norm && !e->rescaled ? score * e->norm[atom] : score;
}

uint64_t encoder_hash(const struct encoder *e, uint64_t weights_terms)
{
  const float *vectors[] = {e->bias, e->threshold, e->norm};
  uint64_t sum = weights_terms;
  for (idx i = 0; i < 3; i++)
    if (vectors[i]) sum += (uint64_t)(2 * i + 3) * items_terms(vectors[i], 1, e->k, 0);
  if (e->kind == ENCODER_ACTIVE) {
    const struct found_encoder *a = &e->active;
    float facts[] = {(float)a->relative, (float)a->floor};
    sum += 9 * items_terms(a->threshold, 1, a->looks + 1, 0);
    sum += 11 * items_terms(facts, 1, 2, 0);
  }
  gidx top = e->kind == ENCODER_TOPK ? e->top : 0;
  return content_hash(sum, e->k, e->p,
                      (top << 4) + (e->rescaled << 3) + (e->centered << 2) + (int)e->kind);
}

/* Insert an atom into the sorted list of the largest scores, which has n entries and at most `top`.
 * Returns its new number of entries. */
static idx list_insert(const float *scores, idx atom, idx top, idx *atoms, idx n)
{
  if (n == top && scores[atoms[n - 1]] >= scores[atom]) return n;
  idx at = n < top ? n++ : n - 1;
  for (; at > 0 && scores[atoms[at - 1]] < scores[atom]; at--) atoms[at] = atoms[at - 1];
  atoms[at] = atom;
  return n;
}

idx encoder_select(const struct encoder *e, const float *scores, idx *atoms, float *codes)
{
  idx n = 0;
  for (idx a = 0; a < e->k; a++) {
    if (!(scores[a] > 0) || (e->threshold && !(scores[a] > e->threshold[a]))) continue;
    if (e->kind == ENCODER_TOPK)
      n = list_insert(scores, a, e->top, atoms, n);
    else
      atoms[n++] = a;
  }
  for (idx j = 0; j < n; j++) codes[j] = encoder_code(e, scores[atoms[j]], atoms[j]);
  return n;
}

int entries_reserve(struct entry_list *l, gidx n)
{
  gidx capacity = imax(l->n + n, 2 * l->capacity);
  if (l->n + n <= l->capacity) return 1;
  void *arrays[] = {l->atoms, l->score, l->codes};
  int has_all = 1;
  for (int i = 0; i < 3; i++) {
    void *more = realloc(arrays[i], (size_t)capacity * 4);
    has_all = has_all && more;
    if (more) arrays[i] = more;
  }
  l->atoms = arrays[0];
  l->score = arrays[1];
  l->codes = arrays[2];
  if (has_all) l->capacity = capacity;
  return has_all;
}

int entries_add(struct entry_list *l, const idx *atoms, const float *scores, const float *codes,
                idx n)
{
  if (!entries_reserve(l, n)) return 0;
  for (idx j = 0; j < n; j++, l->n++) {
    l->atoms[l->n] = atoms[j];
    l->score[l->n] = scores[atoms[j]];
    l->codes[l->n] = codes[j];
  }
  return 1;
}

int entries_append(struct entry_list *l, const struct entry_list *more)
{
  if (more->n == 0) return 1;
  if (!entries_reserve(l, more->n)) return 0;
  memcpy(l->atoms + l->n, more->atoms, (size_t)more->n * sizeof *l->atoms);
  memcpy(l->score + l->n, more->score, (size_t)more->n * sizeof *l->score);
  memcpy(l->codes + l->n, more->codes, (size_t)more->n * sizeof *l->codes);
  l->n += more->n;
  return 1;
}

/* Merge a row's n entries of list a, from `at` on, with its entries of list b.  Returns the number
 * of merged entries, at most `top` unless that is 0. */
static idx row_merge(struct entry_list *to, const struct entry_list *a, gidx at, idx n,
                     const struct entry_list *b, gidx b_at, idx b_n, idx top)
{
  idx count = n + b_n, i = 0, j = 0;
  if (top && count > top) count = top;
  for (; i + j < count; to->n++) {
    int first = i < n && (j == b_n || !top || a->score[at + i] >= b->score[b_at + j]);
    const struct entry_list *from = first ? a : b;
    gidx entry = first ? at + i++ : b_at + j++;
    to->atoms[to->n] = from->atoms[entry];
    to->score[to->n] = from->score[entry];
    to->codes[to->n] = from->codes[entry];
  }
  return count;
}

int entries_merge(struct entry_list *l, idx *lengths, const struct entry_list *more,
                  const idx *more_lengths, idx n, idx top)
{
  struct entry_list all = {0};
  gidx at = 0, more_at = 0;
  int has_all = entries_reserve(&all, l->n + more->n);
  for (idx i = 0; has_all && i < n; i++) {
    idx length = lengths[i];
    lengths[i] = row_merge(&all, l, at, length, more, more_at, more_lengths[i], top);
    at += length;
    more_at += more_lengths[i];
  }
  entries_free(has_all ? l : &all);
  if (has_all) *l = all;
  return has_all;
}

void entries_free(struct entry_list *l)
{
  free(l->atoms);
  free(l->score);
  free(l->codes);
}

idx pursuit_step(const float *atoms, idx k, idx p, const float *scores, float *residual,
                 idx *support, float *codes, idx n)
{
  idx best = 0, at = 0;
  for (idx a = 1; a < k; a++)
    if (scores[a] > scores[best]) best = a;
  if (!(scores[best] > 0)) return n;
  const float *atom = atoms + (gidx)best * p;
  for (idx c = 0; c < p; c++) residual[c] -= scores[best] * atom[c];
  while (at < n && support[at] != best) at++;
  if (at == n) codes[n] = 0;
  support[at] = best;
  codes[at] += scores[best];
  return at == n ? n + 1 : n;
}
