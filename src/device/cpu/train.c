/* SPDX-License-Identifier: BSD-3-Clause
 * The parts of a training step on the CPU.  Rows, columns or atoms are divided among threads; the
 * transposition and packing of entries and the counts of idle rows use one thread. */
#include "device/train.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/cpu/cpu.h"
#include "device/cpu/train_impl.h"
#include "model/adam.h"
#include "model/dictionary.h"
#include "model/train.h"
#include "model/triad.h"

enum {
  PIECE = 512, /* rows whose scores are held at a time */
  ROWS = 32,   /* rows whose squares a thread sums at a time */
  SUMS = 64    /* columns that a thread sums at a time */
};

gidx cpu_train_codes_bytes(const struct train_codes_job *job)
{
  return imin(job->n, PIECE) * job->k * (gidx)sizeof(float);
}

/* Store the entries of a row from index row * most on, as if every row had `most` entries;
 * start[row + 1] <- their number. */
static void row_select(struct train_entries *e, const float *scores, idx k, gidx row)
{
  gidx at = row * e->most;
  e->start[row + 1] = train_select(scores, k, e->most, e->index + at, e->value + at);
}

void cpu_train_dead(const struct train_codes_job *job, float *scores, gidx row)
{
  struct train_entries dead = job->dead;
  for (idx a = 0; a < job->k; a++)
    if (!job->is_dead[a]) scores[a] = 0;
  row_select(&dead, scores, job->k, row);
}

/* Select the codes of row `row` from its scores, and the codes of dead atoms. */
static void row_choose(const struct train_codes_job *job, float *scores, gidx row)
{
  struct train_entries live = job->live;
  row_select(&live, scores, job->k, row);
  if (job->is_dead) cpu_train_dead(job, scores, row);
}

void cpu_train_pack(const struct train_entries *e, idx n)
{
  e->start[0] = 0;
  for (gidx i = 0; i < n; i++) {
    gidx count = e->start[i + 1], at = e->start[i];
    memmove(e->index + at, e->index + i * e->most, (size_t)count * sizeof *e->index);
    memmove(e->value + at, e->value + i * e->most, (size_t)count * sizeof *e->value);
    e->start[i + 1] = at + count;
  }
}

int cpu_train_product(struct device *dev, const struct train_codes_job *job, idx first, idx rows,
                      float *scores)
{
  struct triad_product p = {job->x + (gidx)first * job->p,
                            {job->encoder, 1, job->p},
                            job->bias,
                            scores,
                            job->p,
                            job->k,
                            rows,
                            job->p,
                            job->k};
  return cpu_triad_product(dev, PRECISION_F32, &p, NULL);
}

int cpu_train_codes(struct device *dev, const struct train_codes_job *job)
{
  int threads = cpu_of(dev)->options.threads;
  float *scores = job->work;
  for (idx first = 0, n; first < job->n; first += n) {
    n = (idx)imin(job->n - first, PIECE);
    TRY(cpu_train_product(dev, job, first, n, scores));
#pragma omp parallel for num_threads(threads)
    for (idx i = 0; i < n; i++) row_choose(job, scores + (gidx)i * job->k, first + i);
  }
  cpu_train_pack(&job->live, job->n);
  if (job->is_dead) cpu_train_pack(&job->dead, job->n);
  return OK;
}

int cpu_train_offset(struct device *dev, float *x, gidx n, idx p, const float *offset)
{
#pragma omp parallel for num_threads(cpu_of(dev)->options.threads)
  for (gidx i = 0; i < n; i++)
    for (idx c = 0; c < p; c++) x[i * p + c] -= offset[c];
  return OK;
}

int cpu_train_sums(struct device *dev, const float *rows, gidx n, gidx stride, idx p, float *to)
{
#pragma omp parallel for num_threads(cpu_of(dev)->options.threads)
  for (idx first = 0; first < p; first += SUMS) {
    idx count = (idx)imin(p - first, SUMS);
    real all[SUMS] = {0};
    for (gidx begin = 0; begin < n; begin += TRIAD_CHUNK) {
      float sum[SUMS] = {0};
      for (gidx i = begin; i < imin(begin + TRIAD_CHUNK, n); i++)
        for (idx c = 0; c < count; c++) sum[c] += rows[i * stride + first + c];
      for (idx c = 0; c < count; c++) all[c] += sum[c];
    }
    for (idx c = 0; c < count; c++) to[first + c] = isnan(all[c]) ? triad_nan() : (float)all[c];
  }
  return OK;
}

int cpu_train_errors(struct device *dev, const struct train_errors_job *job)
{
  const struct triad_loops *loops = cpu_of(dev)->triad;
  int blocks = job->blocks ? job->blocks : 1;
  gidx stride = (gidx)job->p * blocks;
#pragma omp parallel for num_threads(cpu_of(dev)->options.threads)
  for (idx first = 0; first < job->n; first += ROWS) {
    idx end = (idx)imin(job->n, first + ROWS);
    float *last = job->error + first * stride + stride - job->p; /* the last block: of all codes */
    for (idx i = first; i < end; i++) {
      gidx at = (gidx)i * job->p;
      const float *e = last + (i - first) * stride;
      nested_errors(job->error + i * stride, job->x + at, blocks, job->p);
      for (idx c = 0; c < job->p && job->left; c++) job->left[at + c] += e[c];
    }
    real *squares = job->squares + 2 * (gidx)first;
    loops->squares(last, stride, end - first, job->p, squares, 2);
    loops->squares(job->x + (gidx)first * job->p, job->p, end - first, job->p, squares + 1, 2);
  }
  return OK;
}

int cpu_train_scale(struct device *dev, float *values, gidx count, float factor)
{
#pragma omp parallel for num_threads(cpu_of(dev)->options.threads)
  for (gidx i = 0; i < count; i++) values[i] *= factor;
  return OK;
}

int cpu_train_transpose(struct device *dev, const struct train_transpose_job *job)
{
  const struct train_entries *e = job->entries;
  gidx *start = job->start + 1, end = e->start[job->n];
  (void)dev;
  memset(job->start, 0, (size_t)(job->atoms + 2) * sizeof *job->start);
  for (gidx i = 0; i < end; i++)
    if (e->index[i] >= job->first && e->index[i] < job->first + job->atoms)
      start[e->index[i] - job->first + 1]++;
  for (gidx a = 0; a < job->atoms; a++) start[a + 1] += start[a];
  for (idx row = 0; row < job->n; row++)
    for (gidx i = e->start[row]; i < e->start[row + 1]; i++) {
      gidx a = e->index[i] - job->first;
      if (a < 0 || a >= job->atoms) continue;
      gidx to = start[a]++;
      job->row[to] = row;
      job->code[to] = e->value[i];
      job->slope[to] = job->slopes[i];
    }
  return OK;
}

int cpu_train_idle(struct device *dev, const struct train_idle_job *job)
{
  const struct train_entries *e = job->entries;
  (void)dev;
  for (idx a = 0; a < job->k; a++) job->idle[a] += job->n;
  for (gidx i = 0; e && i < e->start[job->n]; i++) job->idle[e->index[i]] = 0;
  *job->any = 0;
  for (idx a = 0; a < job->k; a++) *job->any |= job->is_dead[a] = job->idle[a] >= job->dead_rows;
  return OK;
}

int cpu_train_tangent(struct device *dev, const float *atoms, gidx count, idx p, float *gradient)
{
#pragma omp parallel for num_threads(cpu_of(dev)->options.threads)
  for (gidx a = 0; a < count; a++) atom_gradient(atoms + a * p, p, gradient + a * p);
  return OK;
}

int cpu_train_normalize(struct device *dev, float *atoms, gidx count, idx p)
{
#pragma omp parallel for num_threads(cpu_of(dev)->options.threads)
  for (gidx a = 0; a < count; a++) atoms_normalize(atoms + a * p, 1, 1, p);
  return OK;
}
