/* SPDX-License-Identifier: BSD-3-Clause
 * Queries, keys and values of one sequence, drawn at random, for tests of attention. */
#ifndef TESTS_ATTENTION_DATA_H
#define TESTS_ATTENTION_DATA_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "model/attention.h"

struct sequence {
  struct attention a;
  gidx n_q, n_kv;
  float *q, *k, *v; /* [n_q][heads][d], [n_kv][kv_heads][d], [n_kv][kv_heads][dv]; owned */
};

static float *normal_floats(gidx count, uint64_t stream, float size)
{
  float *out = malloc((size_t)(count + 1) * sizeof *out);
  for (gidx i = 0; i < count; i++) out[i] = size * (float)random_normal(7, stream, (uint64_t)i);
  return out;
}

/* size: standard deviation of q and k. */
static struct sequence sequence_make(struct attention a, gidx n_q, gidx n_kv, float size)
{
  if (a.scale == 0) a.scale = 1 / sqrt(a.d);
  return (struct sequence){.a = a,
                           .n_q = n_q,
                           .n_kv = n_kv,
                           .q = normal_floats(n_q * a.heads * a.d, 1, size),
                           .k = normal_floats(n_kv * a.kv_heads * a.d, 2, size),
                           .v = normal_floats(n_kv * a.kv_heads * a.dv, 3, 1)};
}

static void sequence_free(struct sequence *s)
{
  free(s->q);
  free(s->k);
  free(s->v);
}

static struct attention_cells sequence_cells(const struct sequence *s)
{
  return (struct attention_cells){.k = s->k, .v = s->v};
}

static void sequence_seen(const struct sequence *s, gidx i, gidx *from, gidx *end)
{
  attention_seen(&s->a, i + s->n_kv - s->n_q, s->n_kv, from, end);
}

/* The reference's result for query i and a head, from these cells. */
static void sequence_row(const struct sequence *s, const struct attention_cells *cells, gidx i,
                         idx head, float *out, float *lse)
{
  gidx from, end;
  sequence_seen(s, i, &from, &end);
  attention_row(&s->a, cells, s->q + (i * s->a.heads + head) * s->a.d, head, from, end, out, lse);
}

#endif
