/* SPDX-License-Identifier: BSD-3-Clause
 * The reference uses dense matrices of codes; the codes of latents that a row does not use are
 * 0. */
#include "model/train.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "model/dictionary.h"
#include "model/encoder.h"
#include "model/triad.h"

enum { STREAM = 0x7453 }; /* stream of the random atoms */

gidx train_numbers(idx k, idx p, int array)
{
  return array == TRAIN_BIAS ? k : (gidx)k * p;
}

void train_state_arrays(struct train_state *s, idx k, idx p,
                        struct train_array arrays[TRAIN_STATE_ARRAYS])
{
  for (int i = 0; i < TRAIN_ARRAYS; i++) {
    gidx n = train_numbers(k, p, i);
    *arrays++ = (struct train_array){&s->w[i], n, sizeof(float)};
    *arrays++ = (struct train_array){&s->m[i], n, sizeof(float)};
    *arrays++ = (struct train_array){&s->v[i], n, sizeof(float)};
  }
  for (int i = 0; i < LENGTH(s->offset); i++)
    *arrays++ = (struct train_array){&s->offset[i], p, sizeof(float)};
  *arrays = (struct train_array){&s->idle, k, sizeof *s->idle};
}

int train_state_alloc(struct train_state *s, struct arena *arena, idx k, idx p)
{
  struct train_array arrays[TRAIN_STATE_ARRAYS];
  *s = (struct train_state){0};
  train_state_arrays(s, k, p, arrays);
  for (int i = 0; i < LENGTH(arrays); i++)
    TRY(arena_alloc(arena, arrays[i].at, arrays[i].count, arrays[i].size));
  return OK;
}

void train_atoms_draw(float *atoms, idx k, idx p, uint64_t seed)
{
  for (gidx i = 0; i < (gidx)k * p; i++) atoms[i] = (float)random_normal(seed, STREAM, (uint64_t)i);
  atoms_normalize(atoms, k, 1, p);
}

void train_start(struct train_state *s, idx k, idx p, const float *atoms)
{
  size_t bytes = (size_t)k * (size_t)p * sizeof *atoms;
  memmove(s->w[TRAIN_DECODER], atoms, bytes);
  memcpy(s->w[TRAIN_ENCODER], s->w[TRAIN_DECODER], bytes);
}

real train_square(const float *row, idx p)
{
  real sum = 0;
  for (idx c = 0; c < p; c++) sum = fma((real)row[c], (real)row[c], sum);
  return sum;
}

int train_scale(const float *x, idx n, idx p)
{
  real sum = 0;
  int e;
  for (idx i = 0; i < n; i++) sum += train_square(x + (gidx)i * p, p);
  if (!(sum > 0)) return 0;
  frexp(sum / ((real)n * p), &e);
  return -((e - (e & 1)) / 2);
}

void train_rows_scale(float *x, gidx count, int q)
{
  float factor = ldexpf(1, q);
  if (isnormal(factor)) /* the product is rounded as ldexpf() rounds, and is much faster */
    for (gidx i = 0; i < count; i++) x[i] *= factor;
  else
    for (gidx i = 0; i < count; i++) x[i] = ldexpf(x[i], q);
}

idx train_select(const float *scores, idx k, idx most, idx *atoms, float *codes)
{
  const struct encoder e = {.kind = ENCODER_TOPK, .k = k, .top = most};
  idx n = encoder_select(&e, scores, atoms, codes);
  for (idx i = 1; i < n; i++) {
    idx atom = atoms[i], at = i;
    for (; at > 0 && atoms[at - 1] > atom; at--) atoms[at] = atoms[at - 1];
    atoms[at] = atom;
  }
  for (idx i = 0; i < n; i++) codes[i] = scores[atoms[i]];
  return n;
}

float train_error_factor(idx n, idx p)
{
  return (float)(2 / ((real)n * p));
}

float train_aux_factor(const struct train_sizes *z, real error)
{
  return (float)(2 * z->aux_weight / error);
}

/* The arrays of a step with dense matrices. */
struct dense_step {
  const struct train_sizes *sizes;
  struct train_state *s;
  const float *x, *ones;
  idx n;
  float *h, *code, *dh;          /* [n][k] */
  float *e, *g;                  /* [n][p] */
  float *z;                      /* [n][blocks][p] contribution, then error, of each block (N.47) */
  float *of_block;               /* [n][k] the codes of one block */
  float *moved;                  /* [n][p] x less the offset */
  float *offset;                 /* [p] gradient of the offset */
  float *gradient[TRAIN_ARRAYS]; /* laid out as the arrays */
  unsigned char *used;           /* [k] */
  idx *atoms;                    /* [k] */
  float *codes;                  /* [k] */
};

static int step_alloc(struct dense_step *d, struct arena *a)
{
  idx k = d->sizes->k, p = d->sizes->p, n = d->n;
  float *ones;
  TRY(arena_alloc(a, &d->h, (gidx)n * k, sizeof(float)));
  TRY(arena_alloc(a, &d->code, (gidx)n * k, sizeof(float)));
  TRY(arena_alloc(a, &d->dh, (gidx)n * k, sizeof(float)));
  TRY(arena_alloc(a, &d->e, (gidx)n * p, sizeof(float)));
  TRY(arena_alloc(a, &d->g, (gidx)n * p, sizeof(float)));
  TRY(arena_alloc(a, &d->z, (gidx)n * p * nested_blocks(&d->sizes->nested), sizeof(float)));
  TRY(arena_alloc(a, &d->of_block, (gidx)n * k, sizeof(float)));
  TRY(arena_alloc(a, &d->moved, (gidx)n * p, sizeof(float)));
  TRY(arena_alloc(a, &d->offset, p, sizeof(float)));
  for (int i = 0; i < TRAIN_ARRAYS; i++)
    TRY(arena_alloc(a, &d->gradient[i], train_numbers(k, p, i), sizeof(float)));
  TRY(arena_alloc(a, &d->used, k, 1));
  TRY(arena_alloc(a, &d->atoms, k, sizeof(idx)));
  TRY(arena_alloc(a, &d->codes, k, sizeof(float)));
  TRY(arena_alloc(a, &ones, n, sizeof(float)));
  for (idx i = 0; i < n; i++) ones[i] = 1;
  d->ones = ones;
  return OK;
}

/* code[n][k] <- for each row the largest positive scores of all latents, or of the dead ones. */
static void codes_choose(struct dense_step *d, int of_dead)
{
  idx k = d->sizes->k;
  memset(d->code, 0, (size_t)d->n * (size_t)k * sizeof *d->code);
  for (idx i = 0; i < d->n; i++) {
    float *h = d->h + (gidx)i * k;
    for (idx a = 0; a < k && of_dead; a++)
      if (d->s->idle[a] < d->sizes->dead_rows) h[a] = 0;
    idx m = train_select(h, k, of_dead ? d->sizes->aux : d->sizes->s, d->atoms, d->codes);
    for (idx j = 0; j < m; j++) d->code[(gidx)i * k + d->atoms[j]] = d->codes[j];
  }
}

/* code[n][k] <- the largest positive scores of the batch; the smallest of these updates the
 * threshold. */
static int batch_choose(struct dense_step *d)
{
  gidx most = batch_most(d->sizes->l0, d->n);
  float least;
  TRY(batch_select_reference(d->h, d->n, d->sizes->k, most, d->code, &least));
  if (most > 0) batch_threshold_add(&d->s->threshold, least);
  return OK;
}

/* y[n][p] <- code[n][k] times the decoder; rows of y are `stride` apart. */
static void codes_decode(struct dense_step *d, const float *code, float *y, gidx stride)
{
  idx k = d->sizes->k, p = d->sizes->p;
  struct triad_product product = {code, {d->s->w[TRAIN_DECODER], p, 1}, NULL, y, k, stride, d->n, k,
                                  p};
  triad_product(&product);
}

/* Add to the gradients the contributions of g[n][p], the gradient of the reconstruction from
 * code[n][k]; rows of g are `stride` apart. */
static void gradients_add(struct dense_step *d, const float *code, const float *g, gidx stride)
{
  idx k = d->sizes->k, p = d->sizes->p, n = d->n;
  struct triad_product back = {g, {d->s->w[TRAIN_DECODER], 1, p}, NULL, d->dh, stride, k, n, p, k};
  triad_product(&back);
  for (gidx i = 0; i < (gidx)n * k; i++)
    if (code[i] == 0) d->dh[i] = 0;
  const struct triad_gradient all[] = {{code, g, d->gradient[TRAIN_DECODER], k, stride, p, n, k, p},
                                       {d->dh, d->x, d->gradient[TRAIN_ENCODER], k, p, p, n, k, p},
                                       {d->dh, d->ones, d->gradient[TRAIN_BIAS], k, 1, 1, n, k, 1}};
  for (int i = 0; i < TRAIN_ARRAYS; i++) triad_gradient(&all[i]);
}

/* d->x <- the rows less the offset. */
static void rows_move(struct dense_step *d)
{
  for (gidx i = 0; i < (gidx)d->n * d->sizes->p; i++)
    d->moved[i] = d->x[i] - d->s->offset[0][i % d->sizes->p];
  d->x = d->moved;
}

/* The gradient of the offset.  The offset is subtracted from rows both as targets and as inputs of
 * the encoder. */
static void offset_learn(struct dense_step *d)
{
  idx k = d->sizes->k, p = d->sizes->p;
  gidx row = (gidx)nested_blocks(&d->sizes->nested) * p;
  const struct triad_gradient target = {d->ones, d->z, d->offset, 1, row, p, d->n, 1, p};
  triad_gradient(&target);
  for (idx c = 0; c < p; c++)
    for (idx a = 0; a < k; a++)
      d->offset[c] =
          fmaf(-d->gradient[TRAIN_BIAS][a], d->s->w[TRAIN_ENCODER][(gidx)a * p + c], d->offset[c]);
}

/* Move all arrays, or all except the decoder. */
static void weights_move(struct dense_step *d, real rate, gidx t)
{
  const struct train_sizes *z = d->sizes;
  struct train_state *s = d->s;
  const struct adam_rates rates = adam_rates(rate, t);
  struct adam_state offset = {s->offset[0], s->offset[1], s->offset[2], d->offset, z->p};
  if (z->learns_offset) adam_step(&offset, &rates);
  for (gidx a = 0; a < z->k; a++)
    atom_gradient(s->w[TRAIN_DECODER] + a * z->p, z->p, d->gradient[TRAIN_DECODER] + a * z->p);
  for (int i = z->is_fixed ? TRAIN_ENCODER : TRAIN_DECODER; i < TRAIN_ARRAYS; i++) {
    struct adam_state a = {s->w[i], s->m[i], s->v[i], d->gradient[i], train_numbers(z->k, z->p, i)};
    adam_step(&a, &rates);
  }
  if (!z->is_fixed) atoms_normalize(s->w[TRAIN_DECODER], z->k, 1, z->p);
}

static int is_any_dead(const struct train_sizes *z, const struct train_state *s)
{
  int any = 0;
  for (idx a = 0; a < z->k && z->aux; a++) any |= s->idle[a] >= z->dead_rows;
  return any;
}

/* Let the dead latents describe the error, and add their gradients; g <- factor (y + e), where y is
 * the reconstruction by dead latents. */
static void dead_add(struct dense_step *d, real error)
{
  float factor = train_aux_factor(d->sizes, error);
  codes_choose(d, 1);
  codes_decode(d, d->code, d->g, d->sizes->p);
  for (gidx i = 0; i < (gidx)d->n * d->sizes->p; i++) d->g[i] = factor * (d->g[i] + d->e[i]);
  gradients_add(d, d->code, d->g, d->sizes->p);
}

/* of_block[n][k] <- the codes of a block. */
static void block_take(struct dense_step *d, int block)
{
  idx k = d->sizes->k, first, end;
  nested_block(&d->sizes->nested, k, block, &first, &end);
  memset(d->of_block, 0, (size_t)d->n * (size_t)k * sizeof *d->of_block);
  for (gidx i = 0; i < (gidx)d->n * k; i++)
    if (i % k >= first && i % k < end) d->of_block[i] = d->code[i];
}

/* e <- the error of all codes; gradients <- the contributions of the errors of all widths. */
static void codes_learn(struct dense_step *d)
{
  idx p = d->sizes->p, n = d->n;
  int blocks = nested_blocks(&d->sizes->nested);
  gidx row = (gidx)blocks * p;
  for (int b = 0; b < blocks; b++) {
    block_take(d, b);
    codes_decode(d, d->of_block, d->z + (gidx)b * p, row);
  }
  for (idx i = 0; i < n; i++) {
    nested_errors(d->z + i * row, d->x + (gidx)i * p, blocks, p);
    memcpy(d->e + (gidx)i * p, d->z + (i + 1) * row - p, (size_t)p * sizeof *d->e);
  }
  for (gidx i = 0; i < n * row; i++) d->z[i] *= train_error_factor(n, p);
  for (idx i = 0; i < n; i++) nested_suffix(d->z + i * row, blocks, p);
  for (int b = 0; b < blocks; b++) {
    block_take(d, b);
    gradients_add(d, d->of_block, d->z + (gidx)b * p, row);
  }
}

/* used[k] <- 1 if a row has a code of the atom. */
static void used_find(const struct dense_step *d, unsigned char *used)
{
  for (gidx i = 0; i < (gidx)d->n * d->sizes->k; i++)
    if (d->code[i] != 0) used[i % d->sizes->k] = 1;
}

static int step_make(struct dense_step *d, real rate, gidx t)
{
  const struct train_sizes *z = d->sizes;
  struct train_state *s = d->s;
  idx k = z->k, p = z->p, n = d->n;
  real error = 0, size = 0;
  if (z->learns_offset) rows_move(d);
  struct triad_product forward = {
      d->x, {s->w[TRAIN_ENCODER], 1, p}, s->w[TRAIN_BIAS], d->h, p, k, n, p, k};
  triad_product(&forward);
  if (z->l0 > 0)
    TRY(batch_choose(d));
  else
    codes_choose(d, 0);
  used_find(d, d->used);
  codes_learn(d);
  for (idx i = 0; i < n; i++) {
    error += train_square(d->e + (gidx)i * p, p);
    size += train_square(d->x + (gidx)i * p, p);
  }
  if (is_any_dead(z, s) && error > 0) dead_add(d, error);
  for (idx a = 0; a < k; a++) s->idle[a] = d->used[a] ? 0 : s->idle[a] + n;
  s->error += error;
  s->size += size;
  if (z->learns_offset) offset_learn(d);
  weights_move(d, rate, t);
  return OK;
}

int train_step_reference(const struct train_sizes *z, struct train_state *s, const float *x, idx n,
                         real rate, gidx t)
{
  struct arena arena = {0};
  struct dense_step d = {.sizes = z, .s = s, .x = x, .n = n};
  int status = step_alloc(&d, &arena);
  if (!status) status = step_make(&d, rate, t);
  arena_free(&arena);
  return status;
}
