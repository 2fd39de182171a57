/* SPDX-License-Identifier: BSD-3-Clause
 * Imported encoders on the CPU (N.24): each thread takes a part of the rows.  Several groups of
 * rows pass over each panel together. */
#include <math.h>

#include "base/num.h"
#include "base/status.h"
#include "device/cpu/cpu.h"

/* Limits for the groups that pass over a panel together: their number, and about the bytes of their
 * scores. */
enum { MOST_GROUPS = 4, SCRATCH_BYTES = 4 << 20 };

/* The workspace of a thread, and the results of its part of the rows. */
struct encoder_partition {
  float *group;  /* [groups][p][rows] */
  float *tile;   /* [rows][lanes] */
  float *scores; /* [groups rows][k] */
  idx *support;  /* [k] */
  float *codes;  /* [k] */
  struct entry_list found;
  struct bad_score bad;
  int no_memory;
};

struct encoder_plan {
  const struct cpu_state *device;
  struct encoder_job *job;
  idx groups;
  struct encoder_partition *shares; /* [threads] */
};

static int partition_alloc(struct arena *a, const struct encoder_plan *plan,
                           struct encoder_partition *s)
{
  const struct route_loops *loops = plan->device->route;
  idx k = plan->job->encoder->k, rows = plan->groups * loops->rows;
  TRY(arena_alloc(a, &s->group, (gidx)rows * plan->device->options.p, sizeof *s->group));
  TRY(arena_alloc(a, &s->tile, (gidx)loops->rows * loops->lanes, sizeof *s->tile));
  TRY(arena_alloc(a, &s->scores, (gidx)rows * k, sizeof *s->scores));
  TRY(arena_alloc(a, &s->support, k, sizeof *s->support));
  return arena_alloc(a, &s->codes, k, sizeof *s->codes);
}

/* The groups of the thread <- rows first .. first + n - 1, padded with zeros. */
static void rows_pack(const struct encoder_plan *plan, struct encoder_partition *s, gidx first,
                      idx n)
{
  idx p = plan->device->options.p, height = plan->device->route->rows;
  const float *rows = (const float *)plan->job->rows->device + first * p;
  for (idx i = 0; i < round_up(n, height); i++) {
    float *to = s->group + (gidx)(i / height) * height * p + i % height;
    for (idx c = 0; c < p; c++) to[(gidx)c * height] = i < n ? rows[(gidx)i * p + c] : 0;
  }
}

/* scores[n][k] <- the products of the packed rows with all atoms. */
static void rows_score(const struct encoder_plan *plan, struct encoder_partition *s, idx n)
{
  const struct cpu_state *device = plan->device;
  const struct route_loops *loops = device->route;
  idx k = plan->job->encoder->k, p = device->options.p, height = loops->rows;
  for (idx slot = 0; slot < k; slot += loops->lanes) {
    const float *panel = device->panels + slot / loops->lanes * panel_floats(device);
    idx valid = (idx)imin(k - slot, loops->lanes);
    for (idx i = 0; i < n; i++) {
      if (i % height == 0) loops->scores(panel, s->group + (gidx)i * p, p, s->tile);
      const float *from = s->tile + (gidx)(i % height) * loops->lanes;
      for (idx a = 0; a < valid; a++) s->scores[(gidx)i * k + slot + a] = from[a];
    }
  }
}

/* Find the support and codes of a row from its products; returns 0 if the thread must stop. */
static int row_describe(const struct encoder_plan *plan, struct encoder_partition *s, gidx row,
                        float *scores)
{
  const struct encoder *e = plan->job->encoder;
  encoder_finish(e, scores);
  gidx bad = values_bad(scores, e->k);
  if (bad < 0) {
    idx n = plan->job->lengths[row] = encoder_select(e, scores, s->support, s->codes);
    bad = values_bad(s->codes, n);
    if (bad >= 0) bad = s->support[bad];
    s->no_memory = bad < 0 && !entries_add(&s->found, s->support, scores, s->codes, n);
  }
  if (bad >= 0) s->bad = (struct bad_score){(idx)row, (idx)bad};
  return bad < 0 && !s->no_memory;
}

/* A thread's part of the rows, up to the first row that fails. */
static void partition_describe(const struct encoder_plan *plan, idx thread)
{
  struct encoder_partition *s = &plan->shares[thread];
  idx threads = plan->device->options.threads, together = plan->groups * plan->device->route->rows;
  gidx n = plan->job->n, end = (thread + 1) * n / threads;
  s->bad = (struct bad_score){-1, -1};
  for (gidx first = thread * n / threads; first < end; first += together) {
    idx rows = (idx)imin(end - first, together);
    rows_pack(plan, s, first, rows);
    rows_score(plan, s, rows);
    for (idx r = 0; r < rows; r++)
      if (!row_describe(plan, s, first + r, s->scores + (gidx)r * plan->job->encoder->k)) return;
  }
}

/* Join the results of the threads.  Their parts are in the order of rows, so the first failure is
 * in the lowest row. */
static int shares_join(struct encoder_plan *plan)
{
  struct encoder_job *job = plan->job;
  for (idx t = 0; t < plan->device->options.threads; t++) {
    struct encoder_partition *s = &plan->shares[t];
    job->bad = s->bad;
    if (s->bad.row >= 0) return OK;
    CHECK(!s->no_memory && entries_append(job->found, &s->found), ERR_MEMORY,
          "cannot allocate the codes of %d rows: give a smaller --block", job->n);
  }
  return OK;
}

int cpu_encoder(struct device *dev, struct encoder_job *job)
{
  struct encoder_plan plan = {.device = cpu_of(dev), .job = job};
  idx threads = plan.device->options.threads;
  gidx scores = (gidx)plan.device->route->rows * job->encoder->k * (gidx)sizeof(float);
  struct arena arena = {0};
  plan.groups = (idx)imin(imax(SCRATCH_BYTES / imax(scores, 1), 1), MOST_GROUPS);
  int status = arena_alloc(&arena, &plan.shares, threads, sizeof *plan.shares);
  for (idx t = 0; t < threads && !status; t++)
    status = partition_alloc(&arena, &plan, plan.shares + t);
  if (!status) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (idx t = 0; t < threads; t++) partition_describe(&plan, t);
    status = shares_join(&plan);
    for (idx t = 0; t < threads; t++) entries_free(&plan.shares[t].found);
  }
  arena_free(&arena);
  return status;
}
