/* SPDX-License-Identifier: BSD-3-Clause
 * One launch takes systems of equal shape and similar length.  The systems of a sub-batch are
 * sorted in the order of its launches. */
#include "device/cuda/arrow_subbatch.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"

int subbatch_open(struct arrow_subbatch *subbatch)
{
  TRY_CU(cudaStreamCreateWithFlags(&subbatch->stream, cudaStreamNonBlocking));
  for (int i = 0; i < LOT_SIDES; i++)
    TRY_CU(cudaStreamCreateWithFlags(&subbatch->sides[i], cudaStreamNonBlocking));
  for (int i = 0; i <= LOT_SIDES; i++)
    TRY_CU(cudaEventCreateWithFlags(&subbatch->events[i], cudaEventDisableTiming));
  TRY_CU(cudaEventCreateWithFlags(&subbatch->fetched, cudaEventDisableTiming));
  return OK;
}

void subbatch_release(struct arrow_subbatch *subbatch)
{
  if (subbatch->host) cudaFreeHost(subbatch->host);
  subbatch->host = NULL;
  subbatch->host_bytes = 0;
  cuda_release(&subbatch->device);
  cuda_release(&subbatch->parts);
}

void subbatch_close(struct arrow_subbatch *subbatch)
{
  if (subbatch->stream) subbatch_wait(subbatch);
  subbatch_release(subbatch);
  if (subbatch->stream) cudaStreamDestroy(subbatch->stream);
  for (int i = 0; i < LOT_SIDES; i++)
    if (subbatch->sides[i]) cudaStreamDestroy(subbatch->sides[i]);
  for (int i = 0; i <= LOT_SIDES; i++)
    if (subbatch->events[i]) cudaEventDestroy(subbatch->events[i]);
  if (subbatch->fetched) cudaEventDestroy(subbatch->fetched);
  free(subbatch->entries);
  free(subbatch->groups);
}

static void *host_at(const struct arrow_subbatch *subbatch, gidx place)
{
  return subbatch->host + (place - subbatch_offsets_of(&subbatch->size).host_begin);
}

int subbatch_reserve(struct cuda_state *s, struct arrow_subbatch *subbatch,
                     const struct subbatch_room *room)
{
  gidx bytes = room->host;
  TRY(cuda_reserve(s, &subbatch->device, room->device));
  if (bytes <= subbatch->host_bytes) return OK;
  if (subbatch->host) TRY_CU(cudaFreeHost(subbatch->host));
  subbatch->host = NULL;
  subbatch->host_bytes = 0;
  void *host;
  cudaError_t error = cudaHostAlloc(&host, (size_t)bytes, cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) cudaGetLastError();
  CHECK(error != cudaErrorMemoryAllocation, ERR_MEMORY,
        "cannot allocate %.1f MB of page-locked memory", 1e-6 * (double)bytes);
  TRY_CU(error);
  subbatch->host = host;
  subbatch->host_bytes = bytes;
  return OK;
}

int subbatch_begin(struct arrow_subbatch *subbatch, struct arrow_job *job, gidx systems,
                   const struct subbatch_mapping *mapping)
{
  TRY(array_reserve(&subbatch->entries, &subbatch->entries_capacity, systems,
                    sizeof *subbatch->entries));
  TRY(array_reserve(&subbatch->groups, &subbatch->groups_capacity, systems,
                    sizeof *subbatch->groups));
  subbatch->job = job;
  subbatch->n_groups = 0;
  subbatch->mapping = *mapping;
  subbatch->size = (struct subbatch_size){.is_fetched = mapping->is_fetched,
                                          .is_returned = mapping->is_returned};
  return OK;
}

void subbatch_add(struct arrow_subbatch *subbatch, const struct subbatch_need *need, gidx item,
                  const struct subbatch_size *with)
{
  const struct arrow_system *a = &subbatch->job->items[item].system;
  const struct subbatch_form *form = &need->form;
  struct subbatch_entry *e = &subbatch->entries[subbatch->size.systems];
  *e = (struct subbatch_entry){.form = *form, .item = item};
  while (form->blocks == 1 && form->rounds == 0 && (gidx)1 << e->octave < a->n) e->octave++;
  subbatch->size = *with;
}

/* Forms of longer systems have higher ranks.  Forms with held factors rank with the largest
 * team. */
static int form_rank(const struct subbatch_form *f)
{
  return f->team == LOT_LONG ? 1 << 16 : f->held ? 2 * ARROW_BLOCK : f->team;
}

/* By d and k, then the longest systems first, so that a launch does not end with a long system that
 * has just begun. */
static int entry_compare(const void *a, const void *b)
{
  const struct subbatch_entry *x = a, *y = b;
  if (x->form.d != y->form.d) return x->form.d < y->form.d ? -1 : 1;
  if (x->form.k != y->form.k) return x->form.k < y->form.k ? -1 : 1;
  int ranks[] = {form_rank(&x->form), form_rank(&y->form)};
  if (ranks[0] != ranks[1]) return ranks[0] > ranks[1] ? -1 : 1;
  if (x->form.blocks != y->form.blocks) return x->form.blocks > y->form.blocks ? -1 : 1;
  if (x->form.held != y->form.held) return x->form.held > y->form.held ? -1 : 1;
  if (x->form.rounds != y->form.rounds) return x->form.rounds > y->form.rounds ? -1 : 1;
  if (x->octave != y->octave) return x->octave > y->octave ? -1 : 1;
  return (x->item > y->item) - (x->item < y->item);
}

/* Entries are often in order already, since the systems of a file have one shape. */
static void entries_sort(struct arrow_subbatch *subbatch)
{
  for (gidx i = 1; i < subbatch->size.systems; i++) {
    if (entry_compare(subbatch->entries + i - 1, subbatch->entries + i) < 0) continue;
    qsort(subbatch->entries, (size_t)subbatch->size.systems, sizeof *subbatch->entries,
          entry_compare);
    return;
  }
}

/* Long systems of one shape form one group, whatever their lengths. */
static int is_same_group(const struct subbatch_entry *x, const struct subbatch_entry *y)
{
  return x->form.d == y->form.d && x->form.k == y->form.k && x->form.team == y->form.team &&
         x->form.held == y->form.held && x->form.blocks == y->form.blocks &&
         x->form.rounds == y->form.rounds && (x->octave == y->octave || x->form.team == LOT_LONG);
}

/* Divide the sorted entries into groups, and assign units to the groups of long systems. */
static void groups_make(struct arrow_subbatch *subbatch)
{
  gidx unit = 0;
  for (gidx i = 0; i < subbatch->size.systems; i++) {
    const struct subbatch_entry *e = &subbatch->entries[i];
    const struct arrow_system *a = &subbatch->job->items[e->item].system;
    if (i == 0 || !is_same_group(e, e - 1))
      subbatch->groups[subbatch->n_groups++] =
          (struct subbatch_group){.form = e->form, .first = i, .unit = unit};
    struct subbatch_group *g = &subbatch->groups[subbatch->n_groups - 1];
    g->count++;
    g->rows = (idx)imax(g->rows, a->n);
    if (g->form.team != LOT_LONG) continue;
    g->segments += subbatch_segments(a);
    g->pieces += subbatch_pieces(a);
    unit = g->unit + g->segments + g->pieces;
  }
}

/* The units of a group: segments of its systems, then pieces of their rows. */
static void units_make(const struct arrow_subbatch *subbatch, const struct subbatch_group *g,
                       struct arrow_unit *units)
{
  for (gidx i = 0; i < g->count; i++) {
    const struct arrow_system *a =
        &subbatch->job->items[subbatch->entries[g->first + i].item].system;
    for (gidx s = 0; s < subbatch_segments(a); s++)
      *units++ = (struct arrow_unit){(int)i, (int)(s * ARROW_SEGMENT_ROWS)};
  }
  for (gidx i = 0; i < g->count; i++) {
    const struct arrow_system *a =
        &subbatch->job->items[subbatch->entries[g->first + i].item].system;
    for (gidx p = 0; p < subbatch_pieces(a); p++)
      *units++ = (struct arrow_unit){(int)i, (int)(p * arrow_step_rows(a->d, a->k))};
  }
}

/* The device address of an array.  For an empty array it is never used. */
static real *moved(const real *host, ptrdiff_t apart)
{
  return (real *)((uintptr_t)host + (uintptr_t)apart);
}

static struct arrow_pointers position_of(const struct arrow_item *item,
                                         const struct subbatch_mapping *m)
{
  const struct arrow_system *a = &item->system;
  return (struct arrow_pointers){.h = moved(a->h, m->numbers),
                                 .b = moved(a->b, m->numbers),
                                 .g = moved(a->g, m->numbers),
                                 .c = moved(a->c, m->numbers),
                                 .g_b = moved(a->g_b, m->numbers),
                                 .step_t = moved(item->step_t, m->step_t),
                                 .step_b = moved(item->step_b, m->step_b),
                                 .d = a->d,
                                 .k = a->k};
}

static void tables_make(struct arrow_subbatch *subbatch)
{
  struct subbatch_offsets at = subbatch_offsets_of(&subbatch->size);
  const struct arrow_options *o = &subbatch->job->options;
  struct arrow_atom *atoms = host_at(subbatch, at.atoms);
  struct arrow_pointers *places = host_at(subbatch, at.places);
  struct arrow_unit *units = host_at(subbatch, at.units);
  gidx in = 0, out = 0, i = 0;
  for (gidx g = 0; g < subbatch->n_groups; g++) {
    gidx segment = 0;
    const struct subbatch_group *group = &subbatch->groups[g];
    for (gidx end = i + group->count; i < end; i++) {
      const struct arrow_item *item = &subbatch->job->items[subbatch->entries[i].item];
      struct ridges now = ridges_add((struct ridges){o->ridge_t, o->ridge_b}, item->start.addition);
      atoms[i] = (struct arrow_atom){.in = in,
                                     .out = out,
                                     .ridge_t = now.t,
                                     .ridge_b = now.b,
                                     .n = (int)item->system.n,
                                     .number = (int)i,
                                     .first_unit = (int)segment};
      if (at.places < at.units) places[i] = position_of(item, &subbatch->mapping);
      in += subbatch_reals_in(&item->system);
      out += subbatch_reals_out(&item->system);
      segment += subbatch_segments(&item->system);
    }
    if (group->form.team == LOT_LONG) units_make(subbatch, group, units + group->unit);
  }
}

static void system_pack(const struct arrow_system *a, real *to)
{
  gidx d = a->d, k = a->k;
  const real *from[] = {a->b, a->h, a->g, a->c, a->g_b};
  const gidx counts[] = {a->n * d * k, a->n * d * d, a->n * d, k * k, k};
  for (int i = 0; i < LENGTH(from); to += counts[i++])
    if (counts[i] > 0) memcpy(to, from[i], (size_t)counts[i] * sizeof *to);
}

/* Spare threads pack and unpack this many systems at a time.  Outcomes alone are little work, so
 * more of them make one task. */
enum { SYSTEMS = 64, OUTCOMES = 512 };

static void systems_pack_some(void *self, gidx part)
{
  const struct arrow_subbatch *subbatch = self;
  const struct arrow_atom *atoms = host_at(subbatch, subbatch_offsets_of(&subbatch->size).atoms);
  real *to = host_at(subbatch, 0);
  for (gidx i = part * SYSTEMS; i < imin((part + 1) * SYSTEMS, subbatch->size.systems); i++)
    system_pack(&subbatch->job->items[subbatch->entries[i].item].system, to + atoms[i].in);
}

static struct arrow_args args_of(const struct arrow_subbatch *subbatch,
                                 const struct subbatch_group *g)
{
  struct subbatch_offsets at = subbatch_offsets_of(&subbatch->size);
  char *base = subbatch->device.at;
  return (struct arrow_args){
      .in = (const real *)(void *)base,
      .out = (real *)(void *)(base + at.out),
      .atoms = (const struct arrow_atom *)(void *)(base + at.atoms) + g->first,
      .places = (const struct arrow_pointers *)(void *)(base + at.places) + g->first,
      .units = (const struct arrow_unit *)(void *)(base + at.units) + g->unit,
      .parts = subbatch->parts.at,
      .found = (struct arrow_found *)(void *)(base + at.found),
      .count = (int)g->count};
}

/* How many systems ahead a system is prefetched; 0: no prefetch.  The cache must hold all systems
 * up to it.  For arrow.cu with few columns a prefetch gains nothing (d = 2, k = 4), or loses (d =
 * 2, k = 8, held), because many systems are in work at a time anyway. */
static int ahead_of(const struct subbatch_group *g)
{
  enum { AHEAD_BYTES = 8 << 20 };
  const struct subbatch_form *f = &g->form;
  gidx d = f->d, k = f->k, longest = g->rows * (d * d + d * k + d) + k * k + k;
  if (f->rounds == 0 && f->k <= (f->held ? ARROW_FEW : 4)) return 0;
  return (int)(AHEAD_BYTES / imax(longest * (gidx)sizeof(real), 1));
}

/* Launch a group of systems whose rows fit in shared memory, or in registers. */
static int short_launch(struct device *dev, const struct arrow_subbatch *subbatch,
                        const struct subbatch_group *g, cudaStream_t stream)
{
  const struct subbatch_form *f = &g->form;
  struct arrow_args a = args_of(subbatch, g);
  unsigned threads = (unsigned)arrow_threads(f->team), teams = threads / (unsigned)f->team;
  struct cuda_launch l = {
      .name = f->rounds ? KERNEL_ARROW_LANES : KERNEL_ARROW,
      .shape = subbatch_shape_of(f),
      .grid = {((unsigned)g->count + teams - 1) / teams * (unsigned)f->blocks, 1, 1},
      .block = {threads, 1, 1},
      .cluster = f->blocks,
      .arguments = &a,
      .stream = stream};
  a.ahead = ahead_of(g);
  if (f->rounds == 0) {
    a.layout = arrow_layout_of(f->d, f->k, f->team, f->mma, f->held, f->blocks, g->rows);
    l.shared = arrow_shared_bytes(&a.layout, f->team);
  }
  return cuda_launch(dev, &l);
}

/* Let the device copy all systems from the caller's arrays, or all steps to them.  numbers: the
 * count of numbers that are copied. */
static int bus_launch(struct device *dev, const struct arrow_subbatch *subbatch,
                      enum kernel_name name, gidx numbers)
{
  enum { TURNS = 4 }; /* rounds of a block, so that all blocks end at about the same time */
  const struct subbatch_group all = {.count = subbatch->size.systems};
  struct arrow_args a = args_of(subbatch, &all);
  a.numbers = numbers;
  a.piece = imax(ceil_div(numbers, TURNS * ARROW_BUS_BLOCKS), ARROW_BUS_LEAST);
  gidx blocks = imin(ceil_div(imax(numbers, 1), a.piece), ARROW_BUS_BLOCKS);
  struct cuda_launch l = {.name = name,
                          .grid = {(unsigned)blocks, 1, 1},
                          .block = {ARROW_BUS_THREADS, 1, 1},
                          .arguments = &a,
                          .stream = subbatch->stream};
  return cuda_launch(dev, &l);
}

static gidx parts_bytes(const struct subbatch_group *g)
{
  idx k = g->form.k;
  return g->segments * arrow_parts(k, g->form.mma) * arrow_part_reals(k) * (gidx)sizeof(real);
}

static int long_launch(struct device *dev, const struct arrow_subbatch *subbatch,
                       const struct subbatch_group *g)
{
  idx d = g->form.d, k = g->form.k;
  int mma = g->form.mma;
  struct arrow_args a = args_of(subbatch, g);
  struct cuda_launch l = {.name = KERNEL_ARROW_SUM,
                          .shape = subbatch_shape_of(&g->form),
                          .grid = {(unsigned)(g->segments * arrow_parts(k, mma)), 1, 1},
                          .block = {(unsigned)arrow_sum_threads(d, k, mma), 1, 1},
                          .shared = arrow_sum_bytes(d, k, mma),
                          .arguments = &a,
                          .stream = subbatch->stream};
  TRY(cuda_launch(dev, &l));
  l.name = KERNEL_ARROW_BORDER;
  l.grid = (dim3){(unsigned)g->count, 1, 1};
  l.block = (dim3){WARP, 1, 1};
  l.shared = (int)sizeof(real) * arrow_border_reals(k, 0, 1);
  TRY(cuda_launch(dev, &l));
  a.units += g->segments;
  l.name = KERNEL_ARROW_STEP;
  l.grid = (dim3){(unsigned)g->pieces, 1, 1};
  l.block = (dim3){ARROW_BLOCK, 1, 1};
  l.shared = arrow_step_bytes(d, k);
  return cuda_launch(dev, &l);
}

/* Let the sides begin after the work on the sub-batch's stream. */
static int sides_fork(const struct arrow_subbatch *subbatch)
{
  TRY_CU(cudaEventRecord(subbatch->events[LOT_SIDES], subbatch->stream));
  for (int i = 0; i < LOT_SIDES; i++)
    TRY_CU(cudaStreamWaitEvent(subbatch->sides[i], subbatch->events[LOT_SIDES], 0));
  return OK;
}
static int sides_join(const struct arrow_subbatch *subbatch)
{
  for (int i = 0; i < LOT_SIDES; i++) {
    TRY_CU(cudaEventRecord(subbatch->events[i], subbatch->sides[i]));
    TRY_CU(cudaStreamWaitEvent(subbatch->stream, subbatch->events[i], 0));
  }
  return OK;
}

/* Long systems run on the sub-batch's stream, one group after another, because they share
 * workspace.  Other groups use the sides too. */
static int groups_launch(struct device *dev, struct arrow_subbatch *subbatch)
{
  struct cuda_state *s = dev->state;
  gidx bytes = 0;
  int turn = 0;
  if (subbatch->n_groups == 0) return OK;
  for (gidx i = 0; i < subbatch->n_groups; i++)
    bytes = imax(bytes, parts_bytes(&subbatch->groups[i]));
  TRY(cuda_reserve(s, &subbatch->parts, bytes));
  if (subbatch->n_groups > 1) TRY(sides_fork(subbatch));
  for (gidx i = 0; i < subbatch->n_groups; i++) {
    const struct subbatch_group *g = &subbatch->groups[i];
    cudaStream_t stream = turn ? subbatch->sides[turn - 1] : subbatch->stream;
    TRY(g->form.team == LOT_LONG ? long_launch(dev, subbatch, g)
                                 : short_launch(dev, subbatch, g, stream));
    turn = (turn + 1) % (LOT_SIDES + 1);
  }
  return subbatch->n_groups > 1 ? sides_join(subbatch) : OK;
}

/* Fetch systems, after the systems of the last sub-batch are on the device. */
static int systems_fetch(struct device *dev, const struct arrow_subbatch *subbatch,
                         const struct arrow_subbatch *last)
{
  if (last) TRY_CU(cudaStreamWaitEvent(subbatch->stream, last->fetched, 0));
  TRY(bus_launch(dev, subbatch, KERNEL_ARROW_FETCH, subbatch->size.in));
  TRY_CU(cudaEventRecord(subbatch->fetched, subbatch->stream));
  return OK;
}

int subbatch_start(struct device *dev, struct arrow_subbatch *subbatch,
                   const struct arrow_subbatch *last)
{
  struct subbatch_offsets at = subbatch_offsets_of(&subbatch->size);
  if (subbatch->size.systems == 0) return OK;
  entries_sort(subbatch);
  groups_make(subbatch);
  tables_make(subbatch);
  if (!subbatch->mapping.is_fetched)
    spare_run(ceil_div(subbatch->size.systems, SYSTEMS), systems_pack_some, subbatch);
  TRY_CU(cudaMemcpyAsync((char *)subbatch->device.at + at.host_begin, subbatch->host,
                         (size_t)(at.found - at.host_begin), cudaMemcpyHostToDevice,
                         subbatch->stream));
  if (subbatch->mapping.is_fetched) TRY(systems_fetch(dev, subbatch, last));
  /* Zero the results: no kernel clears the flag of a long system, and no kernel writes padding. */
  char *results = (char *)subbatch->device.at + at.found;
  size_t bytes = (size_t)(at.host_end - at.found);
  TRY_CU(cudaMemsetAsync(results, 0, bytes, subbatch->stream));
  TRY(groups_launch(dev, subbatch));
  if (subbatch->mapping.is_returned)
    TRY(bus_launch(dev, subbatch, KERNEL_ARROW_RETURN, subbatch->size.out));
  TRY_CU(cudaMemcpyAsync(host_at(subbatch, at.found), results, bytes, cudaMemcpyDeviceToHost,
                         subbatch->stream));
  cuda_count(&dev->counts.put, at.found);
  cuda_count(&dev->counts.got, at.end - at.found);
  return OK;
}

static void steps_unpack(struct arrow_item *item, const real *steps)
{
  const struct arrow_system *a = &item->system;
  gidx rows = a->n * a->d;
  if (rows > 0) memcpy(item->step_t, steps, (size_t)rows * sizeof *steps);
  if (a->k > 0) memcpy(item->step_b, steps + rows, (size_t)a->k * sizeof *steps);
}

/* The outcome of a system that is ok. */
static void outcome_fill(struct arrow_item *item, const struct arrow_atom *atom,
                         const struct arrow_found *found)
{
  item->outcome = (struct arrow_outcome){.status = ARROW_OK,
                                         .failed_at = -1,
                                         .ridge_t = atom->ridge_t,
                                         .ridge_b = atom->ridge_b,
                                         .addition = item->start.addition,
                                         .retries = item->start.retries,
                                         .pair = {found->m, found->e}};
  item->outcome.log_det = det_pair_value(item->outcome.pair);
}

static gidx systems_at_a_time(const struct arrow_subbatch *subbatch)
{
  return subbatch->mapping.is_returned ? OUTCOMES : SYSTEMS;
}

static void systems_unpack_some(void *self, gidx part)
{
  const struct arrow_subbatch *subbatch = self;
  struct subbatch_offsets at = subbatch_offsets_of(&subbatch->size);
  const struct arrow_atom *atoms = host_at(subbatch, at.atoms);
  const struct arrow_found *found = host_at(subbatch, at.found);
  const real *steps = subbatch->mapping.is_returned ? NULL : host_at(subbatch, at.out);
  gidx some = systems_at_a_time(subbatch), end = imin((part + 1) * some, subbatch->size.systems);
  for (gidx i = part * some; i < end; i++) {
    struct arrow_item *item = &subbatch->job->items[subbatch->entries[i].item];
    if (found[i].not_ok) continue;
    if (steps) steps_unpack(item, steps + atoms[i].out);
    outcome_fill(item, &atoms[i], &found[i]);
  }
}

int subbatch_finish(struct arrow_subbatch *subbatch, gidx *failed, gidx *count)
{
  if (!subbatch->job) return OK;
  const struct arrow_found *found = host_at(subbatch, subbatch_offsets_of(&subbatch->size).found);
  cudaError_t error = cudaStreamSynchronize(subbatch->stream);
  if (!error)
    spare_run(ceil_div(subbatch->size.systems, systems_at_a_time(subbatch)), systems_unpack_some,
              subbatch);
  subbatch->job = NULL;
  TRY_CU(error);
  for (gidx i = 0; i < subbatch->size.systems; i++)
    if (found[i].not_ok) failed[(*count)++] = subbatch->entries[i].item;
  return OK;
}

void subbatch_wait(struct arrow_subbatch *subbatch)
{
  if (cudaStreamSynchronize(subbatch->stream)) cudaGetLastError(); /* the caller has reported one */
  for (int i = 0; i < LOT_SIDES; i++)
    if (subbatch->sides[i] && cudaStreamSynchronize(subbatch->sides[i])) cudaGetLastError();
}

int subbatch_measure(struct device *dev, struct arrow_subbatch *subbatch, double *seconds)
{
  cudaEvent_t begin, end;
  float milliseconds = 0;
  TRY_CU(cudaEventCreate(&begin));
  TRY_CU(cudaEventCreate(&end));
  TRY(groups_launch(dev, subbatch)); /* the measured launches are queued while these run */
  TRY_CU(cudaEventRecord(begin, subbatch->stream));
  TRY(groups_launch(dev, subbatch));
  TRY_CU(cudaEventRecord(end, subbatch->stream));
  TRY_CU(cudaEventSynchronize(end));
  TRY_CU(cudaEventElapsedTime(&milliseconds, begin, end));
  TRY_CU(cudaEventDestroy(begin));
  TRY_CU(cudaEventDestroy(end));
  *seconds = 1e-3 * milliseconds;
  return OK;
}
