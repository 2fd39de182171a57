/* SPDX-License-Identifier: BSD-3-Clause
 * Nested widths on the CPU; rows are divided among threads. */
#include "device/cpu/train_nested.h"

#include <string.h>

#include "base/status.h"
#include "device/cpu/cpu.h"

int cpu_train_blocks(struct device *dev, const struct train_blocks_job *job)
{
  const struct train_entries *e = job->entries;
  int blocks = nested_blocks(job->nested);
#pragma omp parallel for num_threads(cpu_of(dev)->options.threads)
  for (idx i = 0; i < job->n; i++) {
    gidx at = e->start[i];
    for (int b = 0; b < blocks; b++) {
      idx first, end;
      nested_block(job->nested, job->k, b, &first, &end);
      job->start[(gidx)i * blocks + b] = at;
      while (at < e->start[i + 1] && e->index[at] < end) at++;
    }
  }
  job->start[(gidx)job->n * blocks] = e->start[job->n];
  return OK;
}

int cpu_train_suffix(struct device *dev, float *errors, gidx n, int blocks, idx p)
{
#pragma omp parallel for num_threads(cpu_of(dev)->options.threads)
  for (gidx i = 0; i < n; i++) nested_suffix(errors + i * blocks * p, blocks, p);
  return OK;
}

int cpu_train_block_get(struct device *dev, const float *errors, gidx n, int blocks, int block,
                        idx p, float *to)
{
  (void)dev;
  for (gidx i = 0; i < n; i++)
    memcpy(to + i * p, errors + (i * blocks + block) * p, (size_t)p * sizeof *to);
  return OK;
}
