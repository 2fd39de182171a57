/* SPDX-License-Identifier: BSD-3-Clause
 * Codes on the CPU: each thread solves one row after another; the Gram matrix and factor of a row
 * stay in the cache.
 *
 * The state of a row holds its Cholesky factors packed by rows.  So vectors that are appended to
 * the support append rows to the factors. */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/cpu/cpu.h"

enum {
  ROWS_AT_ONCE = 16, /* rows that a thread takes at a time */
  OVERRUN = 8        /* reals that back substitution may read past the end */
};

/* The arrays in the state of a row of at most M vectors. */
struct row_state {
  real *rank;   /* [M (M + 1) / 2] factor of the Gram matrix of the kept vectors; with rho on the
                 * diagonal, except for nonnegative codes */
  real *factor; /* the array `rank`; for nonnegative codes the Gram matrix, packed by rows */
  real *y;      /* [M] forward substitution with factor; for nonnegative codes b */
  idx *kept;    /* [M] */
};

/* Work arrays of one thread; M = m_new d. */
struct codes_work {
  const float **vector; /* [M] */
  const float **padded; /* [M + 7 + CODES_CHUNK] vector of gram_job */
  real *g;              /* [M + 7 + CODES_CHUNK][CODES_CHUNK] */
  real *b;              /* [CODES_CHUNK] */
  real *pack;           /* pack of gram_job */
  real *codes, *back;   /* [M], [M + OVERRUN] */
  real *quality;        /* [2 p] */
  float *zeros;         /* [p] */
  real *whole;          /* [M][stride] g of nonnegative_job */
  struct nonnegative_work nonnegative;
  char *state; /* state of a row, if the caller keeps none */
};

struct codes_plan {
  const struct cpu_state *device;
  const struct codes_job *job;
  gidx state_bytes;
  idx next; /* the first row that no thread has taken yet */
};

static gidx triangle(idx m)
{
  return (gidx)m * (m + 1) / 2;
}

gidx cpu_codes_state_bytes(idx m, real rho, int nonnegative)
{
  (void)rho, (void)nonnegative;
  gidx reals = 2 * triangle(m) + m + OVERRUN + (m + 1) / 2;
  return reals * (gidx)sizeof(real);
}

static struct row_state state_view(void *state, idx m, int is_apart)
{
  struct row_state v = {.rank = state};
  v.factor = v.rank + (is_apart ? triangle(m) : 0);
  v.y = v.rank + 2 * triangle(m);
  v.kept = (idx *)(v.y + m + OVERRUN);
  return v;
}

/* Work arrays of nonnegative codes for m vectors. */
static int nonnegative_alloc(struct arena *arena, gidx m, struct codes_work *work)
{
  struct nonnegative_work *w = &work->nonnegative;
  gidx stride = round_up(m, CODES_CHUNK);
  real **reals[] = {&w->y, &w->back, &w->packed, &w->z, &w->try_x, &w->slope, &w->size};
  idx **sets[] = {&w->in, &w->try_in, &w->refused, &w->member, &w->kept};
  TRY(arena_alloc(arena, &work->whole, m * stride, sizeof(real)));
  TRY(arena_alloc(arena, &w->a, stride * CODES_CHUNK, sizeof(real)));
  TRY(arena_alloc(arena, &w->b, CODES_CHUNK, sizeof(real)));
  TRY(arena_alloc(arena, &w->l, triangle((idx)stride) + OVERRUN, sizeof(real)));
  for (int i = 0; i < LENGTH(reals); i++)
    TRY(arena_alloc(arena, reals[i], stride + OVERRUN, sizeof(real)));
  for (int i = 0; i < LENGTH(sets); i++) TRY(arena_alloc(arena, sets[i], stride, sizeof(idx)));
  return OK;
}

static int work_alloc(struct arena *arena, const struct codes_plan *plan, struct codes_work *w)
{
  idx p = plan->device->options.p;
  gidx m = (gidx)plan->job->m_new * plan->device->options.d;
  gidx padded = (m + GRAM_BLOCK - 1) / GRAM_BLOCK * GRAM_BLOCK + CODES_CHUNK;
  gidx pack = (padded + CODES_CHUNK) * GRAM_COLUMNS;
  TRY(arena_alloc(arena, &w->vector, m, sizeof *w->vector));
  TRY(arena_alloc(arena, &w->padded, padded, sizeof *w->padded));
  TRY(arena_alloc(arena, &w->g, padded * CODES_CHUNK, sizeof(real)));
  TRY(arena_alloc(arena, &w->b, CODES_CHUNK, sizeof(real)));
  TRY(arena_alloc(arena, &w->pack, pack, sizeof(real)));
  TRY(arena_alloc(arena, &w->codes, m, sizeof(real)));
  TRY(arena_alloc(arena, &w->back, m + OVERRUN, sizeof(real)));
  TRY(arena_alloc(arena, &w->quality, 2 * p, sizeof(real)));
  TRY(arena_alloc(arena, &w->zeros, p, sizeof(float)));
  if (plan->device->options.nonnegative) TRY(nonnegative_alloc(arena, m, w));
  return arena_alloc(arena, &w->state, plan->job->state ? 0 : plan->state_bytes, 1);
}

/* vector[M] <- the vectors of a row's support, in support order. */
static void vectors_find(const struct codes_plan *plan, idx row, const float **vector)
{
  const float *atoms = plan->job->atoms->device;
  idx d = plan->device->options.d, p = plan->device->options.p;
  const idx *slot = (const idx *)plan->job->slot->device + (gidx)row * plan->job->max_m;
  for (idx a = 0; a < plan->job->m_new; a++)
    for (idx k = 0; k < d; k++) *vector++ = atoms + ((gidx)slot[a] * d + k) * p;
}

/* Prefetch the vectors of a row while the row before it is computed: they come from memory. */
static void vectors_prefetch(const struct codes_plan *plan, idx row)
{
  const float *atoms = plan->job->atoms->device;
  gidx stride = (gidx)plan->device->options.d * plan->device->options.p;
  const idx *slot = (const idx *)plan->job->slot->device + (gidx)row * plan->job->max_m;
  for (idx a = 0; a < plan->job->m_new; a++) {
    const char *at = (const char *)(atoms + slot[a] * stride);
    for (gidx i = 0; i < stride * (gidx)sizeof(float); i += CACHE_LINE)
      __builtin_prefetch(at + i, 0, 2);
  }
}

/* Write the vectors into padded[] from block `block` on, and fill the last block with zero vectors.
 * Returns the next block. */
static idx blocks_fill(struct codes_work *w, const float *const *vector, idx count, idx block)
{
  for (; count > 0; block++, vector += GRAM_BLOCK, count -= GRAM_BLOCK)
    for (idx i = 0; i < GRAM_BLOCK; i++)
      w->padded[block * GRAM_BLOCK + i] = i < count ? vector[i] : w->zeros;
  return block;
}

/* Store rows old .. old + count - 1 of the Gram matrix, and of b, in the state of a row. */
static void chunk_keep(const struct codes_work *w, const struct row_state *s, idx old, idx count)
{
  gidx padding = round_up(old, GRAM_BLOCK) - old; /* after the vectors before the chunk */
  for (idx i = 0; i < count; i++) {
    real *row = s->factor + triangle(old + i);
    for (idx k = 0; k <= old + i; k++) row[k] = w->g[(k < old ? k : k + padding) * CODES_CHUNK + i];
    s->y[old + i] = w->b[i];
  }
}

/* Add the pull of rho toward a mean to b, for vectors old .. old + count - 1 of row i. */
static void chunk_draw(const struct codes_plan *plan, struct codes_work *w, idx i, idx old,
                       idx count)
{
  const struct codes_job *job = plan->job;
  const idx *slot = (const idx *)job->slot->device + (gidx)i * job->max_m + old;
  const float *toward = job->toward->device;
  for (idx j = 0; j < count; j++) w->b[j] = fma(job->rho, (real)toward[slot[j]], w->b[j]);
}

/* Append rows old .. old + count - 1 to the factor in the state of row i, and entries to its y. */
static void chunk_solve(const struct codes_plan *plan, struct codes_work *w,
                        const struct row_state *s, idx i, idx old, idx count)
{
  const float *row = (const float *)plan->job->rows->device +
                     (gidx)(plan->job->first + i) * plan->device->options.p;
  const struct codes_loops *loops = plan->device->codes;
  idx first = blocks_fill(w, w->vector, old, 0);
  idx blocks = blocks_fill(w, w->vector + old, count, first);
  struct gram_job gram = {w->padded, row,  blocks, first, plan->device->options.p,
                          w->g,      w->b, w->pack};
  int nonnegative = plan->device->options.nonnegative;
  loops->gram(&gram);
  if (plan->job->toward) chunk_draw(plan, w, i, old, count);
  if (nonnegative) chunk_keep(w, s, old, count);
  loops->factor(&(struct factor_job){.old = old,
                                     .count = count,
                                     .rho = nonnegative ? 0 : plan->job->rho,
                                     .a = w->g,
                                     .b = w->b,
                                     .l = s->rank,
                                     .y = nonnegative ? NULL : s->y,
                                     .kept = s->kept});
}

/* w->codes <- the nonnegative codes of a row. */
static void nonnegative_find(const struct codes_plan *plan, const struct codes_work *w,
                             const struct row_state *s, idx m)
{
  idx stride = (idx)round_up(m, CODES_CHUNK);
  for (idx i = 0; i < m; i++) {
    const real *row = s->factor + triangle(i);
    for (idx k = 0; k <= i; k++)
      w->whole[(gidx)i * stride + k] = w->whole[(gidx)k * stride + i] = row[k];
    for (idx k = m; k < stride; k++) w->whole[(gidx)i * stride + k] = 0;
  }
  struct nonnegative_job job = {m,    stride,  plan->job->rho, w->whole,
                                s->y, s->kept, w->codes,       &w->nonnegative};
  plan->device->codes->nonnegative(&job);
}

/* Round the codes of row i, store them, and compute the quality of the rounded ones. */
static void codes_store(const struct codes_plan *plan, struct codes_work *w, const float *row,
                        idx i)
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

static void row_solve(const struct codes_plan *plan, struct codes_work *w, idx i)
{
  const struct codes_job *job = plan->job;
  idx d = plan->device->options.d, p = plan->device->options.p, m = job->m_new * d;
  gidx at = (gidx)(job->first + i) * p;
  const float *row = (const float *)job->rows->device + at;
  void *state = job->state ? (char *)job->state->device + i * plan->state_bytes : w->state;
  int nonnegative = plan->device->options.nonnegative;
  struct row_state s = state_view(state, job->max_m * d, nonnegative);
  vectors_find(plan, i, w->vector);
  if (i + 1 < job->n) vectors_prefetch(plan, i + 1);
  for (idx old = job->m_old * d; old < m; old += CODES_CHUNK)
    chunk_solve(plan, w, &s, i, old, m - old < CODES_CHUNK ? m - old : CODES_CHUNK);
  if (nonnegative)
    nonnegative_find(plan, w, &s, m);
  else
    plan->device->codes->back(s.factor, s.y, s.kept, m, w->codes, w->back);
  if (job->residual)
    plan->device->codes->residual(row, w->vector, m, p, w->codes,
                                  (float *)job->residual->device + at);
  if (job->codes) codes_store(plan, w, row, i);
}

/* Every thread solves rows until none is left. */
static void rows_solve(struct codes_plan *plan, struct codes_work *w)
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

static int plan_execute(struct codes_plan *plan, struct arena *arena)
{
  struct codes_work *works;
  int threads = plan->device->options.threads;
  TRY(arena_alloc(arena, &works, threads, sizeof *works));
  for (int t = 0; t < threads; t++) TRY(work_alloc(arena, plan, works + t));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++) rows_solve(plan, works + t);
  return OK;
}

int cpu_codes(struct device *dev, const struct codes_job *job)
{
  struct codes_plan plan = {.device = cpu_of(dev), .job = job};
  struct arena arena = {0};
  if (!plan.device->codes) TRY(device_check_fma());
  plan.state_bytes = device_codes_state_bytes(dev, job->max_m, job->rho);
  int status = plan_execute(&plan, &arena);
  arena_free(&arena);
  return status;
}

/* Work arrays of one thread that computes the quality of given codes. */
struct quality_work {
  const float **vector;
  real *codes; /* vector and codes have room for the longest row */
  real *sums;  /* [2 p] */
};

static int evaluators_alloc(struct arena *arena, const struct cpu_state *s,
                            const struct quality_job *job, struct quality_work **works)
{
  gidx longest = 0;
  for (idx i = 0; i < job->n; i++) longest = imax(longest, job->start[i + 1] - job->start[i]);
  TRY(arena_alloc(arena, works, s->options.threads, sizeof **works));
  for (int t = 0; t < s->options.threads; t++) {
    struct quality_work *w = *works + t;
    TRY(arena_alloc(arena, &w->vector, longest, sizeof *w->vector));
    TRY(arena_alloc(arena, &w->codes, longest, sizeof *w->codes));
    TRY(arena_alloc(arena, &w->sums, 2 * (gidx)s->options.p, sizeof *w->sums));
  }
  return OK;
}

static void row_evaluate(const struct cpu_state *s, const struct quality_job *job,
                         struct quality_work *w, idx i)
{
  idx p = s->options.p, m = (idx)(job->start[i + 1] - job->start[i]);
  const idx *support = job->support + job->start[i];
  const float *codes = job->codes + job->start[i];
  struct row_quality *q = &job->quality[i];
  q->nonzero = 0;
  for (idx j = 0; j < m; j++) {
    w->vector[j] = job->atoms + (gidx)support[j] * p;
    w->codes[j] = codes[j];
    q->nonzero += codes[j] != 0;
  }
  s->codes->quality(job->rows + (gidx)i * p, w->vector, m, p, w->codes, w->sums, q);
}

int cpu_quality(struct device *dev, const struct quality_job *job)
{
  const struct cpu_state *s = cpu_of(dev);
  struct arena arena = {0};
  struct quality_work *works = NULL;
  int threads = s->options.threads;
  if (!s->codes) TRY(device_check_fma());
  int status = evaluators_alloc(&arena, s, job, &works);
  idx runs = (idx)ceil_div(job->n, ROWS_AT_ONCE), next = 0;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++)
    for (idx run; !status;) {
#pragma omp atomic capture
      run = next++;
      if (run >= runs) break;
      idx end = (idx)imin(job->n, (run + 1) * (gidx)ROWS_AT_ONCE);
      for (idx i = run * ROWS_AT_ONCE; i < end; i++) row_evaluate(s, job, works + t, i);
    }
  arena_free(&arena);
  return status;
}
