/* SPDX-License-Identifier: BSD-3-Clause
 * A class is one launch, or more if the sums of its atoms need too much memory.  Launches follow
 * each other on the stream, and the host waits only for the last one.  If ranks share the job, each
 * rank launches its own atoms of a large class; then ranks exchange the steps.  A *turn* is one
 * launch. */
#include "device/cuda/steps.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "device/cuda/load.h"
#include "device/cuda/normal.h"

_Static_assert(sizeof(struct step_result) == sizeof(struct step_found), "they are copied");
_Static_assert((int)ROW_BLOCK == 4096 && (int)LANE_COUNT == (int)STEP_LANES &&
                   (int)LANE_SEGMENT == (int)STEP_SEGMENT_ROWS,
               "the orders of sums are a part of the result");

static const gidx SUMS_BYTES = (gidx)128 << 20; /* about the bytes of sums over rows in a launch */

/* The arrays of a sweep, in `work` of the job. */
struct places {
  real *residual, *frames, *codes, *values, *tries, *sums;
  struct step_item *items;
  struct step_found *found;
  idx *turns; /* [k] the launch of each atom; -1: none */
  gidx *entry, *start;
  uint32_t *marks;
  idx *looking;   /* the atoms of device_steps_conflicts() */
  uint64_t *sets; /* the sets of these atoms */
  idx room;       /* the most items of a launch; an item is an atom */
  gidx bytes;
};

/* Lay out an array of `count` elements of `unit` bytes. */
static void *lay(struct places *l, char *at, gidx count, size_t unit)
{
  void *here = at + l->bytes;
  l->bytes += ceil_div(count * (gidx)unit, 256) * 256;
  return here;
}

/* The most words of the set of an atom. */
static gidx conflicts_words(const struct steps_job *job)
{
  return 2 * STEPS_LOOK_MOST / 64 + ceil_div(job->k, 64);
}

/* The items of a launch whose sums take about `bytes`; at least one. */
static idx room_of(const struct steps_job *job, gidx bytes)
{
  gidx item = 2 * (gidx)job->d * job->p * (gidx)sizeof(real);
  return (idx)imin(imax(bytes / item, 1), job->k);
}

static struct places offsets_of(const struct steps_job *job, void *at)
{
  gidx n = job->n, entries = n * job->s, frame = (gidx)job->d * job->p;
  struct places l = {0};
  l.room = room_of(job, SUMS_BYTES);
  l.residual = lay(&l, at, n * job->p, sizeof *l.residual);
  l.frames = lay(&l, at, job->k * frame, sizeof *l.frames);
  l.codes = lay(&l, at, entries * job->d, sizeof *l.codes);
  l.values = lay(&l, at, n * step_values(job->d, job->directions), sizeof *l.values);
  l.tries = lay(&l, at, 2 * n * (1 + job->d), sizeof *l.tries);
  l.sums = lay(&l, at, 2 * l.room * frame, sizeof *l.sums);
  l.items = lay(&l, at, job->k, sizeof *l.items);
  l.found = lay(&l, at, job->k, sizeof *l.found);
  l.turns = lay(&l, at, job->k, sizeof *l.turns);
  l.entry = lay(&l, at, entries, sizeof *l.entry);
  if (job->k > STEPS_LOOK_ATOMS) return l;
  l.start = lay(&l, at, (gidx)job->k + 1, sizeof *l.start);
  l.marks = lay(&l, at, job->k, sizeof *l.marks);
  l.looking = lay(&l, at, STEPS_LOOK_MOST, sizeof *l.looking);
  l.sets = lay(&l, at, STEPS_LOOK_MOST * conflicts_words(job), sizeof *l.sets);
  return l;
}

gidx cuda_steps_bytes(const struct device *dev, const struct steps_job *job)
{
  enum { SHARED = 227 << 10, LEAST_ROWS = 8 }; /* SHARED: of the GPU that a dry device stands for */
  const struct cuda_state *s = dev->state;
  int rows = step_capacity(job->d, job->directions, job->p, s ? s->shared : SHARED);
  return rows < LEAST_ROWS ? 0 : offsets_of(job, NULL).bytes;
}

/* One launch of a sweep: items first .. first + count - 1, of which this rank has own_count from
 * own_first on, in clusters of `cluster` blocks.  message: bytes that each rank sends to all
 * others; 0: ranks do not share the launch. */
struct turn {
  idx first, count, own_first, own_count, cluster;
  int named, held; /* rows of a block, as in struct step_args */
  gidx message;
};

struct sweep {
  const struct steps_job *job;
  struct device *dev;
  struct places at;
  struct arena arena;
  struct step_item *items; /* [k] */
  struct turn *turns;      /* [k] at most */
  idx *step_launch_of;     /* [k] index in turns of each atom's launch; -1: none */
  idx n_items, n_step_launches;
  int capacity;                         /* rows of a block that fit in shared memory */
  idx largest;                          /* blocks of the largest cluster */
  gidx class_rows;                      /* the most rows of a class */
  int group_shift, group_first, groups; /* as in struct step_args */
};

static gidx rows_of(const struct steps_job *job, idx atom)
{
  return job->start[atom + 1] - job->start[atom];
}

static struct cuda_launch launch_of(const struct sweep *w, const struct turn *turn)
{
  const struct steps_job *job = w->job;
  const struct cuda_state *s = w->dev->state;
  return (struct cuda_launch){
      .name = KERNEL_STEP,
      .shape = {.d = job->d},
      .grid = {(unsigned)(turn->own_count * turn->cluster), 1, 1},
      .block = {STEP_THREADS, 1, 1},
      .cluster = turn->cluster,
      .is_early = s->architecture >= 90,
      .shared = step_shared_bytes(job->d, job->directions, job->p, turn->named, turn->held)};
}

/* Find the largest cluster.  Not every GPU has room for one of STEP_CLUSTER blocks. */
static int cluster_find(struct sweep *w)
{
  const struct cuda_state *s = w->dev->state;
  int clusters = 0;
  w->largest = 1;
  if (s->architecture < 90) return OK;
  struct turn turn = {
      .own_count = 1, .cluster = STEP_CLUSTER, .named = w->capacity, .held = w->capacity};
  struct cuda_launch l = launch_of(w, &turn);
  TRY(cuda_clusters(w->dev, &l, &clusters));
  w->largest = clusters > 0 ? STEP_CLUSTER : STEP_CLUSTER / 2;
  return OK;
}

/* Blocks of a cluster for an atom with `rows` rows, in a launch of `count` atoms: enough for its
 * rows; more, up to 8, if the GPU has a multiprocessor for each block. */
static idx cluster_of(const struct sweep *w, gidx rows, idx count)
{
  enum { PORTABLE = 8 };
  const struct cuda_state *s = w->dev->state;
  idx cluster = 1;
  while (cluster < w->largest &&
         ((gidx)cluster * w->capacity < rows ||
          (cluster < PORTABLE && 2 * (gidx)cluster * count <= s->sizes.multiprocessors)))
    cluster *= 2;
  return cluster;
}

/* The sum blocks of the job's rows, in groups of 2^group_shift blocks. */
static void groups_plan(struct sweep *w)
{
  const struct steps_job *job = w->job;
  gidx first = job->row / ROW_BLOCK, last = (job->row + job->n - 1) / ROW_BLOCK;
  w->group_shift = step_group_shift(first, last);
  w->group_first = (int)(first >> w->group_shift);
  w->groups = (int)(last >> w->group_shift) - w->group_first + 1;
}

/* Choose how many rows the blocks of a turn name and hold (kernels/step_types.h).  `own` is the
 * number of rows of a block if they are shared evenly; a block may have some more.  If all rows of
 * a block fit, nothing need be chosen.  Otherwise a block names all its rows, and holds as many as
 * then fit in shared memory.  If too few fit, or if there are too many sum blocks (step_here.h), it
 * takes its rows in parts. */
static void rows_plan(const struct sweep *w, struct turn *turn, gidx own)
{
  const struct steps_job *job = w->job;
  const struct cuda_state *s = w->dev->state;
  turn->named = turn->held = w->capacity;
  if (own <= w->capacity || own > s->shared) return; /* a row takes more than a byte */
  if (!step_in_sight(job->d, job->directions, job->p, w->groups, w->group_shift, turn->cluster))
    return;
  int named = (int)(own + own / 8), held;
  held = step_resident(job->d, job->directions, job->p, s->shared, named);
  if (2 * held < w->capacity) return;
  turn->named = named;
  turn->held = held;
}

/* Reals in the message of rank `rank`, which takes atoms rank, rank + size and so on. */
static gidx exchange_reals(const struct sweep *w, const idx *atoms, idx count, int rank, int size)
{
  const struct steps_job *job = w->job;
  gidx reals = 0;
  for (idx j = rank; j < count; j += size)
    reals += step_record(job->d, job->p, rows_of(job, atoms[j]));
  return reals;
}

/* Bytes of each rank's message if ranks share these atoms; 0: they do not share them.  The messages
 * may not fit in the buffer.  Or one GPU can take all the atoms at a time, by their rows and by
 * their number; this is faster than an exchange.  All ranks must
 * give the same answer, so the sizes are those of an H100, whatever the GPU is. */
static gidx exchange_bytes(const struct sweep *w, const idx *atoms, idx count)
{
  enum { MULTIPROCESSORS = 132 };
  static const gidx HELD = (gidx)28 << 20;
  const struct steps_peers *share = w->job->share;
  gidx rows = 0, most = 0;
  if (!share || share->size < 2 || count < 2) return 0;
  for (idx j = 0; j < count; j++) rows += rows_of(w->job, atoms[j]);
  if (count <= MULTIPROCESSORS && rows * w->job->p * (gidx)sizeof(real) <= HELD) return 0;
  for (int r = 0; r < share->size; r++)
    most = imax(most, exchange_reals(w, atoms, count, r, share->size));
  gidx bytes = most * (gidx)sizeof(real);
  return bytes * share->size <= share->messages->bytes ? bytes : 0;
}

/* Plan a launch of these atoms, ordered by the rank that makes their steps.  *rows: rows of the
 * class so far. */
static void step_launch_plan(struct sweep *w, const idx *atoms, idx count, gidx *rows)
{
  const struct steps_job *job = w->job;
  struct turn *turn = &w->turns[w->n_step_launches++];
  gidx longest = 0, message = exchange_bytes(w, atoms, count);
  int size = message ? job->share->size : 1, rank = message ? job->share->rank : 0;
  *turn = (struct turn){.first = w->n_items, .count = count, .message = message};
  for (int r = 0; r < size; r++) {
    gidx record = r * message / (gidx)sizeof(real);
    if (r == rank) turn->own_first = w->n_items;
    for (idx j = r; j < count; j += size) {
      idx atom = atoms[j];
      gidx n = rows_of(job, atom);
      if (r == rank) longest = imax(longest, n);
      turn->own_count += r == rank;
      w->step_launch_of[atom] = w->n_step_launches - 1;
      w->items[w->n_items++] = (struct step_item){.first = job->start[atom],
                                                  .atom = atom,
                                                  .n = (int)n,
                                                  .at = (int)*rows,
                                                  .record = (int)record};
      record += step_record(job->d, job->p, n);
      *rows += n;
    }
  }
  turn->cluster = cluster_of(w, longest, turn->own_count);
  rows_plan(w, turn, ceil_div(longest, turn->cluster));
}

/* Plan the launches of a class.  If ranks share the job, launches are half as large, so that their
 * frames and codes fit in messages. */
static void class_plan(struct sweep *w, const idx *atoms, gidx count)
{
  gidx rows = 0, most = w->job->share ? room_of(w->job, SUMS_BYTES / 2) : w->at.room;
  for (gidx i = 0; i < count; i += most)
    step_launch_plan(w, atoms + i, (idx)imin(count - i, most), &rows);
  w->class_rows = imax(w->class_rows, rows);
}

static int sweep_plan(struct sweep *w)
{
  const struct steps_job *job = w->job;
  const struct classes *c = job->classes;
  TRY(cluster_find(w));
  TRY(arena_alloc(&w->arena, &w->items, job->k, sizeof *w->items));
  TRY(arena_alloc(&w->arena, &w->turns, job->k, sizeof *w->turns));
  TRY(arena_alloc(&w->arena, &w->step_launch_of, job->k, sizeof *w->step_launch_of));
  for (idx a = 0; a < job->k; a++) w->step_launch_of[a] = -1;
  for (idx color = 0; color < c->count; color++)
    class_plan(w, c->atoms + c->start[color], c->start[color + 1] - c->start[color]);
  CHECK(w->class_rows <= job->n, ERR_INTERNAL, "the atoms of a class share rows");
  return OK;
}

static int copy_in(const struct sweep *w, void *to, const void *from, gidx count, size_t unit)
{
  const struct cuda_state *s = w->dev->state;
  size_t bytes = (size_t)count * unit;
  TRY_CU(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, s->stream));
  cuda_count(&w->dev->counts.put, (gidx)bytes);
  return OK;
}

/* Copy the input of a sweep to the device, and make residuals. */
static int sweep_begin(const struct sweep *w)
{
  const struct steps_job *job = w->job;
  const struct places *at = &w->at;
  struct residual_args a = {.x = job->x->device,
                            .slots = job->slots->device,
                            .rounded = job->codes->device,
                            .frames = at->frames,
                            .codes = at->codes,
                            .residual = at->residual,
                            .n = job->n,
                            .s = job->s,
                            .d = job->d,
                            .p = job->p};
  struct cuda_launch l = {.name = KERNEL_RESIDUAL,
                          .grid = {(unsigned)imin(imax(job->n, 1), 1 << 16), 1, 1},
                          .block = {RESIDUAL_THREADS, 1, 1},
                          .arguments = &a};
  const struct cuda_state *s = w->dev->state;
  TRY(copy_in(w, at->frames, job->frames, (gidx)job->k * job->d * job->p, sizeof(real)));
  TRY(cuda_launch(w->dev, &l));
  if (!job->has_entry)
    TRY(copy_in(w, at->entry, job->entry, (gidx)job->n * job->s, sizeof *at->entry));
  TRY(copy_in(w, at->items, w->items, w->n_items, sizeof *w->items));
  TRY(copy_in(w, at->turns, w->step_launch_of, job->k, sizeof *w->step_launch_of));
  TRY_CU(cudaMemsetAsync(at->found, 0, (size_t)job->k * sizeof *at->found, s->stream));
  return OK;
}

/* Make the steps of this rank's atoms. */
static int step_launch(const struct sweep *w, const struct turn *turn)
{
  const struct steps_job *job = w->job;
  const struct places *at = &w->at;
  struct step_args a = {.items = at->items + turn->own_first,
                        .entry = (const long long *)at->entry,
                        .slots = job->slots->device,
                        .turns = at->turns,
                        .turn = (int)(turn - w->turns),
                        .frames = at->frames,
                        .codes = at->codes,
                        .residual = at->residual,
                        .values = at->values,
                        .tries = at->tries,
                        .sums = at->sums,
                        .found = at->found,
                        .row = job->row,
                        .class_rows = w->class_rows,
                        .rho = job->rho,
                        .s = job->s,
                        .p = job->p,
                        .q = job->directions,
                        .nonnegative = job->nonnegative,
                        .named = turn->named,
                        .held = turn->held,
                        .group_shift = w->group_shift,
                        .group_first = w->group_first,
                        .groups = w->groups};
  struct cuda_launch l = launch_of(w, turn);
  l.arguments = &a;
  if (turn > w->turns && turn[-1].message) l.is_early = 0; /* the exchange changes what it reads */
  return turn->own_count ? cuda_launch(w->dev, &l) : OK;
}

/* Exchange the steps of a launch, and apply the steps of other ranks. */
static int step_launch_exchange(const struct sweep *w, const struct turn *turn)
{
  const struct steps_job *job = w->job;
  const struct steps_peers *share = job->share;
  gidx longest = 0;
  for (idx i = turn->first; i < turn->first + turn->count; i++)
    longest = imax(longest, w->items[i].n);
  struct record_args a = {.items = w->at.items + turn->own_first,
                          .entry = (const long long *)w->at.entry,
                          .messages = share->messages->device,
                          .frames = w->at.frames,
                          .codes = w->at.codes,
                          .residual = w->at.residual,
                          .found = w->at.found,
                          .skip = turn->own_count,
                          .is_writer = 1,
                          .d = job->d,
                          .p = job->p,
                          .s = job->s};
  struct cuda_launch record = {.name = KERNEL_STEP_RECORD,
                               .grid = {(unsigned)turn->own_count, 1, 1},
                               .block = {RECORD_THREADS, 1, 1},
                               .arguments = &a};
  if (turn->own_count) TRY(cuda_launch(w->dev, &record));
  TRY(share->exchange(share->self, turn->message));
  a.items = w->at.items + turn->first;
  a.skip = turn->own_first - turn->first;
  a.skipped = turn->own_count;
  a.is_writer = 0;
  record.grid.x = (unsigned)(turn->count - turn->own_count);
  struct cuda_launch follow = record;
  follow.name = KERNEL_STEP_FOLLOW;
  follow.shape = (struct kernel_shape){.d = job->d};
  follow.grid.y = (unsigned)imin(ceil_div(longest, FOLLOW_ROWS), 1 << 15);
  TRY(cuda_launch(w->dev, &follow));
  return cuda_launch(w->dev, &record);
}

static int copy_out(const struct sweep *w, void *to, const void *from, gidx count, size_t unit)
{
  const struct cuda_state *s = w->dev->state;
  size_t bytes = (size_t)count * unit;
  TRY_CU(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, s->stream));
  cuda_count(&w->dev->counts.got, (gidx)bytes);
  return OK;
}

static int sweep_run(struct sweep *w)
{
  const struct steps_job *job = w->job;
  TRY(sweep_plan(w));
  TRY(sweep_begin(w));
  for (idx i = 0; i < w->n_step_launches; i++) {
    TRY(step_launch(w, &w->turns[i]));
    if (w->turns[i].message) TRY(step_launch_exchange(w, &w->turns[i]));
  }
  TRY(copy_out(w, job->frames, w->at.frames, (gidx)job->k * job->d * job->p, sizeof(real)));
  return copy_out(w, job->results, w->at.found, job->k, sizeof *job->results);
}

int cuda_steps(struct device *dev, const struct steps_job *job)
{
  struct cuda_state *s = dev->state;
  struct sweep w = {.job = job, .dev = dev, .at = offsets_of(job, job->work->device)};
  CHECK(w.at.bytes <= job->work->bytes, ERR_INTERNAL, "%lld bytes to work in, %lld are needed",
        (long long)job->work->bytes, (long long)w.at.bytes);
  w.capacity = step_capacity(job->d, job->directions, job->p, s->shared);
  groups_plan(&w);
  int status = sweep_run(&w), end = cuda_finish(s);
  arena_free(&w.arena);
  return status ? status : end;
}

/* Lay out the sort of the entries, in the space of residuals and frames. */
static void index_lay(const struct places *at, struct normal_args *a)
{
  gidx room = ((const char *)at->codes - (const char *)at->residual) / (gidx)sizeof(int);
  gidx most = imax((room - a->k - 1) / a->k, 1);
  a->chunk_rows = (int)imax(normal_chunk_rows(a->n, a->k), ceil_div(a->n, most));
  a->chunks = (int)ceil_div(a->n, a->chunk_rows);
  a->counts = (int *)at->residual;
  a->start = a->counts + (gidx)a->chunks * a->k;
  a->numbers = (long long *)at->entry;
}

int cuda_steps_index(struct device *dev, const struct steps_job *job, gidx *start)
{
  struct sweep w = {.job = job, .dev = dev, .at = offsets_of(job, job->work->device)};
  struct normal_args a = {.slots = job->slots->device, .n = job->n, .s = job->s, .k = job->k};
  struct arena arena = {0};
  int *found;
  CHECK(w.at.bytes <= job->work->bytes, ERR_INTERNAL, "%lld bytes to work in, %lld are needed",
        (long long)job->work->bytes, (long long)w.at.bytes);
  index_lay(&w.at, &a);
  TRY(cuda_entries_index(dev, &a));
  TRY(arena_alloc(&arena, &found, (gidx)job->k + 1, sizeof *found));
  int status = copy_out(&w, found, a.start, (gidx)job->k + 1, sizeof *found);
  if (!status) status = cuda_finish(dev->state);
  for (gidx i = 0; i <= job->k && !status; i++) start[i] = found[i];
  arena_free(&arena);
  return status;
}

/* Copy job->start to the device, and the entries unless they are there. */
static int conflicts_begin(const struct sweep *w)
{
  const struct steps_job *job = w->job;
  TRY(copy_in(w, w->at.start, job->start, (gidx)job->k + 1, sizeof *job->start));
  if (job->has_entry) return OK;
  return copy_in(w, w->at.entry, job->entry, (gidx)job->n * job->s, sizeof *job->entry);
}

int cuda_steps_conflicts(struct device *dev, const struct steps_job *job,
                         const struct steps_conflicts *look)
{
  struct sweep w = {.job = job, .dev = dev, .at = offsets_of(job, job->work->device)};
  const struct places *at = &w.at;
  const struct cuda_state *s = dev->state;
  CHECK(job->k <= STEPS_LOOK_ATOMS && look->count <= STEPS_LOOK_MOST &&
            look->words <= conflicts_words(job),
        ERR_INTERNAL, "there are %d atoms, with sets of %lld words", look->count,
        (long long)look->words);
  struct color_conflicts_args a = {.atoms = at->looking,
                                   .marks = at->marks,
                                   .slots = job->slots->device,
                                   .start = (const long long *)at->start,
                                   .entry = (const long long *)at->entry,
                                   .sets = (unsigned *)at->sets,
                                   .s = job->s,
                                   .words = (int)(2 * look->words)};
  struct cuda_launch l = {.name = KERNEL_COLOR_CONFLICTS,
                          .grid = {(unsigned)look->count, 1, 1},
                          .block = {COLOR_CONFLICTS_THREADS, 1, 1},
                          .shared = (int)(look->words * (gidx)sizeof *look->sets),
                          .arguments = &a};
  if (look->begins) TRY(conflicts_begin(&w));
  TRY(copy_in(&w, at->marks, look->marks, job->k, sizeof *look->marks));
  TRY(copy_in(&w, at->looking, look->atoms, look->count, sizeof *look->atoms));
  TRY(cuda_launch(dev, &l));
  TRY(copy_out(&w, look->sets, at->sets, look->count * look->words, sizeof *look->sets));
  return cuda_finish((struct cuda_state *)s);
}

int cuda_steps_residual(struct device *dev, const struct steps_job *job, real *residual)
{
  struct sweep w = {.job = job, .dev = dev, .at = offsets_of(job, job->work->device)};
  TRY(copy_out(&w, residual, w.at.residual, (gidx)job->n * job->p, sizeof *residual));
  return cuda_finish(dev->state);
}
