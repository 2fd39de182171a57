/* SPDX-License-Identifier: BSD-3-Clause
 * Plain loops: first all slots are read, then tokens are computed by sequence, token and head, then
 * all slots are written. */
#include "model/gated_delta.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "model/functions.h"

static const float LOG2_E = 0x1.715476p+0f;

int gated_delta_check(const struct gated_delta *m)
{
  CHECK(m->heads_k >= 1 && m->heads >= 1 && m->heads % m->heads_k == 0, ERR_INPUT,
        "%d key heads and %d heads: the number of key heads has to divide that of heads",
        m->heads_k, m->heads);
  CHECK(m->d >= 1 && m->d <= DELTA_COLUMNS && m->dv >= 1 && m->dv <= DELTA_COLUMNS, ERR_INPUT,
        "heads have %d columns of q and k and %d of v, not 1 .. %d", m->d, m->dv, DELTA_COLUMNS);
  CHECK(m->width == 0 || (m->width >= 2 && m->width <= DELTA_TAPS), ERR_INPUT,
        "a convolution of %d taps, not 2 .. %d", m->width, DELTA_TAPS);
  CHECK(gated_delta_channels(m) <= INT32_MAX / DELTA_TAPS, ERR_INPUT,
        "a token has %lld channels, more than %d", (long long)gated_delta_channels(m),
        INT32_MAX / DELTA_TAPS);
  CHECK(isfinite(m->scale) && m->scale != 0, ERR_INPUT,
        "the scale of q is %g, and has to be finite and not 0", (double)m->scale);
  CHECK(isfinite(m->eps) && m->eps >= 0, ERR_INPUT,
        "eps is %g, and has to be finite and at least 0", (double)m->eps);
  return OK;
}

gidx gated_delta_channels(const struct gated_delta *m)
{
  return 2 * (gidx)m->heads_k * m->d + (gidx)m->heads * m->dv;
}

idx gated_delta_decays(const struct gated_delta *m)
{
  return m->by_column ? m->d : 1;
}

idx gated_delta_key_head(const struct gated_delta *m, idx head)
{
  return m->tiled ? head % m->heads_k : head / (m->heads / m->heads_k);
}

float gated_delta_lanes(const float *x, const float *y, idx n)
{
  float lane[DELTA_LANES] = {0};
  for (idx i = 0; i < n; i++) lane[i % DELTA_LANES] = fmaf(x[i], y[i], lane[i % DELTA_LANES]);
  for (int step = 1; step < DELTA_LANES; step *= 2)
    for (int i = 0; i < DELTA_LANES; i += 2 * step) lane[i] += lane[i + step];
  return lane[0];
}

float gated_delta_exp(float z)
{
  return exp2_f32(z * LOG2_E);
}

float gated_delta_conv(const struct gated_delta *m, const float *x, const float *taps, float bias)
{
  float y = bias;
  for (idx t = 0; t < m->width; t++) y = fmaf(x[t], taps[t], y);
  return m->silu ? y / (1 + gated_delta_exp(-y)) : y;
}

static void vector_norm(const struct gated_delta *m, float *x)
{
  float size = sqrtf(gated_delta_lanes(x, x, m->d) + m->eps);
  for (idx i = 0; i < m->d; i++) x[i] /= size;
}

void gated_delta_norm(const struct gated_delta *m, float *row)
{
  gidx q = (gidx)m->heads_k * m->d;
  for (idx h = 0; m->l2 && h < 2 * m->heads_k; h++) vector_norm(m, row + (gidx)h * m->d);
  for (gidx i = 0; i < q; i++) row[i] *= m->scale;
}

void gated_delta_step(const struct gated_delta *m, const float *q, const float *k, const float *v,
                      const float *g, float beta, float *s, float *o)
{
  float decay[DELTA_COLUMNS];
  for (idx i = 0; i < m->d; i++) decay[i] = gated_delta_exp(g[m->by_column ? i : 0]);
  for (idx j = 0; j < m->dv; j++, s += m->d) {
    for (idx i = 0; i < m->d; i++) s[i] *= decay[i];
    float delta = beta * (v[j] - gated_delta_lanes(s, k, m->d));
    for (idx i = 0; i < m->d; i++) s[i] = fmaf(k[i], delta, s[i]);
    o[j] = gated_delta_lanes(s, q, m->d);
  }
}

int delta_slots_plan(const struct delta_slots *s, unsigned char *way, idx *owner, idx *gathered)
{
  for (idx i = 0; i < s->sequences; i++) {
    idx in = s->in[i], out = s->out[i];
    CHECK(in >= -1 && in < s->slots && out >= -1 && out < s->slots, ERR_INPUT,
          "sequence %d reads slot %d and writes slot %d, and there are %d (-1: none)", i, in, out,
          s->slots);
    if (in >= 0) owner[in] = -1;
    if (out >= 0) owner[out] = -1;
  }
  for (idx i = 0; i < s->sequences; i++) {
    idx out = s->out[i];
    if (out < 0) continue;
    CHECK(owner[out] < 0, ERR_INPUT, "sequences %d and %d both write slot %d", owner[out], i, out);
    owner[out] = i;
  }
  *gathered = 0;
  for (idx i = 0; i < s->sequences; i++) {
    idx other = s->in[i] < 0 ? -1 : owner[s->in[i]];
    way[i] = other < 0 || other == i ? DELTA_DIRECT : DELTA_GATHERED;
    *gathered += way[i] == DELTA_GATHERED;
  }
  return OK;
}

/* Work space of a call. */
struct scratch {
  struct arena arena;
  gidx state, taps; /* floats per sequence */
  float *s, *t;     /* [sequences][state], [sequences][taps] */
  float *row;       /* [C] */
  unsigned char *way;
  idx *owner;
};

static int scratch_alloc(struct scratch *w, const struct gated_delta *m,
                         const struct gated_delta_call *c)
{
  gidx channels = gated_delta_channels(m), n = c->slots.sequences;
  w->state = (gidx)c->count * m->dv * m->d;
  w->taps = m->width ? channels * (m->width - 1) : 0;
  TRY(arena_alloc(&w->arena, &w->s, n * w->state, sizeof *w->s));
  TRY(arena_alloc(&w->arena, &w->t, n * w->taps, sizeof *w->t));
  TRY(arena_alloc(&w->arena, &w->row, channels, sizeof *w->row));
  TRY(arena_alloc(&w->arena, &w->way, n, sizeof *w->way));
  return arena_alloc(&w->arena, &w->owner, c->slots.slots, sizeof *w->owner);
}

/* Copy `floats` numbers from a slot of the pool to own (is_read), or from own to the slot; slot -1:
 * nothing is copied. */
static void pool_copy(float *pool, idx slot, gidx floats, float *own, int is_read)
{
  if (slot < 0 || !floats) return;
  float *there = pool + slot * floats;
  memcpy(is_read ? own : there, is_read ? there : own, (size_t)floats * sizeof *own);
}

static void slots_copy(const struct gated_delta_call *c, struct scratch *w, int is_read)
{
  const idx *slots = is_read ? c->slots.in : c->slots.out;
  for (idx i = 0; i < c->slots.sequences; i++) {
    pool_copy(c->s, slots[i], w->state, w->s + i * w->state, is_read);
    pool_copy(c->taps, slots[i], w->taps, w->t + i * w->taps, is_read);
  }
}

/* row <- x after the convolution, if there is one, and the norm; taps are shifted by one token. */
static void row_make(const struct gated_delta *m, const struct gated_delta_call *c, const float *x,
                     float *taps, float *row)
{
  gidx channels = gated_delta_channels(m);
  if (!m->width) memcpy(row, x, (size_t)channels * sizeof *row);
  for (gidx i = 0, n = m->width - 1; m->width && i < channels; i++) {
    float window[DELTA_TAPS];
    memcpy(window, taps + i * n, (size_t)n * sizeof *taps);
    window[n] = x[i];
    row[i] =
        gated_delta_conv(m, window, c->conv + i * m->width, c->conv_bias ? c->conv_bias[i] : 0);
    memcpy(taps + i * n, window + 1, (size_t)n * sizeof *taps);
  }
  gated_delta_norm(m, row);
}

static void token_run(const struct gated_delta *m, const struct gated_delta_call *c,
                      const float *row, gidx token, float *s)
{
  const float *k = row + (gidx)m->heads_k * m->d, *v = k + (gidx)m->heads_k * m->d;
  for (idx h = 0; h < c->count; h++) {
    gidx at = token * c->count + h, key = (gidx)gated_delta_key_head(m, c->first + h) * m->d;
    gated_delta_step(m, row + key, k + key, v + (gidx)(c->first + h) * m->dv,
                     c->g + at * gated_delta_decays(m), c->beta[at], s + (gidx)h * m->dv * m->d,
                     c->o + at * m->dv);
  }
}

int gated_delta_run(const struct gated_delta *m, const struct gated_delta_call *c)
{
  struct scratch w = {0};
  idx gathered;
  int status = gated_delta_check(m);
  if (!status) status = scratch_alloc(&w, m, c);
  if (!status) status = delta_slots_plan(&c->slots, w.way, w.owner, &gathered);
  if (!status) {
    slots_copy(c, &w, 1);
    for (idx i = 0; i < c->slots.sequences; i++)
      for (gidx t = c->start[i]; t < c->start[i + 1]; t++) {
        row_make(m, c, c->x + t * gated_delta_channels(m), w.t + i * w.taps, w.row);
        token_run(m, c, w.row, t, w.s + i * w.state);
      }
    slots_copy(c, &w, 0);
  }
  arena_free(&w.arena);
  return status;
}
