/* SPDX-License-Identifier: BSD-3-Clause
 * Normal equations on the CPU.  Of the descent, what comes from outside of a block of atoms is a
 * product of dense matrices, which is nearly all of the work. */
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/cpu/cpu.h"
#include "device/cpu/normal_loops.h"

/* entry[start[a] ..] <- the entries of atom a whose codes are not 0, ascending. */
static void entries_index(const struct normal_job *job)
{
  const struct normal_rows *r = &job->rows;
  idx *start = job->start, entries = r->n * r->s;
  memset(start, 0, ((size_t)job->k + 1) * sizeof *start);
  for (idx e = 0; e < entries; e++) start[r->atoms[e] + 1] += r->codes[e] != 0;
  for (idx a = 0; a < job->k; a++) start[a + 1] += start[a];
  for (idx e = 0; e < entries; e++)
    if (r->codes[e] != 0) job->entry[start[r->atoms[e]]++] = e;
  memmove(start + 1, start, (size_t)job->k * sizeof *start);
  start[0] = 0;
}

int cpu_normal_add(struct device *dev, const struct normal_job *job)
{
  const struct normal_loops *loops = cpu_of(dev)->normal;
  int threads = cpu_of(dev)->options.threads;
  idx columns = job->end - job->begin;
  if (!loops) TRY(device_check_fma());
  entries_index(job);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16)
  for (idx a = 0; a < job->k; a++) {
    const idx *entry = job->entry + job->start[a];
    idx n = job->start[a + 1] - job->start[a];
    if (a >= job->first && a < job->first + job->count)
      loops->gram(&job->rows, entry, n, job->gram + (gidx)(a - job->first) * job->k);
    loops->target(&job->rows, entry, n, job->begin, columns, job->target + (gidx)a * columns);
  }
  return OK;
}

/* The atoms of a block, whose sums over all others are in work. */
static void block_descend(const struct cpu_state *cpu, const real *gram, idx k, idx first, idx n,
                          idx columns, real *atoms, const real *work)
{
  enum { PART = 64 };
#pragma omp parallel for num_threads(cpu->options.threads) schedule(static)
  for (idx c = 0; c < columns; c += PART) {
    idx count = columns - c < PART ? columns - c : PART;
    for (idx a = 0; a < n; a++) {
      const real *g = gram + (gidx)(first + a) * k + first;
      if (g[a] > 0)
        cpu->normal->descend(g, n, a, work + (gidx)a * columns + c, count, columns,
                             atoms + (gidx)first * columns + c);
    }
  }
}

int cpu_normal_descend(struct dense *d, const real *gram, const real *target, idx k, idx columns,
                       real *atoms, real *work)
{
  const struct cpu_state *cpu = cpu_of(d->device);
  for (idx first = 0; first < k; first += NORMAL_BLOCK) {
    idx n = (idx)imin(NORMAL_BLOCK, k - first), end = first + n;
    struct dense_operand by_column = {atoms, 1, columns, 0, 0}, by_atom = {gram, k, 1, 1, 0};
    struct dense_product p = {by_column, by_atom, 0,    columns, first,   end,
                              0,         first,   work, columns, PART_ALL};
    memcpy(work, target + (gidx)first * columns, (size_t)n * (size_t)columns * sizeof *work);
    TRY(cpu_product(d, &p));
    p.depth_begin = end;
    p.depth_end = k;
    TRY(cpu_product(d, &p));
    block_descend(cpu, gram, k, first, n, columns, atoms, work);
  }
  return OK;
}
