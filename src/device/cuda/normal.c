/* SPDX-License-Identifier: BSD-3-Clause
 * The entries of some rows of data are sorted by atom.  Then an atom's row of the Gram matrix, and
 * its row of the target, are summed over its entries. */
#include "device/cuda/normal.h"

#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "forms.h"

_Static_assert((int)DESCEND_ATOMS == (int)NORMAL_BLOCK,
               "the block of atoms is a part of the result");

enum { THREADS = 256, BLOCKS = 1 << 12 }; /* for kernels whose speed hardly depends on them */

gidx cuda_normal_bytes(idx n, idx s, idx k, idx columns)
{
  (void)columns;
  return normal_work_bytes(normal_rows(n, s), s, k);
}

/* Launch with this grid; an empty grid is no error. */
static int launch(struct device *dev, enum kernel_name name, dim3 grid, dim3 block, int shared,
                  void *arguments)
{
  struct cuda_launch l = {
      .name = name, .grid = grid, .block = block, .shared = shared, .arguments = arguments};
  return grid.x && grid.y ? cuda_launch(dev, &l) : OK;
}

/* A grid with one thread per item, up to a limit of blocks. */
static dim3 grid_of(gidx items)
{
  return (dim3){(unsigned)imin(ceil_div(items, THREADS), BLOCKS), 1, 1};
}

/* Lay out the arrays in which the entries of a->n rows are sorted. */
static void work_lay(struct normal_args *a, char *work)
{
  a->chunk_rows = normal_chunk_rows(a->n, a->k);
  a->chunks = normal_chunks(a->n, a->k);
  a->entries = (struct normal_entry *)work;
  a->counts = (int *)(work + (gidx)a->n * a->s * (gidx)sizeof *a->entries);
  a->start = a->counts + (gidx)a->chunks * a->k;
}

int cuda_entries_index(struct device *dev, struct normal_args *a)
{
  struct cuda_state *s = dev->state;
  size_t counters = (size_t)a->chunks * (size_t)a->k * sizeof *a->counts;
  unsigned atoms = (unsigned)ceil_div(a->k, WARP);
  unsigned chunks = (unsigned)ceil_div(a->chunks, NORMAL_WARPS);
  TRY_CU(cudaMemsetAsync(a->counts, 0, counters, s->stream));
  TRY(launch(dev, KERNEL_NORMAL_COUNT, grid_of((gidx)a->n * a->s), (dim3){THREADS, 1, 1}, 0, a));
  TRY(launch(dev, KERNEL_NORMAL_SCAN, (dim3){atoms, 1, 1}, (dim3){WARP, WARP, 1}, 0, a));
  TRY(launch(dev, KERNEL_NORMAL_STARTS, (dim3){1, 1, 1}, (dim3){1024, 1, 1}, 0, a));
  return launch(dev, KERNEL_NORMAL_SCATTER, (dim3){chunks, 1, 1}, (dim3){WARP, NORMAL_WARPS, 1}, 0,
                a);
}

/* Add rows whose entries are sorted together. */
static int rows_add(struct device *dev, struct normal_args *a)
{
  unsigned ranges = (unsigned)ceil_div(a->k, NORMAL_RANGE);
  unsigned parts = (unsigned)ceil_div(a->columns, NORMAL_THREADS);
  int shared = (int)imin(a->k, NORMAL_RANGE) * (int)sizeof(real);
  TRY(cuda_entries_index(dev, a));
  TRY(launch(dev, KERNEL_NORMAL_GRAM, (dim3){(unsigned)a->count, ranges, 1}, (dim3){WARP, 1, 1},
             shared, a));
  return launch(dev, KERNEL_NORMAL_TARGET, (dim3){(unsigned)a->k, parts, 1},
                (dim3){NORMAL_THREADS, 1, 1}, 0, a);
}

int cuda_normal_add(struct device *dev, const struct normal_job *job)
{
  idx most = normal_rows(job->n, job->s);
  gidx bytes = job->work->bytes;
  while (most > 1 && normal_work_bytes(most, job->s, job->k) > bytes) most = (most + 1) / 2;
  CHECK(normal_work_bytes(most, job->s, job->k) <= bytes, ERR_INTERNAL,
        "%lld bytes are too few to index the entries of %d atoms", (long long)bytes, job->k);
  for (idx i = 0; i < job->n; i += (idx)imin(most, job->n - i)) {
    gidx row = job->row + i;
    struct normal_args a = {.slots = (const int *)job->slots->device + row * job->s,
                            .codes = (const float *)job->codes->device + row * job->s,
                            .x = (const float *)job->x->device + row * job->p,
                            .n = (int)imin(most, job->n - i),
                            .s = job->s,
                            .p = job->p,
                            .k = job->k,
                            .first = job->own.first,
                            .count = job->own.count,
                            .step = job->own.step,
                            .begin = job->begin,
                            .columns = job->end - job->begin,
                            .gram = job->gram->device,
                            .target = job->target->device};
    work_lay(&a, job->work->device);
    TRY(rows_add(dev, &a));
  }
  return cuda_finish(dev->state);
}

int cuda_normal_decay(struct device *dev, struct buffer *values, gidx at, gidx count, real beta)
{
  struct normal_decay_args a = {(real *)values->device + at, count, beta};
  TRY(launch(dev, KERNEL_NORMAL_DECAY, grid_of(count), (dim3){THREADS, 1, 1}, 0, &a));
  return cuda_finish(dev->state);
}

int cuda_normal_energies(struct device *dev, const struct energies_job *job)
{
  struct normal_energies_args a = {.slots = job->slots->device,
                                   .codes = job->codes->device,
                                   .x = job->x->device,
                                   .atoms = job->atoms->device,
                                   .energy = job->energy->device,
                                   .n = job->n,
                                   .s = job->s,
                                   .p = job->p,
                                   .begin = job->begin,
                                   .columns = job->end - job->begin};
  unsigned blocks = (unsigned)ceil_div(job->n, ENERGY_ROWS);
  TRY(launch(dev, KERNEL_NORMAL_ENERGIES, (dim3){blocks, 1, 1}, (dim3){ENERGY_COLUMNS, 1, 1}, 0,
             &a));
  return cuda_finish(dev->state);
}

int cuda_normal_clear(struct device *dev, const struct clear_job *job)
{
  struct normal_clear_args a = {
      job->forget->device, job->gram->device, job->target->device, job->k,
      job->columns,        job->own.first,    job->own.count,      job->own.step};
  TRY(launch(dev, KERNEL_NORMAL_CLEAR, (dim3){(unsigned)job->k, 1, 1}, (dim3){THREADS, 1, 1}, 0,
             &a));
  return cuda_finish(dev->state);
}

int cuda_normal_descend(struct device *dev, const struct descend_job *job)
{
  const struct cuda_state *s = dev->state;
  struct normal_descend_args a = {.gram = job->gram->device,
                                  .target = job->target->device,
                                  .atoms = job->atoms->device,
                                  .diagonal = job->diagonal->device,
                                  .k = job->k,
                                  .columns = job->columns,
                                  .passes = job->columns ? job->passes : 0,
                                  .first = job->first,
                                  .end = job->first + job->count};
  unsigned blocks = (unsigned)imax(ceil_div(job->columns, DESCEND_COLUMNS), 1);
  int large = s->shared >= descend_shared_bytes(descend_stages(1));
  struct cuda_launch l = {.name = KERNEL_NORMAL_DESCEND,
                          .shape = {.mma = s->architecture == 90, .large = large},
                          .grid = {blocks, 1, 1},
                          .block = {WARP, 2 * DESCEND_WARPS, 1},
                          .shared = descend_shared_bytes(descend_stages(large)),
                          .arguments = &a};
  TRY(cuda_launch(dev, &l));
  return cuda_finish(dev->state);
}
