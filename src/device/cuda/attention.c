/* SPDX-License-Identifier: BSD-3-Clause
 * A plan is divided into launches whose partial sums fit in memory.  A task is a tile of rows and a
 * shard of positions.  The tasks of a launch are sorted by work, the longest first.  Sequences with
 * few rows per head have a kernel of their own. */
#include "device/cuda/attention.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"

_Static_assert((int)WALK_BLOCK == (int)ATTENTION_BLOCK && (int)WALK_SHARD == (int)ATTENTION_SHARD &&
                   (int)WALK_CHAIN == (int)ATTENTION_CHAIN,
               "blocks, shards and chains are a part of the result");
_Static_assert((int)MAX_WALK_COLUMNS <= 2 * (int)WALK_CHAIN,
               "attention_tile and attribution have two chains");
_Static_assert((int)CELLS_F32 == (int)ATTEND_F32 && (int)CELLS_F16 == (int)ATTEND_F16 &&
                   (int)CELLS_BF16 == (int)ATTEND_BF16,
               "types of cells");

enum { MAX_FEW_FORMS = 4 };
/* Bytes of the partial sums ("parts") of a launch, unless a single query has more. */
#define PARTS_BYTES (INT64_C(1) << 29)

/* The tasks of one kernel in a launch; few: rows for which attention_few is compiled, or 0 for
 * attention_tile. */
struct range {
  int few;
  gidx first, count;
};

struct launch {
  gidx sequence, sequences; /* first sequence in the list of the plan; number of sequences */
  gidx parts;
  struct range ranges[MAX_FEW_FORMS + 1];
  int n_ranges;
};

struct attend_state {
  struct attention attention;
  enum attend_type type;
  int is_open;
  struct attention_args args; /* without the buffers of a job and the numbers of a launch */
  struct launch *launches;
  gidx n_launches, n_sequences, n_tasks, n_tiles, parts; /* tiles, parts: largest for a launch */
  struct softmax_sequence *sequences;                    /* for all launches, as are tasks */
  struct softmax_task *tasks;
  struct cuda_work table, sequence, task, done, part_m, part_l, part;
  struct cuda_work pairs; /* tasks of attribution */
  struct arena arena;
};

/* Query i of a sequence sees the positions *from .. *end - 1. */
static void seen(const struct attend_state *s, const struct softmax_sequence *q, gidx i, gidx *from,
                 gidx *end)
{
  attention_seen(&s->attention, q->at + i, q->n_kv, from, end);
}

/* Queries first .. last see only positions *from .. *end - 1; both bounds ascend with the query. */
static void seen_all(const struct attend_state *s, const struct softmax_sequence *q, gidx first,
                     gidx last, gidx *from, gidx *end)
{
  gidx upper, lower;
  seen(s, q, first, from, &upper);
  if (*from == upper) *from = 0;
  seen(s, q, last, &lower, end);
  *end = imax(*end, upper);
}

static idx group_of(const struct attend_state *s)
{
  return s->attention.heads / s->attention.kv_heads;
}

/* The rows for which attention_few is compiled; 0: the sequence has too many for it. */
static int few_of(const struct attend_state *s, const struct softmax_sequence *q)
{
  gidx rows = (gidx)q->n_q * group_of(s);
  return rows <= FEW_ROWS ? few_rows((int)rows) : 0;
}

static gidx tiles_of(const struct attend_state *s, const struct softmax_sequence *q)
{
  return few_of(s, q) ? 1 : ceil_div((gidx)q->n_q * group_of(s), TILE_ROWS);
}

/* The rows of a tile see only positions *from .. *end - 1.  *first, *count <- the shards of these;
 * one shard if they see nothing. */
static void tile_shards(const struct attend_state *s, const struct softmax_sequence *q, gidx tile,
                        gidx *from, gidx *end, gidx *first, gidx *count)
{
  gidx group = group_of(s), rows = (gidx)q->n_q * group, row = tile * TILE_ROWS;
  gidx last = few_of(s, q) ? rows - 1 : imin(row + TILE_ROWS, rows) - 1;
  seen_all(s, q, row / group, last / group, from, end);
  *first = *from < *end ? *from / WALK_SHARD : q->first_shard;
  *count = *from < *end ? ceil_div(*end, WALK_SHARD) - *first : 1;
}

/* A task and its length. */
struct ranked {
  struct softmax_task task;
  int few;
  int blocks;
};

/* By kernel, then the longest first. */
static int ranked_order(const void *a, const void *b)
{
  const struct ranked *x = a, *y = b;
  if (x->few != y->few) return x->few < y->few ? -1 : 1;
  return x->blocks != y->blocks ? (x->blocks > y->blocks ? -1 : 1)
         : x->task.tile != y->task.tile
             ? (x->task.tile < y->task.tile ? -1 : 1)
             : (x->task.shard > y->task.shard) - (x->task.shard < y->task.shard);
}

/* List the tasks of a sequence, or count them if out is NULL; *tile grows by its tiles. */
static gidx tasks_list(const struct attend_state *s, gidx number, gidx *tile, struct ranked *out)
{
  const struct softmax_sequence *q = &s->sequences[number];
  gidx n = 0, from, end, first, count;
  for (gidx t = 0; t < tiles_of(s, q); t++) {
    tile_shards(s, q, t, &from, &end, &first, &count);
    for (idx h = 0; h < s->attention.kv_heads; h++, ++*tile)
      for (gidx i = first; i < first + count; i++, n++) {
        if (!out) continue;
        gidx begin = imax(from, i * WALK_SHARD), stop = imin(end, (i + 1) * WALK_SHARD);
        out[n] = (struct ranked){.task = {.kv_head = h,
                                          .row = (int)(t * TILE_ROWS),
                                          .shard = (int)i,
                                          .tile = (int)*tile,
                                          .tasks = (int)count},
                                 .few = few_of(s, q),
                                 .blocks = (int)ceil_div(imax(stop - begin, 0), WALK_BLOCK)};
      }
  }
  return n;
}

/* Queries first .. first + n - 1 of sequence i of a plan.  *parts grows by their number of partial
 * sums. */
static struct softmax_sequence sequence_make(const struct attend_state *s,
                                             const struct attend_plan *p, gidx i, gidx first,
                                             gidx n, gidx *parts)
{
  gidx from, end;
  struct softmax_sequence q = {.q = p->start[i] + first,
                               .cells = p->table ? i * p->width : p->cell[i],
                               .part = *parts,
                               .n_q = (int)n,
                               .n_kv = (int)p->length[i],
                               .at = (int)(p->at[i] + first),
                               .goes_on = p->goes_on ? p->goes_on[i] : 0,
                               .first = p->first ? p->first[i] : 0};
  seen_all(s, &q, 0, n - 1, &from, &end);
  q.first_shard = (int)(from / WALK_SHARD);
  q.shards = (int)imax(ceil_div(end, WALK_SHARD) - q.first_shard, 1);
  *parts += n * s->attention.heads * q.shards;
  return q;
}

/* Bytes of one partial sum. */
static gidx part_bytes(const struct attend_state *s)
{
  return 4 * (gidx)(part_columns(s->attention.dv) + 2);
}

/* How many queries of a sequence fit in a launch that already has `parts` partial sums; 0: none. */
static gidx queries_fit(const struct attend_state *s, const struct attend_plan *p, gidx i,
                        gidx first, gidx parts)
{
  gidx left = p->start[i + 1] - p->start[i] - first, room = PARTS_BYTES / part_bytes(s) - parts;
  gidx query = s->attention.heads * imax(ceil_div(p->length[i], WALK_SHARD), 1);
  gidx n = imin(imin(left, imax(room, 0) / query), INT32_MAX / s->attention.heads);
  if (n == left) return n;
  gidx tile = imax(TILE_ROWS / group_of(s), 1); /* do not divide a tile without need */
  return n >= tile ? n / tile * tile : parts ? 0 : imax(n, 1);
}

/* Divide sequences into launches.  While the arrays of s are NULL, only count what they will
 * hold. */
static void launches_make(struct attend_state *s, const struct attend_plan *p)
{
  struct launch now = {0};
  gidx sequences = 0, launches = 0;
  s->parts = 0;
  for (gidx i = 0; i < p->sequences; i++)
    for (gidx first = 0, n; first < p->start[i + 1] - p->start[i]; first += n) {
      n = queries_fit(s, p, i, first, now.parts);
      if (n == 0) {
        if (s->launches) s->launches[launches] = now;
        launches++;
        now = (struct launch){.sequence = sequences};
        n = queries_fit(s, p, i, first, 0);
      }
      struct softmax_sequence q = sequence_make(s, p, i, first, n, &now.parts);
      if (s->sequences) s->sequences[sequences] = q;
      sequences++;
      now.sequences++;
      s->parts = imax(s->parts, now.parts);
    }
  if (now.sequences && s->launches) s->launches[launches] = now;
  s->n_launches = launches + (now.sequences > 0);
  s->n_sequences = sequences;
}

/* s->tasks from index `at` on <- the sorted tasks of a launch; *tiles <- its number of tiles. */
static void launch_rank(struct attend_state *s, struct launch *l, gidx at, gidx *tiles,
                        struct ranked *ranked)
{
  gidx n = 0;
  *tiles = 0;
  for (gidx i = 0; i < l->sequences; i++) {
    gidx before = n;
    n += tasks_list(s, l->sequence + i, tiles, ranked + n);
    for (; before < n; before++) ranked[before].task.sequence = (int)i;
  }
  qsort(ranked, (size_t)n, sizeof *ranked, ranked_order);
  for (gidx i = 0; i < n; i++) {
    if (i == 0 || ranked[i].few != ranked[i - 1].few)
      l->ranges[l->n_ranges++] = (struct range){ranked[i].few, at + i, 0};
    l->ranges[l->n_ranges - 1].count++;
    s->tasks[at + i] = ranked[i].task;
  }
}

static int tasks_make(struct attend_state *s)
{
  gidx most = 0, at = 0;
  for (gidx l = 0; l < s->n_launches; l++) {
    gidx n = 0, tiles = 0;
    for (gidx i = 0; i < s->launches[l].sequences; i++)
      n += tasks_list(s, s->launches[l].sequence + i, &tiles, NULL);
    most = imax(most, n);
    s->n_tasks += n;
    s->n_tiles = imax(s->n_tiles, tiles);
  }
  CHECK(most <= INT32_MAX, ERR_MEMORY, "%lld tasks in a launch", (long long)most);
  struct ranked *ranked = malloc((size_t)(most + 1) * sizeof *ranked);
  int status = ranked ? arena_alloc(&s->arena, &s->tasks, s->n_tasks, sizeof *s->tasks)
                      : status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate %lld tasks",
                                    (long long)most);
  for (gidx l = 0; l < s->n_launches && !status; l++) {
    gidx tiles;
    launch_rank(s, &s->launches[l], at, &tiles, ranked);
    for (int r = 0; r < s->launches[l].n_ranges; r++) at += s->launches[l].ranges[r].count;
  }
  free(ranked);
  return status;
}

static int put(struct cuda_state *c, struct cuda_work *to, const void *from, gidx bytes)
{
  TRY(cuda_reserve(c, to, imax(bytes, 1)));
  if (bytes)
    TRY_CU(cudaMemcpyAsync(to->at, from, (size_t)bytes, cudaMemcpyHostToDevice, c->stream));
  return OK;
}

static int tables_put(struct attend_state *s, struct cuda_state *c, const struct attend_plan *p)
{
  gidx entries = p->table ? (gidx)p->sequences * p->width : 0;
  gidx done = imax(s->n_tiles, 1) * (gidx)sizeof(int), parts = imax(s->parts, 1);
  TRY(put(c, &s->table, p->table, entries * (gidx)sizeof *p->table));
  TRY(put(c, &s->sequence, s->sequences, s->n_sequences * (gidx)sizeof *s->sequences));
  TRY(put(c, &s->task, s->tasks, s->n_tasks * (gidx)sizeof *s->tasks));
  TRY(cuda_reserve(c, &s->done, done));
  TRY_CU(cudaMemsetAsync(s->done.at, 0, (size_t)done, c->stream));
  TRY(cuda_reserve(c, &s->part_m, parts * (gidx)sizeof(float)));
  TRY(cuda_reserve(c, &s->part_l, parts * (gidx)sizeof(float)));
  TRY(cuda_reserve(c, &s->part, parts * part_columns(p->attention->dv) * (gidx)sizeof(float)));
  return cuda_finish(c);
}

/* The attention window as an int; 0: no window, or one so large that it limits nothing. */
static int window_of(const struct attend_plan *p)
{
  gidx most = 0;
  for (gidx i = 0; i < p->sequences; i++)
    most = imax(most, imax(p->at[i] + p->start[i + 1] - p->start[i], p->length[i] - p->at[i]));
  return p->attention->window > most ? 0 : (int)p->attention->window;
}

/* For divisions of positions up to ATTEND_POSITIONS by `size`: sets *magic and returns the
 * shift. */
static int table_divisor(int size, unsigned *magic)
{
  int shift = 0;
  while (size >> (shift + 1)) shift++;
  *magic = (unsigned)(((UINT64_C(1) << (31 + shift)) + (uint64_t)size - 1) / (uint64_t)size);
  return shift;
}

static struct attention_args args_make(const struct attend_state *s, const struct attend_plan *p)
{
  const struct attention *a = &s->attention;
  struct attention_factors factors = attention_factors(a);
  struct attention_args args = {.table = p->table ? s->table.at : NULL,
                                .done = s->done.at,
                                .part_m = s->part_m.at,
                                .part_l = s->part_l.at,
                                .part = s->part.at,
                                .heads = a->heads,
                                .kv_heads = a->kv_heads,
                                .group = group_of(s),
                                .size = p->table ? p->size : 1,
                                .causal = a->causal,
                                .window = window_of(p),
                                .inner = factors.inner,
                                .exponent = factors.exponent};
  args.shift = table_divisor(args.size, &args.magic);
  return args;
}

/* ERR_DEVICE unless a block of either kernel fits in shared memory. */
static int shared_check(const struct cuda_state *c, const struct attend_plan *p)
{
  const struct attention *a = p->attention;
  gidx tile = tile_shared_bytes(a->d);
  gidx bytes = imax(tile, few_shared_bytes(a->d, a->dv, (int)p->type, FEW_ROWS, 1));
  CHECK(bytes <= c->shared, ERR_DEVICE,
        "heads of %d and %d columns take %lld bytes of shared memory, of which %s has %d: use "
        "--device cpu",
        a->d, a->dv, (long long)bytes, c->name, c->shared);
  return OK;
}

int cuda_attend_open(struct attend *w, const struct attend_plan *p)
{
  struct cuda_state *c = w->device->state;
  struct attend_state *s;
  TRY_CU(cudaSetDevice(c->number)); /* CUDA's setting is per thread, and any thread may call this */
  TRY(shared_check(c, p));
  TRY(struct_alloc(&s, sizeof *s));
  w->state = s;
  s->attention = *p->attention;
  s->type = p->type;
  s->is_open = w->is_open;
  launches_make(s, p);
  TRY(arena_alloc(&s->arena, &s->sequences, s->n_sequences, sizeof *s->sequences));
  TRY(arena_alloc(&s->arena, &s->launches, s->n_launches, sizeof *s->launches));
  launches_make(s, p);
  TRY(tasks_make(s));
  TRY(tables_put(s, c, p));
  s->args = args_make(s, p);
  return OK;
}

void cuda_attend_close(struct attend *w)
{
  struct attend_state *s = w->state;
  struct cuda_work *const works[] = {&s->table,  &s->sequence, &s->task, &s->done,
                                     &s->part_m, &s->part_l,   &s->part, &s->pairs};
  for (int i = 0; i < LENGTH(works); i++) cuda_release(works[i]);
  arena_free(&s->arena);
  free(s);
}

/* A measure of the time that `count` blocks take: with `blocks` of them on a multiprocessor at a
 * time, the number of rounds times `blocks`. */
static gidx rounds_length(const struct cuda_state *c, gidx count, gidx blocks)
{
  return ceil_div(count, blocks * c->sizes.multiprocessors) * blocks;
}

/* The form of attention_few: its stages (buffers for copies in progress), and the shared memory of
 * a block. */
struct few_form {
  int stages, shared;
};

/* If the last round of blocks would be nearly empty, a block is given more shared memory than it
 * needs.  A multiprocessor then takes one block less, and the rounds are full.  If tasks are few,
 * blocks have more stages, because no other block computes while one waits for its copies. */
static struct few_form few_form_of(const struct cuda_state *c, const struct attend_state *s,
                                   const struct range *r)
{
  const struct attention *a = &s->attention;
  enum { OWN = 1024 /* bytes that the GPU adds to a block */, UNIT = 128 };
  struct few_form form = {1, few_shared_bytes(a->d, a->dv, (int)s->type, r->few, 1)};
  int most = (int)imin(c->shared_all / (form.shared + OWN), few_blocks(a->dv, r->few, 1)),
      least = 0;
  if (most >= 3 && rounds_length(c, r->count, most) > rounds_length(c, r->count, most - 1))
    least = c->shared_all / most-- / UNIT * UNIT;
  gidx blocks = imin(ceil_div(r->count, c->sizes.multiprocessors), most);
  for (int stages = 2; stages <= FEW_STAGES; stages *= 2) {
    int bytes = few_shared_bytes(a->d, a->dv, (int)s->type, r->few, stages);
    if (blocks <= few_blocks(a->dv, r->few, stages) && bytes <= c->shared &&
        blocks * (bytes + OWN) <= c->shared_all)
      form = (struct few_form){stages, bytes};
  }
  if (form.shared < least) form.shared = least;
  return form;
}

static int range_run(struct device *dev, const struct attend_state *s, const struct range *r,
                     struct attention_args *args)
{
  const struct attention *a = &s->attention;
  const struct cuda_state *c = dev->state;
  struct few_form few = {0, 0};
  if (r->few) few = few_form_of(c, s, r);
  struct cuda_launch launch = {.name = r->few ? KERNEL_ATTENTION_FEW : KERNEL_ATTENTION_TILE,
                               .shape = {.top_k = 1,
                                         .head_d = a->d,
                                         .head_dv = a->dv,
                                         .cells = (int)s->type,
                                         .capped = a->softcap > 0,
                                         .few = r->few,
                                         .few_stages = few.stages,
                                         .sums = s->is_open    ? SUMS_OPEN
                                                 : args->sum_m ? SUMS_KEPT
                                                               : SUMS_NONE},
                               .grid = {(unsigned)r->count, 1, 1},
                               .block = {WALK_THREADS, 1, 1},
                               .shared = r->few ? few.shared : tile_shared_bytes(a->d),
                               .is_dense = 1,
                               .is_early = r->few && c->architecture >= 90,
                               .arguments = args};
  args->tasks = (const struct softmax_task *)s->task.at + r->first;
  return cuda_launch(dev, &launch);
}

int cuda_attend_run(struct attend *w, const struct attend_job *job)
{
  const struct attend_state *s = w->state;
  const struct cuda_state *c = w->device->state;
  struct attention_args args = s->args;
  TRY_CU(cudaSetDevice(c->number));
  args.q = job->q->device;
  args.k = job->k->device;
  args.v = job->v->device;
  args.out = job->rows->device;
  args.lse = job->lse ? job->lse->device : NULL;
  args.sum_m = job->m ? job->m->device : NULL;
  args.sum_l = job->l ? job->l->device : NULL;
  for (gidx l = 0; l < s->n_launches; l++) {
    const struct launch *launch = &s->launches[l];
    args.sequences = (const struct softmax_sequence *)s->sequence.at + launch->sequence;
    for (int r = 0; r < launch->n_ranges; r++)
      TRY(range_run(w->device, s, &launch->ranges[r], &args));
  }
  return OK;
}

/* One task for each run of pairs of a query.  The last query of a sequence comes first: it sees
 * most. */
static gidx pairs_list(const struct attend_state *s, const struct attribute_job *job,
                       struct attribution_task *out)
{
  gidx n = 0;
  for (gidx i = s->n_sequences - 1; i >= 0; i--)
    for (int query = s->sequences[i].n_q - 1; query >= 0; query--) {
      gidx first = job->start[s->sequences[i].q + query], end = job->end[s->sequences[i].q + query];
      for (; first < end; first += ATTRIBUTION_PAIRS, n++)
        if (out)
          out[n] = (struct attribution_task){.first = first,
                                             .sequence = (int)i,
                                             .query = query,
                                             .pairs = (int)imin(end - first, ATTRIBUTION_PAIRS)};
    }
  return n;
}

static int pairs_put(struct attend_state *s, struct cuda_state *c, const struct attribute_job *job,
                     gidx n)
{
  struct attribution_task *tasks = malloc((size_t)n * sizeof *tasks);
  CHECK(tasks, ERR_MEMORY, "cannot allocate %lld tasks", (long long)n);
  pairs_list(s, job, tasks);
  int status = put(c, &s->pairs, tasks, n * (gidx)sizeof *tasks);
  if (!status) status = cuda_finish(c);
  free(tasks);
  return status;
}

int cuda_attend_attribute(struct attend *w, const struct attribute_job *job)
{
  struct attend_state *s = w->state;
  struct cuda_state *c = w->device->state;
  const struct attention *a = &s->attention;
  gidx n = pairs_list(s, job, NULL);
  int shared = attribution_shared_bytes(a->d, a->dv);
  CHECK(shared <= c->shared, ERR_DEVICE,
        "attribution with heads of %d and %d columns takes %d bytes of shared memory, of which %s "
        "has %d",
        a->d, a->dv, shared, c->name, c->shared);
  CHECK(n <= INT32_MAX, ERR_MEMORY, "%lld tasks in a launch", (long long)n);
  if (!n) return OK;
  TRY_CU(cudaSetDevice(c->number));
  TRY(pairs_put(s, c, job, n));
  struct attribution_args args = {.walk = s->args,
                                  .m = job->m->device,
                                  .l = job->l->device,
                                  .atoms = job->atoms->device,
                                  .tasks = s->pairs.at,
                                  .atom_of = job->atom_of->device,
                                  .top = job->top,
                                  .row = job->row->device,
                                  .code = job->code->device,
                                  .sum = job->sum ? job->sum->device : NULL,
                                  .part = job->part ? job->part->device : NULL};
  args.walk.q = job->q->device;
  args.walk.k = job->k->device;
  args.walk.v = job->v->device;
  args.walk.sequences = s->sequence.at;
  struct cuda_launch launch = {.name = KERNEL_ATTRIBUTION,
                               .shape = {.top_k = 1,
                                         .head_d = a->d,
                                         .head_dv = a->dv,
                                         .cells = (int)s->type,
                                         .capped = a->softcap > 0},
                               .grid = {(unsigned)n, 1, 1},
                               .block = {ATTRIBUTION_THREADS, 1, 1},
                               .shared = shared,
                               .arguments = &args};
  return cuda_launch(w->device, &launch);
}
