/* SPDX-License-Identifier: BSD-3-Clause
 * Stochastic Lanczos quadrature (Ubaru, Chen, Saad 2017): log|S| is the mean of z' log(S) z over
 * Rademacher vectors z.  Gauss quadrature, from the Lanczos matrix of z, gives z' log(S) z.
 *
 * S is never formed.  The parts that the rows contribute to S are kept if the workspace can hold
 * all of them; otherwise they are made again in every pass.  Only rank 0 adds, so sums over rows
 * are plain chains: they do not depend on a division of the rows. */
#include "terminal/slq.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/num.h"
#include "base/log.h"
#include "base/status.h"
#include "device/lanczos.h"
#include "model/quadrature.h"

enum { PROBES = 32, MAX_STEPS = 512, SEED = 1, STREAM_PROBE = 100 };
/* An estimate has converged if the last doubling of its steps changes it by less than this number
 * of standard errors, or if it took as many steps as S has rows. */
#define MAX_MOVE 0.3

struct slq_run {
  struct terminal *w;
  struct parts parts;
  int is_kept; /* the parts of all rows are kept */
  struct joint_sums unused;
  real half[PROBES], whole[PROBES]; /* estimates after half of the steps, and after all */
};

/* y <- S x, from the kept parts; if they are not kept, from all rows once more. */
static int schur_apply(struct slq_run *q, idx groups, const real *x, real *y)
{
  const struct terminal *w = q->w;
  idx n = w->r->n_border;
  memset(y, 0, (size_t)(8 * (gidx)groups * n) * sizeof *y);
  if (q->is_kept) return parts_apply(&q->w->device, &q->parts, n, groups, x, y);
  q->w->rows.next = 0;
  for (;;) {
    TRY(terminal_rows_next(&q->w->rows, &q->unused));
    if (q->w->rows.batch.n == 0) return OK;
    for (idx i = 0; i < q->w->rows.batch.n;) {
      idx count;
      TRY(parts_fit(&q->parts, &q->w->rows.work, i, q->w->rows.batch.n, &count));
      CHECK(count > 0, ERR_USAGE, "--workspace does not hold the part of one row");
      q->parts.count = q->parts.borders = q->parts.values = 0;
      TRY(parts_fit(&q->parts, &q->w->rows.work, i, q->w->rows.batch.n, &count));
      TRY(parts_append(&q->parts, &q->w->rows.work, i, i + count));
      TRY(parts_apply(&q->w->device, &q->parts, n, groups, x, y));
      i += count;
    }
    q->parts.count = q->parts.borders = q->parts.values = 0;
  }
}

/* The first pass over the rows: make their sums, and keep their parts of S if all parts fit. */
static int first_pass(struct slq_run *q, struct joint_sums *sums)
{
  q->is_kept = 1;
  for (;;) {
    TRY(terminal_rows_next(&q->w->rows, sums));
    if (q->w->rows.batch.n == 0) break;
    idx n = q->w->rows.batch.n, fit = 0;
    if (q->is_kept) TRY(parts_fit(&q->parts, &q->w->rows.work, 0, n, &fit));
    q->is_kept = q->is_kept && fit == n;
    if (q->is_kept) TRY(parts_append(&q->parts, &q->w->rows.work, 0, n));
  }
  if (!q->is_kept) q->parts.count = q->parts.borders = q->parts.values = 0;
  return OK;
}

/* Set the start vectors: Rademacher vectors from number `first` on, scaled to unit norm. */
static void probes_start(struct lanczos *l, idx first)
{
  real size = 1 / sqrt(l->n);
  for (idx g = 0; g < l->groups; g++)
    for (gidx i = 0; i < l->n; i++)
      for (int v = 0; v < 8; v++) {
        uint64_t probe = (uint64_t)first + 8 * (uint64_t)g + (uint64_t)v;
        uint64_t bit = random_bits(SEED, STREAM_PROBE + probe, (uint64_t)i) >> 63;
        l->q[0][8 * (g * (gidx)l->n + i) + v] = bit ? size : -size;
      }
}

/* *out <- the estimate from start vector v after m steps: the order of S times a sum, to which each
 * node of the quadrature adds its weight times log(node).  NaN if a node is not positive. */
static int probe_estimate(const struct lanczos *l, idx v, idx m, real *out)
{
  real d[MAX_STEPS], e[MAX_STEPS], weight[MAX_STEPS], sum = 0;
  gidx stride = 8 * (gidx)l->groups;
  for (idx j = 0; j < m; j++) {
    d[j] = l->alpha[j * stride + v];
    e[j] = l->beta[j * stride + v];
    if (e[j] == 0) m = j + 1;
  }
  TRY(quadrature_make(d, e, m, weight));
  for (idx j = 0; j < m; j++)
    sum += d[j] > 0 && isfinite(d[j]) ? weight[j] * log_portable(d[j]) : NAN;
  *out = l->n * sum;
  return OK;
}

/* Run `steps` Lanczos steps from all start vectors, 8 * groups of them at a time, and estimate. */
static int probes_run(struct slq_run *q, idx groups, idx steps)
{
  struct lanczos l = {0};
  struct arena arena = {0};
  real *y = NULL;
  idx n = q->w->r->n_border;
  TRY(lanczos_open(&l, n, groups, steps));
  TRY(arena_alloc(&arena, &y, 8 * (gidx)groups * n, sizeof *y));
  for (idx first = 0; first < PROBES; first += 8 * groups) {
    probes_start(&l, first);
    for (idx j = 0; j < steps; j++) {
      TRY(schur_apply(q, groups, l.q[j], y));
      TRY(lanczos_step(&q->w->device, &l, j, y));
    }
    for (idx v = 0; v < 8 * groups; v++) {
      TRY(probe_estimate(&l, v, (steps + 1) / 2, &q->half[first + v]));
      TRY(probe_estimate(&l, v, steps, &q->whole[first + v]));
    }
  }
  arena_free(&arena);
  lanczos_close(&l);
  return OK;
}

/* Set mean, standard error and convergence over all probes. */
static void estimate_make(const struct slq_run *q, struct slq *out)
{
  real sum = 0, half = 0, squares = 0;
  for (int v = 0; v < PROBES; v++) {
    if (isnan(q->whole[v]) && out->failed_probe < 0) out->failed_probe = v;
    sum += q->whole[v];
    half += q->half[v];
  }
  out->estimate = sum / PROBES;
  for (int v = 0; v < PROBES; v++)
    squares += (q->whole[v] - out->estimate) * (q->whole[v] - out->estimate);
  out->error = sqrt(squares / (PROBES - 1) / PROBES);
  out->moved = fabs(sum - half) / PROBES;
  out->is_converged = out->moved < MAX_MOVE * out->error || out->steps >= q->w->r->n_border;
}

/* How many groups of eight probes fit in the workspace at a time, for `steps` steps; 0: none. */
static idx groups_fit(const struct terminal *w, idx steps)
{
  gidx capacity = w->t->workspace / SLQ_WORKSPACES;
  idx groups = PROBES / 8;
  while (groups > 0 && lanczos_bytes(w->r->n_border, groups, steps) > capacity) groups /= 2;
  return groups;
}

/* Double the number of steps until the estimate has converged or failed, or until MAX_STEPS or the
 * workspace allows no more. */
static int slq_evaluate(struct slq_run *q, struct joint_sums *sums)
{
  struct slq *out = &q->w->r->slq;
  idx n = q->w->r->n_border;
  TRY(first_pass(q, sums));
  out->is_there = 1;
  out->probes = PROBES;
  for (idx steps = SLQ_STEPS_FIRST; n > 0; steps *= 2) {
    idx now = steps < n ? steps : n, groups = groups_fit(q->w, now);
    if (groups == 0) {
      log_warn("--workspace does not hold %d Lanczos vectors of %d numbers: no more steps are "
               "taken",
               8 * now, n);
      break;
    }
    out->steps = now;
    TRY(probes_run(q, groups, now));
    estimate_make(q, out);
    log_debug("slq     steps=%d log_det_border=%.10g error=%.3g moved=%.3g", out->steps,
              out->estimate, out->error, out->moved);
    if (out->is_converged || out->failed_probe >= 0 || steps >= MAX_STEPS) break;
  }
  if (n == 0) out->is_converged = 1;
  if (out->failed_probe >= 0) {
    out->estimate = out->error = out->moved = nan_canonical();
    out->is_converged = 0;
    log_warn("probe %d met an eigenvalue that is not positive: no estimate of log|S|",
             out->failed_probe);
  } else if (!out->is_converged) {
    log_warn("after %d steps the estimate of log|S| still moves by %.3g, its error is %.3g",
             out->steps, out->moved, out->error);
  }
  return OK;
}

/* A bound of the bytes of the parts of all rows; at most a third of the workspace. */
static gidx parts_bytes(const struct terminal *w)
{
  double rows = (double)w->r->n + 1, width = (double)w->longest * w->r->max_k + 1;
  double all = rows * (10 * width * width + 100 * width);
  gidx capacity = w->t->workspace / SLQ_WORKSPACES;
  return all < (double)capacity ? (gidx)all : capacity;
}

int terminal_slq(struct terminal *w, struct joint_sums *sums)
{
  struct slq_run q = {.w = w};
  phase_begin(&w->phases[TERMINAL_LANCZOS]);
  joint_sums_init(&q.unused);
  TRY(terminal_rows_open(&w->rows, w, w->t->workspace / SLQ_WORKSPACES));
  TRY(parts_open(&q.parts, parts_bytes(w)));
  int status = slq_evaluate(&q, sums);
  parts_close(&q.parts);
  terminal_rows_close(&w->rows);
  phase_end(&w->phases[TERMINAL_LANCZOS], 0);
  return status;
}
