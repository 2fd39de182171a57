/* SPDX-License-Identifier: BSD-3-Clause
 * The counters of random numbers are positions in the arrays of the batch. */
#include "model/synth_systems.h"

#include <string.h>

#include "base/rng.h"

/* These streams differ from all streams of model/synth.h, including those of further tries. */
enum { STREAM_SHAPE = 1000001, STREAM_KIND, STREAM_H, STREAM_B, STREAM_G, STREAM_C, STREAM_G_B };

/* Rows of system a. */
static gidx length_draw(const struct synthetic_systems *m, gidx a)
{
  uint64_t counter = 4 * (uint64_t)a, rows = (uint64_t)m->rows, octaves = 0;
  if (m->lengths == LENGTHS_FIXED || rows == 0) return m->rows;
  if (m->lengths == LENGTHS_UNIFORM)
    return (gidx)random_below(m->seed, STREAM_SHAPE, counter, 2 * rows + 1);
  while (1ull << octaves < 16 * rows) octaves++;
  uint64_t first = 1ull << random_below(m->seed, STREAM_SHAPE, counter, octaves);
  uint64_t n = first + random_below(m->seed, STREAM_SHAPE, counter + 1, first);
  return (gidx)(n < 16 * rows ? n : 16 * rows);
}

void synthetic_shape(const struct synthetic_systems *m, struct systems_shape *s)
{
  for (gidx a = 0; a < m->count; a++) {
    uint64_t counter = 4 * (uint64_t)a + 2;
    s->d[a] = m->d;
    s->k[a] = m->k;
    if (m->mixed) {
      s->d[a] = 1 + (idx)random_below(m->seed, STREAM_SHAPE, counter, (uint64_t)m->d);
      s->k[a] = (idx)random_below(m->seed, STREAM_SHAPE, counter + 1, (uint64_t)m->k + 1);
    }
    s->row[a + 1] = s->row[a] + length_draw(m, a);
  }
}

enum synthetic_kind synthetic_kind(const struct synthetic_systems *m, const struct systems_shape *s,
                                   gidx a)
{
  real draw = (real)(random_bits(m->seed, STREAM_KIND, 2 * (uint64_t)a) >> 11) * 0x1p-53;
  int has_rows = s->row[a + 1] > s->row[a], has_border = s->k[a] > 0;
  if (draw >= m->indefinite) return draw < m->indefinite + m->ill ? SYNTHETIC_ILL : SYNTHETIC_GOOD;
  int row = random_below(m->seed, STREAM_KIND, 2 * (uint64_t)a + 1, 2) == 0;
  if (has_rows && (row || !has_border)) return SYNTHETIC_BAD_ROW;
  return has_border ? SYNTHETIC_BAD_BORDER : SYNTHETIC_GOOD;
}

static void normals(const struct synthetic_systems *m, uint64_t stream, gidx first, gidx count,
                    real *out)
{
  for (gidx i = 0; i < count; i++) out[i] = random_normal(m->seed, stream, (uint64_t)(first + i));
}

/* h[d][d] <- R R' + I, with R made of the normal numbers from `first` on; is_ill: r r' + 2^-33 I,
 * where r is the first column of R. */
static void diagonal_block(const struct synthetic_systems *m, int is_ill, gidx first, idx d,
                           real *h)
{
  real r[ARROW_MAX_D * ARROW_MAX_D];
  normals(m, STREAM_H, first, (gidx)d * d, r);
  for (idx j = 0; j < d; j++)
    for (idx i = 0; i < d; i++) {
      real sum = i != j ? 0 : is_ill ? 0x1p-33 : 1;
      for (idx p = 0; p < (is_ill ? 1 : d); p++) sum += r[p * d + i] * r[p * d + j];
      h[j * d + i] = sum;
    }
}

/* columns[count][d] <- h times each column. */
static void multiply(const real *h, idx d, gidx count, real *columns)
{
  real z[ARROW_MAX_D];
  for (gidx c = 0; c < count; c++, columns += d) {
    memcpy(z, columns, (size_t)d * sizeof *z);
    for (idx i = 0; i < d; i++) {
      columns[i] = 0;
      for (idx p = 0; p < d; p++) columns[i] += h[p * d + i] * z[p];
    }
  }
}

/* Generate C. */
static void border_make(const struct synthetic_systems *m, const struct systems_shape *s, gidx a,
                        enum synthetic_kind kind, real *c)
{
  idx k = s->k[a];
  real rows = (real)(s->g[a + 1] - s->g[a]);
  real diagonal = (2 * rows + 8 * k + 16) * (kind == SYNTHETIC_ILL ? 8 : 1);
  normals(m, STREAM_C, s->c[a], (gidx)k * k, c);
  for (idx j = 0; j < k; j++) {
    c[(gidx)j * k + j] += diagonal;
    for (idx i = j + 1; i < k; i++) c[(gidx)i * k + j] = c[(gidx)j * k + i];
  }
  if (kind == SYNTHETIC_BAD_BORDER) c[(gidx)(k / 2) * k + k / 2] = -1;
}

void synthetic_system(const struct synthetic_systems *m, const struct systems_shape *s, gidx a,
                      const struct systems_block *to)
{
  gidx f = to->first, d = s->d[a], k = s->k[a], n = s->row[a + 1] - s->row[a];
  enum synthetic_kind kind = synthetic_kind(m, s, a);
  real *h = to->h + (s->h[a] - s->h[f]), *b = to->b + (s->b[a] - s->b[f]);
  real *g = to->g + (s->g[a] - s->g[f]);
  normals(m, STREAM_B, s->b[a], n * d * k, b);
  normals(m, STREAM_G, s->g[a], n * d, g);
  for (gidx i = 0; i < n; i++) {
    diagonal_block(m, kind == SYNTHETIC_ILL, s->h[a] + i * d * d, s->d[a], h + i * d * d);
    if (kind != SYNTHETIC_ILL) continue;
    multiply(h + i * d * d, s->d[a], k, b + i * d * k);
    multiply(h + i * d * d, s->d[a], 1, g + i * d);
  }
  if (kind == SYNTHETIC_BAD_ROW) h[n / 2 * d * d + d * d - 1] = -1;
  border_make(m, s, a, kind, to->c + (s->c[a] - s->c[f]));
  normals(m, STREAM_G_B, s->border[a], k, to->g_b + (s->border[a] - s->border[f]));
}
