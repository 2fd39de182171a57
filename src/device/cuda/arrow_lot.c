/* SPDX-License-Identifier: BSD-3-Clause
 * Systems of equal shape and similar length are one launch; the order of systems in a lot is that
 * of its launches. */
#include "device/cuda/arrow_lot.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"

enum { BLOCK_RESERVED = 1 << 10 }; /* shared memory that a block takes beside its own */

int lot_open(struct cuda_lot *lot)
{
  TRY_CU(cudaStreamCreateWithFlags(&lot->stream, cudaStreamNonBlocking));
  for (int i = 0; i < LOT_SIDES; i++)
    TRY_CU(cudaStreamCreateWithFlags(&lot->sides[i], cudaStreamNonBlocking));
  for (int i = 0; i <= LOT_SIDES; i++)
    TRY_CU(cudaEventCreateWithFlags(&lot->events[i], cudaEventDisableTiming));
  return OK;
}

void lot_close(struct cuda_lot *lot)
{
  if (lot->stream) cudaStreamSynchronize(lot->stream);
  if (lot->host) cudaFreeHost(lot->host);
  cuda_release(&lot->device);
  cuda_release(&lot->parts);
  if (lot->stream) cudaStreamDestroy(lot->stream);
  for (int i = 0; i < LOT_SIDES; i++)
    if (lot->sides[i]) cudaStreamDestroy(lot->sides[i]);
  for (int i = 0; i <= LOT_SIDES; i++)
    if (lot->events[i]) cudaEventDestroy(lot->events[i]);
  free(lot->entries);
  free(lot->groups);
}

/* In shared memory where a multiprocessor holds two blocks, so that one computes while another
 * waits; by several warps where those of several systems do not fit; by as few blocks as can be. */
static int form_bytes(const struct lot_form *f, idx n)
{
  struct arrow_layout layout = arrow_layout_of(f->d, f->k, f->team, f->mma, f->blocks, n);
  return arrow_shared_bytes(&layout, f->team);
}

static struct lot_form form_of(const struct cuda_state *s, const struct arrow_system *a)
{
  struct lot_form f = {a->d, a->k, LOT_DECLINED, 1, 0, s->architecture == 90};
  gidx most = s->shared / 2 - BLOCK_RESERVED;
  if (a->d < 1 || a->d > ARROW_MAX_FRAME || a->k < 0 || a->k > ARROW_MAX_COLUMNS) return f;
  if (a->n < 0 || a->n >= 1 << 30) return f;
  idx n = (idx)imin(a->n, 1 << 16); /* as many do not fit in any case */
  f.rounds = arrow_rounds(a->d, a->k, n);
  if (f.rounds) f.team = WARP;
  if (f.rounds) return f;
  f.team = arrow_team(a->d, a->k, n);
  if (f.team == WARP && form_bytes(&f, n) > most) f.team = arrow_team(a->d, a->k, 1 << 16);
  int most_blocks = f.mma && f.team != WARP ? ARROW_BLOCKS : 1;
  while (f.blocks < most_blocks && form_bytes(&f, n) > most) f.blocks *= 2;
  if (form_bytes(&f, n) <= most) return f;
  f.blocks = 1;
  f.team = a->n > 0 && arrow_sum_bytes(a->d, a->k) <= s->shared &&
                   arrow_step_bytes(a->d, a->k) <= s->shared
               ? LOT_LONG
               : LOT_DECLINED;
  return f;
}

static struct kernel_shape shape_of(const struct lot_form *form)
{
  return (struct kernel_shape){.d = form->d,
                               .k = form->k,
                               .team = form->team,
                               .rounds = form->rounds,
                               .mma = form->mma,
                               .top_k = 1};
}

int lot_recipes(const struct lot_form *form, struct kernel_recipe *recipes)
{
  static const enum kernel_name lanes[] = {KERNEL_ARROW_LANES}, whole[] = {KERNEL_ARROW},
                                parts[] = {KERNEL_ARROW_SUM, KERNEL_ARROW_STEP,
                                           KERNEL_ARROW_BORDER};
  struct kernel_shape shape = shape_of(form);
  int is_long = form->team == LOT_LONG, count = is_long ? LENGTH(parts) : 1;
  const enum kernel_name *names = is_long ? parts : form->rounds ? lanes : whole;
  for (int i = 0; i < count; i++) kernel_recipe(names[i], &shape, &recipes[i]);
  return count;
}

/* Both even, so that the kernels can copy 16 bytes at a time. */
static gidx reals_in(const struct arrow_system *a)
{
  gidx d = a->d, k = a->k;
  return ceil_div(a->n * (d * d + d * k + d) + k * k + k, 2) * 2;
}

static gidx reals_out(const struct arrow_system *a)
{
  return ceil_div(a->n * a->d + a->k, 2) * 2;
}

static gidx segments_of(const struct arrow_system *a)
{
  return ceil_div(a->n, ARROW_SEGMENT_ROWS);
}

static gidx pieces_of(const struct arrow_system *a)
{
  return ceil_div(a->n, arrow_step_rows(a->d, a->k));
}

struct lot_need lot_need_of(const struct cuda_state *s, const struct arrow_system *a)
{
  struct lot_need need = {form_of(s, a), reals_in(a), reals_out(a), 0};
  if (need.form.team == LOT_LONG) need.units = segments_of(a) + pieces_of(a);
  return need;
}

struct lot_size lot_with(struct lot_size size, const struct lot_need *need)
{
  size.in += need->in;
  size.out += need->out;
  size.units += need->units;
  size.systems++;
  return size;
}

/* Where the parts of a lot begin, in bytes; `out` at a multiple of 16. */
struct lot_places {
  gidx atoms, sources, units, found, out, end;
};

static struct lot_places places_of(const struct lot_size *z)
{
  struct lot_places at;
  at.atoms = z->in * (gidx)sizeof(real);
  at.sources = at.atoms + z->systems * (gidx)sizeof(struct arrow_atom);
  at.units = at.sources + (z->is_fetched ? z->systems * (gidx)sizeof(struct arrow_source) : 0);
  at.found = at.units + z->units * (gidx)sizeof(struct arrow_unit);
  at.out = ceil_div(at.found + z->systems * (gidx)sizeof(struct arrow_found), 16) * 16;
  at.end = at.out + z->out * (gidx)sizeof(real);
  return at;
}

/* The host's side begins with what is there first: the tables, where systems are fetched. */
static gidx host_begin(const struct lot_size *z)
{
  return z->is_fetched ? places_of(z).atoms : 0;
}

static void *host_at(const struct cuda_lot *lot, gidx place)
{
  return lot->host + (place - host_begin(&lot->size));
}

struct lot_room lot_room_of(const struct lot_size *size)
{
  gidx end = places_of(size).end;
  return (struct lot_room){end, end - host_begin(size)};
}

int lot_reserve(struct cuda_state *s, struct cuda_lot *lot, const struct lot_room *room)
{
  gidx bytes = room->host;
  TRY(cuda_reserve(s, &lot->device, room->device));
  if (bytes <= lot->host_bytes) return OK;
  if (lot->host) TRY_CU(cudaFreeHost(lot->host));
  lot->host = NULL;
  lot->host_bytes = 0;
  void *host;
  cudaError_t error = cudaHostAlloc(&host, (size_t)bytes, cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) cudaGetLastError();
  CHECK(error != cudaErrorMemoryAllocation, ERR_MEMORY,
        "cannot allocate %.1f MB of page-locked memory", 1e-6 * (double)bytes);
  TRY_CU(error);
  lot->host = host;
  lot->host_bytes = bytes;
  return OK;
}

int lot_begin(struct cuda_lot *lot, struct arrow_job *job, gidx systems, int is_fetched)
{
  TRY(array_reserve(&lot->entries, &lot->entries_capacity, systems, sizeof *lot->entries));
  TRY(array_reserve(&lot->groups, &lot->groups_capacity, systems, sizeof *lot->groups));
  lot->job = job;
  lot->n_groups = 0;
  lot->size = (struct lot_size){.is_fetched = is_fetched};
  return OK;
}

void lot_add(struct cuda_lot *lot, const struct lot_need *need, gidx item)
{
  const struct arrow_system *a = &lot->job->items[item].system;
  const struct lot_form *form = &need->form;
  struct lot_entry *e = &lot->entries[lot->size.systems];
  *e = (struct lot_entry){.form = *form, .item = item};
  while (form->blocks == 1 && form->rounds == 0 && (gidx)1 << e->octave < a->n) e->octave++;
  lot->size = lot_with(lot->size, need);
}

/* By how long a launch's systems may be. */
static int form_rank(const struct lot_form *f)
{
  return f->team == LOT_LONG ? 1 << 16 : f->team;
}

/* The longest first, so that a launch does not end with one that has just begun, nor a lot. */
static int entry_compare(const void *a, const void *b)
{
  const struct lot_entry *x = a, *y = b;
  if (x->form.d != y->form.d) return x->form.d < y->form.d ? -1 : 1;
  if (x->form.k != y->form.k) return x->form.k < y->form.k ? -1 : 1;
  int ranks[] = {form_rank(&x->form), form_rank(&y->form)};
  if (ranks[0] != ranks[1]) return ranks[0] > ranks[1] ? -1 : 1;
  if (x->form.blocks != y->form.blocks) return x->form.blocks > y->form.blocks ? -1 : 1;
  if (x->form.rounds != y->form.rounds) return x->form.rounds > y->form.rounds ? -1 : 1;
  if (x->octave != y->octave) return x->octave > y->octave ? -1 : 1;
  return (x->item > y->item) - (x->item < y->item);
}

/* Long systems of one shape are one group, whatever their lengths. */
static int is_same_group(const struct lot_entry *x, const struct lot_entry *y)
{
  return x->form.d == y->form.d && x->form.k == y->form.k && x->form.team == y->form.team &&
         x->form.blocks == y->form.blocks && x->form.rounds == y->form.rounds &&
         (x->octave == y->octave || x->form.team == LOT_LONG);
}

/* Cut the sorted entries into groups, and give these their units. */
static void groups_make(struct cuda_lot *lot)
{
  gidx unit = 0;
  for (gidx i = 0; i < lot->size.systems; i++) {
    const struct lot_entry *e = &lot->entries[i];
    const struct arrow_system *a = &lot->job->items[e->item].system;
    if (i == 0 || !is_same_group(e, e - 1))
      lot->groups[lot->n_groups++] = (struct lot_group){.form = e->form, .first = i, .unit = unit};
    struct lot_group *g = &lot->groups[lot->n_groups - 1];
    g->count++;
    g->rows = (idx)imax(g->rows, a->n);
    if (g->form.team != LOT_LONG) continue;
    g->segments += segments_of(a);
    g->pieces += pieces_of(a);
    unit = g->unit + g->segments + g->pieces;
  }
}

/* The units of a group: segments of its systems, then pieces of their rows. */
static void units_make(const struct cuda_lot *lot, const struct lot_group *g,
                       struct arrow_unit *units)
{
  for (gidx i = 0; i < g->count; i++) {
    const struct arrow_system *a = &lot->job->items[lot->entries[g->first + i].item].system;
    for (gidx s = 0; s < segments_of(a); s++)
      *units++ = (struct arrow_unit){(int)i, (int)(s * ARROW_SEGMENT_ROWS)};
  }
  for (gidx i = 0; i < g->count; i++) {
    const struct arrow_system *a = &lot->job->items[lot->entries[g->first + i].item].system;
    for (gidx p = 0; p < pieces_of(a); p++)
      *units++ = (struct arrow_unit){(int)i, (int)(p * arrow_step_rows(a->d, a->k))};
  }
}

/* As the device sees it, so many bytes from where the host does. */
static struct arrow_source source_of(const struct arrow_system *a, ptrdiff_t apart)
{
  const real *const host[] = {a->h, a->b, a->g, a->c, a->g_b};
  const real *device[LENGTH(host)];
  for (int i = 0; i < LENGTH(host); i++)
    device[i] = (const real *)(const void *)((const char *)host[i] + apart);
  return (struct arrow_source){device[0], device[1], device[2], device[3], device[4], a->d, a->k};
}

static void tables_make(struct cuda_lot *lot)
{
  struct lot_places at = places_of(&lot->size);
  const struct arrow_options *o = &lot->job->options;
  struct arrow_atom *atoms = host_at(lot, at.atoms);
  struct arrow_source *sources = host_at(lot, at.sources);
  struct arrow_unit *units = host_at(lot, at.units);
  gidx in = 0, out = 0, i = 0;
  for (gidx g = 0; g < lot->n_groups; g++) {
    gidx segment = 0;
    const struct lot_group *group = &lot->groups[g];
    for (gidx end = i + group->count; i < end; i++) {
      const struct arrow_item *item = &lot->job->items[lot->entries[i].item];
      real addition = item->start.addition;
      atoms[i] = (struct arrow_atom){.in = in,
                                     .out = out,
                                     .ridge_t = addition > 0 ? o->ridge_t + addition : o->ridge_t,
                                     .ridge_b = addition > 0 ? o->ridge_b + addition : o->ridge_b,
                                     .n = (int)item->system.n,
                                     .number = (int)i,
                                     .first_unit = (int)segment};
      if (lot->size.is_fetched) sources[i] = source_of(&item->system, lot->apart);
      in += reals_in(&item->system);
      out += reals_out(&item->system);
      segment += segments_of(&item->system);
    }
    if (group->form.team == LOT_LONG) units_make(lot, group, units + group->unit);
  }
}

static void system_pack(const struct arrow_system *a, real *to)
{
  gidx d = a->d, k = a->k;
  const real *from[] = {a->h, a->b, a->g, a->c, a->g_b};
  const gidx counts[] = {a->n * d * d, a->n * d * k, a->n * d, k * k, k};
  for (int i = 0; i < LENGTH(from); to += counts[i++])
    if (counts[i] > 0) memcpy(to, from[i], (size_t)counts[i] * sizeof *to);
}

/* Threads that pack and unpack: copies need few, and a team that is larger than the cores that are
 * free waits for its last one; threads behind this one read meanwhile (base/team.h). */
static int copiers_of(const struct cuda_state *s)
{
  enum { MOST = 8 };
  return (int)imin(MOST, (s->options.threads + 1) / 2);
}

static void systems_pack(const struct cuda_state *s, const struct cuda_lot *lot)
{
  struct lot_places at = places_of(&lot->size);
  const struct arrow_atom *atoms = host_at(lot, at.atoms);
  real *to = host_at(lot, 0);
#pragma omp parallel for num_threads(copiers_of(s)) schedule(dynamic, 16)
  for (gidx i = 0; i < lot->size.systems; i++)
    system_pack(&lot->job->items[lot->entries[i].item].system, to + atoms[i].in);
}

static struct arrow_args args_of(const struct cuda_lot *lot, const struct lot_group *g)
{
  struct lot_places at = places_of(&lot->size);
  char *base = lot->device.at;
  return (struct arrow_args){
      .in = (const real *)(void *)base,
      .out = (real *)(void *)(base + at.out),
      .atoms = (const struct arrow_atom *)(void *)(base + at.atoms) + g->first,
      .sources = (const struct arrow_source *)(void *)(base + at.sources) + g->first,
      .units = (const struct arrow_unit *)(void *)(base + at.units) + g->unit,
      .parts = lot->parts.at,
      .found = (struct arrow_found *)(void *)(base + at.found),
      .count = (int)g->count};
}

/* A group of systems whose rows fit in shared memory, or in registers. */
static int short_launch(struct device *dev, const struct cuda_lot *lot, const struct lot_group *g,
                        cudaStream_t stream)
{
  const struct lot_form *f = &g->form;
  struct arrow_args a = args_of(lot, g);
  unsigned threads = (unsigned)arrow_threads(f->team), teams = threads / (unsigned)f->team;
  struct cuda_launch l = {
      .name = f->rounds ? KERNEL_ARROW_LANES : KERNEL_ARROW,
      .shape = shape_of(f),
      .grid = {((unsigned)g->count + teams - 1) / teams * (unsigned)f->blocks, 1, 1},
      .block = {threads, 1, 1},
      .cluster = f->blocks,
      .arguments = &a,
      .stream = stream};
  if (f->rounds == 0) {
    a.layout = arrow_layout_of(f->d, f->k, f->team, f->mma, f->blocks, g->rows);
    l.shared = arrow_shared_bytes(&a.layout, f->team);
  }
  return cuda_launch(dev, &l);
}

/* Let the device fetch the numbers of all systems. */
static int systems_fetch(struct device *dev, const struct cuda_lot *lot)
{
  gidx systems = lot->size.systems, longest = 0;
  for (gidx i = 0; i < systems; i++)
    longest = imax(longest, reals_in(&lot->job->items[lot->entries[i].item].system));
  const struct lot_group all = {.count = systems};
  struct arrow_args a = args_of(lot, &all);
  gidx pieces = ceil_div(longest, 8 * ARROW_FETCH_THREADS);
  struct cuda_launch l = {.name = KERNEL_ARROW_FETCH,
                          .grid = {(unsigned)imin(systems, ARROW_FETCH_SYSTEMS),
                                   (unsigned)imin(imax(pieces, 1), ARROW_FETCH_PIECES), 1},
                          .block = {ARROW_FETCH_THREADS, 1, 1},
                          .arguments = &a,
                          .stream = lot->stream};
  return cuda_launch(dev, &l);
}

static gidx parts_bytes(const struct lot_group *g)
{
  idx k = g->form.k;
  return g->segments * arrow_parts(k) * arrow_part_reals(k) * (gidx)sizeof(real);
}

static int long_launch(struct device *dev, const struct cuda_lot *lot, const struct lot_group *g)
{
  idx d = g->form.d, k = g->form.k;
  struct arrow_args a = args_of(lot, g);
  struct cuda_launch l = {.name = KERNEL_ARROW_SUM,
                          .shape = shape_of(&g->form),
                          .grid = {(unsigned)g->segments, (unsigned)arrow_parts(k), 1},
                          .block = {(unsigned)arrow_sum_threads(d, k), 1, 1},
                          .shared = arrow_sum_bytes(d, k),
                          .arguments = &a,
                          .stream = lot->stream};
  TRY(cuda_launch(dev, &l));
  l.name = KERNEL_ARROW_BORDER;
  l.grid = (dim3){(unsigned)g->count, 1, 1};
  l.block = (dim3){WARP, 1, 1};
  l.shared = (int)sizeof(real) * arrow_border_reals(k);
  TRY(cuda_launch(dev, &l));
  a.units += g->segments;
  l.name = KERNEL_ARROW_STEP;
  l.grid = (dim3){(unsigned)g->pieces, 1, 1};
  l.block = (dim3){ARROW_BLOCK, 1, 1};
  l.shared = arrow_step_bytes(d, k);
  return cuda_launch(dev, &l);
}

/* Let the sides begin after what is on the lot's stream, or that go on after them. */
static int sides_fork(const struct cuda_lot *lot)
{
  TRY_CU(cudaEventRecord(lot->events[LOT_SIDES], lot->stream));
  for (int i = 0; i < LOT_SIDES; i++)
    TRY_CU(cudaStreamWaitEvent(lot->sides[i], lot->events[LOT_SIDES], 0));
  return OK;
}
static int sides_join(const struct cuda_lot *lot)
{
  for (int i = 0; i < LOT_SIDES; i++) {
    TRY_CU(cudaEventRecord(lot->events[i], lot->sides[i]));
    TRY_CU(cudaStreamWaitEvent(lot->stream, lot->events[i], 0));
  }
  return OK;
}

/* Long systems, which share the place of their parts, on the lot's stream; others also on the
 * sides. */
static int groups_launch(struct device *dev, struct cuda_lot *lot)
{
  struct cuda_state *s = dev->state;
  gidx bytes = 0;
  int turn = 0;
  if (lot->n_groups == 0) return OK;
  for (gidx i = 0; i < lot->n_groups; i++) bytes = imax(bytes, parts_bytes(&lot->groups[i]));
  TRY(cuda_reserve(s, &lot->parts, bytes));
  if (lot->n_groups > 1) TRY(sides_fork(lot));
  for (gidx i = 0; i < lot->n_groups; i++) {
    const struct lot_group *g = &lot->groups[i];
    cudaStream_t stream = turn ? lot->sides[turn - 1] : lot->stream;
    TRY(g->form.team == LOT_LONG ? long_launch(dev, lot, g) : short_launch(dev, lot, g, stream));
    turn = (turn + 1) % (LOT_SIDES + 1);
  }
  return lot->n_groups > 1 ? sides_join(lot) : OK;
}

int lot_start(struct device *dev, struct cuda_lot *lot)
{
  const struct cuda_state *s = dev->state;
  struct lot_places at = places_of(&lot->size);
  if (lot->size.systems == 0) return OK;
  qsort(lot->entries, (size_t)lot->size.systems, sizeof *lot->entries, entry_compare);
  groups_make(lot);
  tables_make(lot);
  if (!lot->size.is_fetched) systems_pack(s, lot);
  gidx begin = host_begin(&lot->size);
  TRY_CU(cudaMemcpyAsync((char *)lot->device.at + begin, lot->host, (size_t)(at.found - begin),
                         cudaMemcpyHostToDevice, lot->stream));
  if (lot->size.is_fetched) TRY(systems_fetch(dev, lot));
  /* Long systems are marked by several blocks; between systems are numbers that none writes. */
  char *results = (char *)lot->device.at + at.found;
  TRY_CU(cudaMemsetAsync(results, 0, (size_t)(at.end - at.found), lot->stream));
  TRY(groups_launch(dev, lot));
  TRY_CU(cudaMemcpyAsync(host_at(lot, at.found), results, (size_t)(at.end - at.found),
                         cudaMemcpyDeviceToHost, lot->stream));
  cuda_count(&dev->counts.put, at.found);
  cuda_count(&dev->counts.got, at.end - at.found);
  return OK;
}

/* Steps and outcome of a system that is ok. */
static void system_unpack(struct arrow_item *item, const struct arrow_atom *atom,
                          const struct arrow_found *found, const real *steps)
{
  const struct arrow_system *a = &item->system;
  gidx rows = a->n * a->d;
  if (rows > 0) memcpy(item->step_t, steps + atom->out, (size_t)rows * sizeof *steps);
  if (a->k > 0) memcpy(item->step_b, steps + atom->out + rows, (size_t)a->k * sizeof *steps);
  item->outcome = (struct arrow_outcome){.status = ARROW_OK,
                                         .failed_at = -1,
                                         .ridge_t = atom->ridge_t,
                                         .ridge_b = atom->ridge_b,
                                         .addition = item->start.addition,
                                         .retries = item->start.retries,
                                         .pair = {found->m, found->e}};
  item->outcome.log_det = det_pair_value(item->outcome.pair);
}

int lot_finish(struct device *dev, struct cuda_lot *lot, gidx *failed, gidx *count)
{
  const struct cuda_state *s = dev->state;
  if (!lot->job) return OK;
  struct arrow_job *job = lot->job;
  struct lot_places at = places_of(&lot->size);
  const struct arrow_atom *atoms = host_at(lot, at.atoms);
  const struct arrow_found *found = host_at(lot, at.found);
  const real *steps = host_at(lot, at.out);
  lot->job = NULL;
  TRY_CU(cudaStreamSynchronize(lot->stream));
#pragma omp parallel for num_threads(copiers_of(s)) schedule(dynamic, 16)
  for (gidx i = 0; i < lot->size.systems; i++)
    if (!found[i].not_ok)
      system_unpack(&job->items[lot->entries[i].item], &atoms[i], &found[i], steps);
  for (gidx i = 0; i < lot->size.systems; i++)
    if (found[i].not_ok) failed[(*count)++] = lot->entries[i].item;
  return OK;
}

int lot_measure(struct device *dev, struct cuda_lot *lot, double *seconds)
{
  cudaEvent_t begin, end;
  float milliseconds = 0;
  TRY_CU(cudaEventCreate(&begin));
  TRY_CU(cudaEventCreate(&end));
  TRY_CU(cudaEventRecord(begin, lot->stream));
  TRY(groups_launch(dev, lot));
  TRY_CU(cudaEventRecord(end, lot->stream));
  TRY_CU(cudaEventSynchronize(end));
  TRY_CU(cudaEventElapsedTime(&milliseconds, begin, end));
  TRY_CU(cudaEventDestroy(begin));
  TRY_CU(cudaEventDestroy(end));
  *seconds = 1e-3 * milliseconds;
  return OK;
}
