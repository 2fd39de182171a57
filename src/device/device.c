/* SPDX-License-Identifier: BSD-3-Clause
 * A device that keeps its atoms as they come and calls the references. */
#include "device/device.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"

struct device_state {
  struct arena arena;
  struct device_options options;
  float *atoms; /* [atoms_most][d][p] */
  idx *atom_of; /* [atoms_most] */
  idx count;
};

int device_open(struct device *dev, const struct device_options *options)
{
  struct arena arena = {0};
  struct device_state *s;
  CHECK(!strcmp(options->variant, "auto") || !strcmp(options->variant, "baseline") ||
            !strcmp(options->variant, "avx2") || !strcmp(options->variant, "avx512"),
        ERR_USAGE, "unknown variant '%s'", options->variant);
  TRY(arena_take(&arena, &s, 1, sizeof *s));
  s->arena = arena;
  s->options = *options;
  *dev = (struct device){s, "baseline"};
  gidx floats = (gidx)options->atoms_most * options->d * options->p;
  TRY(arena_take(&s->arena, &s->atoms, floats, sizeof(float)));
  return arena_take(&s->arena, &s->atom_of, options->atoms_most, sizeof(idx));
}

void device_close(struct device *dev)
{
  if (dev->state) {
    struct arena arena = dev->state->arena;
    arena_free(&arena);
  }
  *dev = (struct device){0};
}

int device_check_fma(void)
{
  CHECK(__builtin_cpu_supports("fma"), ERR_DEVICE, "this processor has no fused multiply-add");
  return OK;
}

int device_check_subnormals(int threads)
{
  (void)threads;
  return OK;
}

int device_put_tile(struct device *dev, const float *atoms, idx count, idx first)
{
  struct device_state *s = dev->state;
  gidx stride = (gidx)s->options.d * s->options.p;
  CHECK(count <= s->options.atoms_most - s->count, ERR_INTERNAL, "more than %d atoms put",
        s->options.atoms_most);
  memcpy(s->atoms + s->count * stride, atoms, (size_t)(count * stride) * sizeof(float));
  for (idx a = 0; a < count; a++) s->atom_of[s->count + a] = first + a;
  s->count += count;
  return OK;
}

int device_route(struct device *dev, struct route_job *job)
{
  struct device_state *s = dev->state;
  struct route_reference r = {job->n,    s->options.p, s->options.d, job->take,    s->count,
                              job->rows, s->atoms,     s->atom_of,   job->excluded};
  job->bad = (struct bad_score){-1, -1};
  route_reference(&r, job->lists, &job->bad);
  return OK;
}

gidx codes_state(const struct device *dev, idx m_most)
{
  (void)dev, (void)m_most;
  return 8;
}

int device_codes(struct device *dev, const struct codes_job *job)
{
  idx d = dev->state->options.d, p = dev->state->options.p, big_m = job->m_new * d;
  struct arena arena = {0};
  const float **vector;
  real *codes, *work;
  TRY(arena_take(&arena, &vector, big_m, sizeof *vector));
  TRY(arena_take(&arena, &codes, big_m, sizeof *codes));
  TRY(arena_take(&arena, &work, codes_work(big_m), sizeof *work));
  for (idx i = 0; i < job->n; i++) {
    const float *row = job->rows + (gidx)i * p;
    for (idx v = 0; v < big_m; v++)
      vector[v] = job->atoms + ((gidx)job->slot[(gidx)i * job->m_most + v / d] * d + v % d) * p;
    codes_reference(row, vector, big_m, p, job->rho, codes, work);
    if (job->residual)
      residual_reference(row, vector, big_m, p, codes, job->residual + (gidx)i * p);
    if (!job->codes) continue;
    float *out = job->codes + (gidx)i * big_m;
    for (idx v = 0; v < big_m; v++) out[v] = (float)codes[v];
    if (job->quality) job->quality[i] = quality_reference(row, vector, job->m_new, d, p, out);
  }
  arena_free(&arena);
  return OK;
}

double device_peak(const struct device *dev, double seconds)
{
  (void)dev, (void)seconds;
  return 1e9;
}
