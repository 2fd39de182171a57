/* SPDX-License-Identifier: BSD-3-Clause
 * Normal equations on the CPU.  In a descent, the sum over the atoms outside of a block is a
 * product of dense matrices; it is nearly all of the work. */
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "device/cpu/cpu.h"
#include "device/cpu/normal_loops.h"
#include "forms.h"

/* The entries of some rows, sorted by atom. */
struct entries {
  idx *start; /* [k + 1] */
  idx *entry; /* [rows s] row s + index in the row's support */
};

static gidx entries_bytes(idx rows, idx s, idx k)
{
  return ((gidx)k + 1 + (gidx)rows * s) * (gidx)sizeof(idx);
}

/* Rows of the largest matrix in a descent.  The panels that dense_open() allocates are not used. */
static idx dense_rows(idx columns)
{
  return (idx)imax(columns, NORMAL_BLOCK);
}

gidx cpu_normal_bytes(idx n, idx s, idx k, idx columns)
{
  return imax(entries_bytes((idx)imin(n, ROW_BLOCK), s, k),
              (gidx)NORMAL_BLOCK * columns * (gidx)sizeof(real));
}

gidx cpu_normal_beside(int threads, idx columns)
{
  return cpu_dense_bytes(threads, DENSE_MIN_PANEL, dense_rows(columns));
}

/* e->entry[e->start[a] ..] <- the entries of atom a whose codes are not 0, ascending. */
static void entries_index(const struct normal_rows *r, idx k, struct entries *e)
{
  idx entries = r->n * r->s;
  memset(e->start, 0, ((size_t)k + 1) * sizeof *e->start);
  for (idx i = 0; i < entries; i++) e->start[r->atoms[i] + 1] += r->codes[i] != 0;
  for (idx a = 0; a < k; a++) e->start[a + 1] += e->start[a];
  for (idx i = 0; i < entries; i++)
    if (r->codes[i] != 0) e->entry[e->start[r->atoms[i]]++] = i;
  memmove(e->start + 1, e->start, (size_t)k * sizeof *e->start);
  e->start[0] = 0;
}

/* Add some rows of the job. */
static void rows_add(const struct cpu_state *cpu, const struct normal_job *job,
                     const struct normal_rows *rows, struct entries *e)
{
  const struct normal_loops *loops = cpu->normal;
  idx columns = job->end - job->begin;
  real *gram = job->gram->device, *target = job->target->device;
  entries_index(rows, job->k, e);
#pragma omp parallel for num_threads(cpu->options.threads) schedule(dynamic, 16)
  for (idx a = 0; a < job->k; a++) {
    const idx *entry = e->entry + e->start[a];
    idx n = e->start[a + 1] - e->start[a];
    idx own = normal_own_row(a, job->own.first, job->own.count, job->own.step);
    if (own >= 0) loops->gram(rows, entry, n, gram + (gidx)own * job->k);
    loops->target(rows, entry, n, job->begin, columns, target + (gidx)a * columns);
  }
}

int cpu_normal_add(struct device *dev, const struct normal_job *job)
{
  const struct cpu_state *cpu = cpu_of(dev);
  idx most = (idx)imin(job->n, ROW_BLOCK);
  struct entries e = {job->work->device, (idx *)job->work->device + job->k + 1};
  if (!cpu->normal) TRY(device_check_fma());
  while (most > 1 && entries_bytes(most, job->s, job->k) > job->work->bytes) most = (most + 1) / 2;
  CHECK(entries_bytes(most, job->s, job->k) <= job->work->bytes, ERR_INTERNAL,
        "%lld bytes are too few to index the entries of %d atoms", (long long)job->work->bytes,
        job->k);
  for (idx i = 0; i < job->n; i += most) {
    gidx at = job->row + i;
    struct normal_rows rows = {.n = (idx)imin(most, job->n - i),
                               .s = job->s,
                               .p = job->p,
                               .atoms = (const idx *)job->slots->device + at * job->s,
                               .codes = (const float *)job->codes->device + at * job->s,
                               .x = (const float *)job->x->device + at * job->p};
    rows_add(cpu, job, &rows, &e);
  }
  return OK;
}

int cpu_normal_decay(struct device *dev, struct buffer *values, gidx at, gidx count, real beta)
{
  (void)dev;
  normal_decay(beta, count, (real *)values->device + at);
  return OK;
}

/* Update the atoms of a block.  gram has their rows; work has the sums over all other atoms. */
static void block_descend(const struct cpu_state *cpu, const real *gram, idx k, idx first, idx n,
                          idx columns, real *atoms, const real *work)
{
  enum { PART = 64 };
#pragma omp parallel for num_threads(cpu->options.threads) schedule(static)
  for (idx c = 0; c < columns; c += PART) {
    idx count = columns - c < PART ? columns - c : PART;
    for (idx a = 0; a < n; a++) {
      const real *g = gram + (gidx)a * k + first;
      if (g[a] > 0)
        cpu->normal->descend(g, n, a, work + (gidx)a * columns + c, count, columns,
                             atoms + (gidx)first * columns + c);
    }
  }
}

/* One pass over all atoms. */
static int pass_descend(struct dense *d, const struct descend_job *job)
{
  const struct cpu_state *cpu = cpu_of(d->device);
  const real *gram = job->gram->device, *target = job->target->device;
  real *atoms = job->atoms->device, *work = job->work->device;
  idx k = job->k, columns = job->columns, last = job->first + job->count;
  for (idx first = job->first; first < last; first += NORMAL_BLOCK) {
    idx n = (idx)imin(NORMAL_BLOCK, last - first), end = first + n;
    const real *rows = gram + (gidx)(first - job->first) * k;
    struct dense_operand by_column = {atoms, 1, columns, 0, 0}, by_atom = {rows, k, 1, 1, 0};
    struct dense_product p = {by_column, by_atom, 0,    columns, 0,       n,
                              0,         first,   work, columns, PART_ALL};
    memcpy(work, target + (gidx)first * columns, (size_t)n * (size_t)columns * sizeof *work);
    TRY(cpu_product(d, &p));
    p.depth_begin = end;
    p.depth_end = k;
    TRY(cpu_product(d, &p));
    block_descend(cpu, rows, k, first, n, columns, atoms, work);
  }
  return OK;
}

int cpu_normal_descend(struct device *dev, const struct descend_job *job)
{
  const real *gram = job->gram->device;
  real *diagonal = job->diagonal->device;
  struct dense d = {0};
  for (idx a = 0; a < job->count; a++)
    diagonal[job->first + a] = gram[(gidx)a * job->k + job->first + a];
  if (job->columns == 0) return OK;
  int status = dense_open(&d, dev, DENSE_MIN_PANEL, dense_rows(job->columns));
  for (idx i = 0; i < job->passes && !status; i++) status = pass_descend(&d, job);
  dense_close(&d);
  return status;
}

int cpu_normal_energies(struct device *dev, const struct energies_job *job)
{
  enum { PIECE = 256 };
  const struct cpu_state *cpu = cpu_of(dev);
  const idx *slots = job->slots->device;
  const float *codes = job->codes->device, *x = job->x->device;
  real *energy = job->energy->device;
  if (!cpu->normal) TRY(device_check_fma());
#pragma omp parallel for num_threads(cpu->options.threads) schedule(static)
  for (idx i = 0; i < job->n; i += PIECE) {
    struct normal_rows rows = {.n = (idx)imin(PIECE, job->n - i),
                               .s = job->s,
                               .p = job->p,
                               .atoms = slots + (gidx)i * job->s,
                               .codes = codes + (gidx)i * job->s,
                               .x = x + (gidx)i * job->p};
    cpu->normal->energies(&rows, job->atoms->device, job->begin, job->end - job->begin, energy + i);
  }
  return OK;
}

int cpu_normal_clear(struct device *dev, const struct clear_job *job)
{
  const unsigned char *forget = job->forget->device;
  const struct normal_own *own = &job->own;
  real *gram = job->gram->device, *target = job->target->device;
  gidx k = job->k, columns = job->columns;
  (void)dev;
  for (gidx a = 0; a < k; a++)
    if (forget[a]) memset(target + a * columns, 0, (size_t)columns * sizeof *target);
  for (gidx i = 0; i < own->count; i++) {
    real *row = gram + i * k;
    int all = forget[normal_own_atom((int)i, own->first, own->step)];
    for (gidx b = 0; b < k; b++)
      if (all || forget[b]) row[b] = 0;
  }
  return OK;
}
