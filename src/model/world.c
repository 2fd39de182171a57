/* SPDX-License-Identifier: BSD-3-Clause
 * Roots and features outside of trees are tried in turn; a child is tried only if its parent fires.
 * Random numbers depend on positions alone, so untried children do not change other draws.  The
 * only libm function is sqrt. */
#include "model/world.h"

#include <math.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"

/* Streams of base/rng.h, in addition to those of model/synth.h. */
enum {
  STREAM_VECTOR = 101,
  STREAM_FACTOR,
  STREAM_DEVIATION,
  STREAM_BIAS,
  STREAM_SHARED,    /* the factors of a row */
  STREAM_FIRE,      /* does a feature fire? */
  STREAM_MAGNITUDE, /* how strongly */
  STREAM_EXCLUDE    /* which of several children stays */
};

/* The upper tail of the normal distribution is tabulated at -8 .. 8 in steps of 1 / 256.  Each step
 * is integrated by two steps of Simpson's rule. */
enum { TAIL_HALF = 8 * 256, TAIL_COUNT = 2 * TAIL_HALF + 1, TAIL_STEPS = 256 };

#define CORRELATION 0.1    /* standard deviation of a factor's entries */
#define MOST_SHARED 0.99   /* largest part of a feature's variance that comes from the factors */
#define FIRST_MEAN 5.0     /* mean magnitude of the first feature */
#define LAST_MEAN 4.0      /* mean magnitude of the last feature */
#define MEAN_DEVIATION 0.5 /* a deviation is |x|, x normal with this mean and standard deviation */
#define BIAS_NORM 0.5

int world_check(const struct world *w)
{
  CHECK((gidx)w->trees * WORLD_TREE <= w->f, ERR_USAGE,
        "'--trees' is %d, whose %lld features are more than the %d of '--atoms': at most %d fit; "
        "lower '--trees' (-1: none), or raise '--atoms'",
        w->trees, (long long)w->trees * WORLD_TREE, w->f, w->f / WORLD_TREE);
  CHECK(w->least > 0 && w->least <= w->most && w->most < 1, ERR_USAGE,
        "'--least' is %g and '--most' %g: features fire with a probability above 0 and below 1, "
        "the last one least",
        w->least, w->most);
  return OK;
}

/* First feature of a level; level WORLD_LEVELS + 1 begins after all trees. */
static idx level_begin(const struct world *w, int level)
{
  gidx begin = 0, count = w->trees;
  for (int l = 0; l < level; l++, count *= WORLD_CHILDREN) begin += count;
  return (idx)begin;
}

/* The level of a feature; WORLD_LEVELS + 1: it is outside of trees. */
static int level_of(const struct world *w, idx feature)
{
  int level = 0;
  while (level <= WORLD_LEVELS && feature >= level_begin(w, level + 1)) level++;
  return level;
}

idx world_parent(const struct world *w, idx feature)
{
  int level = level_of(w, feature);
  if (level == 0 || level > WORLD_LEVELS) return -1;
  return level_begin(w, level - 1) + (feature - level_begin(w, level)) / WORLD_CHILDREN;
}

idx world_child(const struct world *w, idx feature)
{
  int level = level_of(w, feature);
  if (level >= WORLD_LEVELS) return -1;
  return level_begin(w, level + 1) + (feature - level_begin(w, level)) * WORLD_CHILDREN;
}

real world_mean(const struct world *w, idx feature)
{
  return w->f > 1 ? FIRST_MEAN + (LAST_MEAN - FIRST_MEAN) * feature / (w->f - 1) : FIRST_MEAN;
}

/* exp(-x) for 0 <= x <= 2^-9, by its series. */
static real exp_minus(real x)
{
  return 1 - x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5))));
}

/* From one multiple of h to the next, the density is multiplied by `factor`, and `factor` by
 * `ratio`. */
static void tail_fill(real *tail)
{
  const real h = 1.0 / (2 * TAIL_STEPS), ratio = exp_minus(h * h);
  real density = 0.3989422804014327, factor = exp_minus(h * h / 2);
  tail[TAIL_HALF] = 0.5;
  for (int i = 1; i <= TAIL_HALF; i++) {
    real sum = density;
    for (int half = 0; half < 2; half++) {
      density *= factor;
      factor *= ratio;
      sum += half ? density : 4 * density;
    }
    real left = tail[TAIL_HALF + i - 1] - sum * h / 3;
    tail[TAIL_HALF + i] = left > 0 ? left : 0;
    tail[TAIL_HALF - i] = 1 - tail[TAIL_HALF + i];
  }
}

/* The probability that a normal number is above z, interpolated in the table. */
static real tail_at(const real *tail, real z)
{
  real at = (z + 8) * TAIL_STEPS;
  if (at <= 0) return 1;
  if (at >= TAIL_COUNT - 1) return 0;
  int i = (int)at;
  return tail[i] + (at - i) * (tail[i + 1] - tail[i]);
}

/* The z that a normal number exceeds with this probability, by bisection. */
static real tail_find(const real *tail, real probability)
{
  enum { HALVINGS = 60 };
  real low = -8, high = 8;
  for (int i = 0; i < HALVINGS; i++) {
    real middle = (low + high) / 2;
    if (tail_at(tail, middle) > probability)
      low = middle;
    else
      high = middle;
  }
  return high;
}

/* The probability with which a feature must fire when its parent does.  It is raised to compensate
 * for siblings that exclude the feature, so that the feature fires with its own probability. */
static real probability_given_parent(const struct world *w, idx feature)
{
  idx parent = world_parent(w, feature);
  if (parent < 0) return w->probability[feature];
  real of_parent = w->probability[parent], own = w->probability[feature], others = 0;
  for (idx c = world_child(w, parent), i = 0; i < WORLD_CHILDREN; i++)
    if (c + i != feature) others += w->probability[c + i];
  real p = own / of_parent * (1 + others / of_parent);
  return p < 1 ? p : 1;
}

/* Set the factors of a feature; they give at most MOST_SHARED of its variance. */
static void factor_fill(struct world *w, idx feature)
{
  real *factor = w->factor + (gidx)feature * WORLD_FACTORS, squares = 0;
  for (int k = 0; k < WORLD_FACTORS; k++) {
    uint64_t counter = (uint64_t)feature * WORLD_FACTORS + (uint64_t)k;
    factor[k] = CORRELATION * random_normal(w->seed, STREAM_FACTOR, counter);
    squares += factor[k] * factor[k];
  }
  if (squares > MOST_SHARED) {
    real scale = sqrt(MOST_SHARED / squares);
    for (int k = 0; k < WORLD_FACTORS; k++) factor[k] *= scale;
    squares = MOST_SHARED;
  }
  w->rest[feature] = 1 / sqrt(1 - squares);
}

/* Scale v[p] to a norm. */
static void scale_to(real *v, idx p, real norm)
{
  real squares = 0;
  for (idx c = 0; c < p; c++) squares += v[c] * v[c];
  real scale = squares > 0 ? norm / sqrt(squares) : 0;
  for (idx c = 0; c < p; c++) v[c] *= scale;
}

static void arrays_fill(struct world *w)
{
  tail_fill(w->tail);
  real last = 1 / sqrt((real)w->f);
  for (idx i = 0; i < w->f; i++) {
    real zipf = w->f > 1 ? (1 / sqrt((real)i + 1) - last) / (1 - last) : 1;
    w->probability[i] = w->least + (w->most - w->least) * zipf;
    real normal = random_normal(w->seed, STREAM_DEVIATION, (uint64_t)i);
    w->deviation[i] = fabs(MEAN_DEVIATION + MEAN_DEVIATION * normal);
    factor_fill(w, i);
  }
  for (idx i = 0; i < w->f; i++) {
    real p = probability_given_parent(w, i);
    w->threshold[i] = p < 1 ? tail_find(w->tail, p) : -INFINITY;
  }
  for (idx c = 0; c < w->p; c++) w->bias[c] = random_normal(w->seed, STREAM_BIAS, (uint64_t)c);
  scale_to(w->bias, w->p, BIAS_NORM);
}

int world_init(struct world *w, struct arena *arena)
{
  TRY(arena_alloc(arena, &w->probability, w->f, sizeof *w->probability));
  TRY(arena_alloc(arena, &w->threshold, w->f, sizeof *w->threshold));
  TRY(arena_alloc(arena, &w->factor, (gidx)w->f * WORLD_FACTORS, sizeof *w->factor));
  TRY(arena_alloc(arena, &w->rest, w->f, sizeof *w->rest));
  TRY(arena_alloc(arena, &w->deviation, w->f, sizeof *w->deviation));
  TRY(arena_alloc(arena, &w->bias, w->p, sizeof *w->bias));
  TRY(arena_alloc(arena, &w->tail, TAIL_COUNT, sizeof *w->tail));
  if (!arena->is_dry) arrays_fill(w);
  return OK;
}

void world_vector(const struct world *w, idx feature, real *out)
{
  uint64_t first = (uint64_t)feature * (uint64_t)w->p;
  for (idx c = 0; c < w->p; c++)
    out[c] = random_normal(w->seed, STREAM_VECTOR, first + (uint64_t)c);
  scale_to(out, w->p, 1);
}

void world_gram(const struct world *w, const real *v, idx first, idx count, real *gram)
{
  for (gidx i = 0; i < (gidx)count * w->p; i++) gram[i] = 0;
  for (idx i = 0; i < w->f; i++) {
    const real *row = v + (gidx)i * w->p;
    for (idx b = 0; b < count; b++) {
      real x = row[first + b], *sum = gram + (gidx)b * w->p;
      for (idx c = 0; c < w->p; c++) sum[c] += x * row[c];
    }
  }
}

void world_spread(const struct world *w, const real *gram, idx count, real *v, real *work)
{
  real scale = w->f > w->p ? (real)w->f / w->p : 1;
  for (idx i = 0; i < count; i++) {
    real *row = v + (gidx)i * w->p;
    for (idx c = 0; c < w->p; c++) work[c] = 0;
    for (idx b = 0; b < w->p; b++) {
      const real *line = gram + (gidx)b * w->p;
      real x = row[b];
      for (idx c = 0; c < w->p; c++) work[c] += x * line[c];
    }
    for (idx c = 0; c < w->p; c++) row[c] = row[c] * (4.0 / 3) - work[c] / (3 * scale);
    scale_to(row, w->p, 1);
  }
}

/* Does a feature fire in a row with these shared normal numbers, if its parent does? */
static int fires(const struct world *w, gidx row, idx feature, const real *shared)
{
  const real *factor = w->factor + (gidx)feature * WORLD_FACTORS;
  real sum = 0;
  for (int k = 0; k < WORLD_FACTORS; k++) sum += factor[k] * shared[k];
  real z = (w->threshold[feature] - sum) * w->rest[feature];
  uint64_t bits = random_bits(w->seed, STREAM_FIRE, (uint64_t)(row * w->f + feature));
  return (real)(bits >> 11) * 0x1p-53 < tail_at(w->tail, z);
}

/* The magnitude with which a feature fires.  0: the draw is not positive, so it does not fire. */
static real magnitude(const struct world *w, gidx row, idx feature)
{
  real normal = random_normal(w->seed, STREAM_MAGNITUDE, (uint64_t)(row * w->f + feature));
  real size = world_mean(w, feature) + w->deviation[feature] * normal;
  return size > 0 ? size : 0;
}

/* Of the children of a firing feature pick the one that fires; *size <- its magnitude before
 * scaling; -1: none does. */
static idx child_pick(const struct world *w, gidx row, idx parent, const real *shared, real *size)
{
  idx child = world_child(w, parent), picked = -1;
  uint64_t best = 0;
  for (idx c = child; child >= 0 && c < child + WORLD_CHILDREN; c++) {
    real own = fires(w, row, c, shared) ? magnitude(w, row, c) : 0;
    uint64_t draw = random_bits(w->seed, STREAM_EXCLUDE, (uint64_t)(row * w->f + c));
    if (own == 0 || (picked >= 0 && draw <= best)) continue;
    picked = c;
    best = draw;
    *size = own;
  }
  return picked;
}

/* Insert a feature into n ascending ones. */
static void insert(idx *atoms, float *codes, idx n, idx feature, real size)
{
  idx at = n;
  for (; at > 0 && atoms[at - 1] > feature; at--) {
    atoms[at] = atoms[at - 1];
    codes[at] = codes[at - 1];
  }
  atoms[at] = feature;
  codes[at] = (float)size;
}

idx world_features(const struct world *w, gidx row, idx *atoms, float *codes)
{
  real shared[WORLD_FACTORS];
  for (int k = 0; k < WORLD_FACTORS; k++)
    shared[k] = random_normal(w->seed, STREAM_SHARED, (uint64_t)(row * WORLD_FACTORS + k));
  idx n = 0, begin = level_begin(w, WORLD_LEVELS + 1);
  for (idx root = 0; root < w->f; root = root + 1 == w->trees ? begin : root + 1) {
    real size = fires(w, row, root, shared) ? magnitude(w, row, root) : 0, own = 0;
    for (idx feature = root; feature >= 0 && size > 0;) {
      insert(atoms, codes, n++, feature, size);
      idx child = root < w->trees ? child_pick(w, row, feature, shared, &own) : -1;
      size = own * (size / world_mean(w, feature));
      feature = child;
    }
  }
  return n;
}

void world_row(const struct world *w, const float *vectors, idx n, const idx *atoms,
               const float *codes, float *out, real *work)
{
  for (idx c = 0; c < w->p; c++) work[c] = w->bias[c];
  for (idx j = 0; j < n; j++) {
    const float *vector = vectors + (gidx)atoms[j] * w->p;
    for (idx c = 0; c < w->p; c++) work[c] += (real)codes[j] * vector[c];
  }
  for (idx c = 0; c < w->p; c++) out[c] = (float)work[c];
}
