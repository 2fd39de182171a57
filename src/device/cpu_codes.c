/* SPDX-License-Identifier: BSD-3-Clause
 * Codes on the CPU: rows one after another, each with its Gram matrix and factor in the cache.
 *
 * A row's state holds its factors, packed by rows, so that appended vectors append rows. */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "device/cpu.h"

enum { ROWS_AT_ONCE = 16, OVERRUN = 8 };

/* The parts of a row's state for at most M vectors. */
struct row_state {
  real *rank;   /* [M (M + 1) / 2] factor of the kept vectors' Gram matrix */
  real *factor; /* the same with rho on its diagonal; rank itself when rho is 0 */
  real *y;      /* [M] forward substitution with factor */
  idx *kept;    /* [M] */
};

/* What one thread works with, M = m_new d. */
struct codes_work {
  const float **vector; /* [M] */
  const float **padded; /* [M + 7 + CHUNK] gram_job's */
  real *g, *g_rho;      /* [M + 7 + CHUNK][CHUNK] */
  real *b;              /* [CHUNK] */
  real *pack;           /* gram_job's */
  real *codes, *back;   /* [M], [M + OVERRUN] */
  real *quality;        /* [2 p] */
  float *zeros;         /* [p] */
  char *state;          /* used when the caller has none */
};

struct plan {
  const struct cpu_state *device;
  const struct codes_job *job;
  gidx state_bytes;
  idx next; /* row, shared by the threads */
};

static gidx triangle(idx m)
{
  return (gidx)m * (m + 1) / 2;
}

gidx cpu_codes_state(const struct device *dev, idx m_most, real rho)
{
  const struct cpu_state *s = dev->state;
  idx m = m_most * s->options.d;
  (void)rho;
  gidx reals = 2 * triangle(m) + m + OVERRUN + (m + 1) / 2;
  return reals * (gidx)sizeof(real);
}

static struct row_state state_view(void *state, idx m, real rho)
{
  struct row_state v = {.rank = state};
  v.factor = v.rank + (rho > 0 ? triangle(m) : 0);
  v.y = v.rank + 2 * triangle(m);
  v.kept = (idx *)(v.y + m + OVERRUN);
  return v;
}

static int work_take(struct arena *arena, const struct plan *plan, struct codes_work *w)
{
  idx p = plan->device->options.p;
  gidx m = (gidx)plan->job->m_new * plan->device->options.d;
  gidx padded = (m + GRAM_BLOCK - 1) / GRAM_BLOCK * GRAM_BLOCK + CHUNK;
  gidx pack = (padded + CHUNK) * GRAM_COLUMNS;
  TRY(arena_take(arena, &w->vector, m, sizeof *w->vector));
  TRY(arena_take(arena, &w->padded, padded, sizeof *w->padded));
  TRY(arena_take(arena, &w->g, padded * CHUNK, sizeof(real)));
  TRY(arena_take(arena, &w->g_rho, plan->job->rho > 0 ? padded * CHUNK : 0, sizeof(real)));
  TRY(arena_take(arena, &w->b, CHUNK, sizeof(real)));
  TRY(arena_take(arena, &w->pack, pack, sizeof(real)));
  TRY(arena_take(arena, &w->codes, m, sizeof(real)));
  TRY(arena_take(arena, &w->back, m + OVERRUN, sizeof(real)));
  TRY(arena_take(arena, &w->quality, 2 * p, sizeof(real)));
  TRY(arena_take(arena, &w->zeros, p, sizeof(float)));
  return arena_take(arena, &w->state, plan->job->state ? 0 : plan->state_bytes, 1);
}

/* Vectors of a row's support, in support order. */
static void vectors_find(const struct plan *plan, idx row, const float **vector)
{
  const float *atoms = plan->job->atoms->device;
  idx d = plan->device->options.d, p = plan->device->options.p;
  const idx *slot = (const idx *)plan->job->slot->device + (gidx)row * plan->job->m_most;
  for (idx a = 0; a < plan->job->m_new; a++)
    for (idx k = 0; k < d; k++) *vector++ = atoms + ((gidx)slot[a] * d + k) * p;
}

/* Vectors of the row after this one come from memory: ask for them while this one is computed. */
static void vectors_prefetch(const struct plan *plan, idx row)
{
  const float *atoms = plan->job->atoms->device;
  gidx stride = (gidx)plan->device->options.d * plan->device->options.p;
  const idx *slot = (const idx *)plan->job->slot->device + (gidx)row * plan->job->m_most;
  for (idx a = 0; a < plan->job->m_new; a++) {
    const char *at = (const char *)(atoms + slot[a] * stride);
    for (gidx i = 0; i < stride * (gidx)sizeof(float); i += CACHE_LINE)
      __builtin_prefetch(at + i, 0, 2);
  }
}

static idx blocks_fill(struct codes_work *w, const float *const *vector, idx count, idx block)
{
  for (; count > 0; block++, vector += GRAM_BLOCK, count -= GRAM_BLOCK)
    for (idx i = 0; i < GRAM_BLOCK; i++)
      w->padded[block * GRAM_BLOCK + i] = i < count ? vector[i] : w->zeros;
  return block;
}

/* Append rows old .. old + count - 1 to the factors. */
static void chunk_solve(const struct plan *plan, struct codes_work *w, const struct row_state *s,
                        const float *row, idx old, idx count)
{
  const struct codes_loops *loops = plan->device->codes;
  real rho = plan->job->rho;
  idx first = blocks_fill(w, w->vector, old, 0);
  idx blocks = blocks_fill(w, w->vector + old, count, first);
  struct gram_job gram = {w->padded, row,  blocks, first, plan->device->options.p,
                          w->g,      w->b, w->pack};
  loops->gram(&gram);
  if (rho > 0) memcpy(w->g_rho, w->g, (size_t)blocks * GRAM_BLOCK * CHUNK * sizeof(real));
  struct factor_job job = {.old = old,
                           .count = count,
                           .test = 1,
                           .a = w->g,
                           .b = w->b,
                           .l = s->rank,
                           .y = rho > 0 ? NULL : s->y,
                           .kept = s->kept};
  loops->factor(&job);
  if (!(rho > 0)) return;
  job.test = 0;
  job.rho = rho;
  job.a = w->g_rho;
  job.l = s->factor;
  job.y = s->y;
  loops->factor(&job);
}

static void codes_store(const struct plan *plan, struct codes_work *w, const float *row, idx i)
{
  const struct codes_job *job = plan->job;
  idx d = plan->device->options.d, p = plan->device->options.p, m = job->m_new * d;
  float *out = (float *)job->codes->device + (gidx)i * m;
  for (idx v = 0; v < m; v++) out[v] = (float)w->codes[v];
  if (!job->quality) return;
  struct row_quality *q = (struct row_quality *)job->quality->device + i;
  for (idx v = 0; v < m; v++) w->codes[v] = out[v];
  plan->device->codes->quality(row, w->vector, m, p, w->codes, w->quality, q);
  q->nonzero = 0;
  for (idx v = 0; v < m; v += d) {
    int any = 0;
    for (idx k = 0; k < d; k++) any |= out[v + k] != 0;
    q->nonzero += any;
  }
}

static void row_solve(const struct plan *plan, struct codes_work *w, idx i)
{
  const struct codes_job *job = plan->job;
  idx d = plan->device->options.d, p = plan->device->options.p, m = job->m_new * d;
  gidx at = (gidx)(job->first + i) * p;
  const float *row = (const float *)job->rows->device + at;
  void *state = job->state ? (char *)job->state->device + i * plan->state_bytes : w->state;
  struct row_state s = state_view(state, job->m_most * d, job->rho);
  vectors_find(plan, i, w->vector);
  if (i + 1 < job->n) vectors_prefetch(plan, i + 1);
  for (idx old = job->m_old * d; old < m; old += CHUNK)
    chunk_solve(plan, w, &s, row, old, m - old < CHUNK ? m - old : CHUNK);
  plan->device->codes->back(s.factor, s.y, s.kept, m, w->codes, w->back);
  if (job->residual)
    plan->device->codes->residual(row, w->vector, m, p, w->codes,
                                  (float *)job->residual->device + at);
  if (job->codes) codes_store(plan, w, row, i);
}

static void rows_solve(struct plan *plan, struct codes_work *w)
{
  for (;;) {
    idx first;
#pragma omp atomic capture
    {
      first = plan->next;
      plan->next += ROWS_AT_ONCE;
    }
    if (first >= plan->job->n) return;
    for (idx i = first; i < plan->job->n && i < first + ROWS_AT_ONCE; i++) row_solve(plan, w, i);
  }
}

static int codes_run(struct plan *plan, struct arena *arena)
{
  struct codes_work *works;
  int threads = plan->device->options.threads;
  TRY(arena_take(arena, &works, threads, sizeof *works));
  for (int t = 0; t < threads; t++) TRY(work_take(arena, plan, works + t));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++) rows_solve(plan, works + t);
  return OK;
}

int cpu_codes(struct device *dev, const struct codes_job *job)
{
  struct plan plan = {.device = dev->state, .job = job};
  struct arena arena = {0};
  if (!plan.device->codes) TRY(device_check_fma());
  plan.state_bytes = cpu_codes_state(dev, job->m_most, job->rho);
  int status = codes_run(&plan, &arena);
  arena_free(&arena);
  return status;
}
