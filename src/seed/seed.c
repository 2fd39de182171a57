/* SPDX-License-Identifier: BSD-3-Clause
 * A block of drawn rows is sorted by row number.  So neighbours in the file, and rows that are
 * stored together, are read together.  Ranks read shares of the block, each with its spare threads
 * (base/team.h).  Rank 0 gathers the block, and accepts or skips rows one by one in drawn order. */
#include "seed/seed.h"

#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "model/access.h"
#include "model/dictionary.h"
#include "seed/draw.h"

enum { BLOCK_BYTES = 64 << 20, MAX_BLOCK = 1 << 16, MIN_BLOCK = 64 };
enum { NEAR_BYTES = 2 << 20 }; /* the most bytes of rows that are read together */

/* A drawn row and its position in the drawn order of the block. */
struct place {
  gidx row;
  idx at;
};

struct seeding {
  const struct seed_task *task;
  struct comm *c;
  struct seed_result *result;
  struct arena arena;
  struct worker worker;
  struct draw draw;
  gidx used;                             /* rows of the draw's window that were handled */
  idx p, d, block;                       /* block: rows handled at a time */
  struct place *order;                   /* [block] ascending rows */
  float *mine;                           /* [this rank's share][p] */
  idx *counts;                           /* [size] */
  gidx partition_first, partition_count; /* this rank's share of the order */
  idx *groups;   /* [share + 1] where each group of rows that are read together begins */
  int *statuses; /* [share] status of each group */
  gidx state[2]; /* the same on all ranks: atoms finished, vectors of the frame in progress */
  /* rank 0 */
  float *x;       /* [block][p] the rows of the block, by ascending row number */
  idx *sorted;    /* [block] position in x of the row drawn i-th */
  float *raw;     /* [d][p] rows of the frame in progress */
  real *basis;    /* [d][p] */
  float *atoms;   /* [block / d + 1][d][p] finished, not yet written */
  gidx written;   /* atoms that were written */
  uint64_t *seen; /* [mask + 1] hash table, open addressing: identities of accepted rows; 0 is
                   * free */
  uint64_t mask;
};

/* Allocate the arrays that only rank 0 has. */
static int root_alloc(struct seeding *s)
{
  gidx frame = (gidx)s->d * s->p;
  TRY(arena_alloc(&s->arena, &s->x, (gidx)s->block * s->p, sizeof *s->x));
  TRY(arena_alloc(&s->arena, &s->sorted, s->block, sizeof *s->sorted));
  TRY(arena_alloc(&s->arena, &s->raw, frame, sizeof *s->raw));
  TRY(arena_alloc(&s->arena, &s->basis, frame, sizeof *s->basis));
  TRY(arena_alloc(&s->arena, &s->atoms, (s->block / s->d + 1) * frame, sizeof *s->atoms));
  s->mask = 1;
  while (s->mask < 2 * (uint64_t)s->task->k * (uint64_t)s->d) s->mask *= 2;
  TRY(arena_alloc(&s->arena, &s->seen, (gidx)s->mask, sizeof *s->seen));
  s->mask--;
  return OK;
}

static int seeding_alloc(struct seeding *s)
{
  gidx fit = BLOCK_BYTES / ((gidx)s->p * (gidx)sizeof *s->x);
  gidx need = imin((gidx)s->task->k * s->d, MAX_BLOCK);
  s->block = (idx)imin(imax(need, MIN_BLOCK), imax(fit, 1));
  gidx first, share;
  comm_partition(s->block, s->c->size, 0, &first, &share);
  TRY(arena_alloc(&s->arena, &s->order, s->block, sizeof *s->order));
  TRY(arena_alloc(&s->arena, &s->counts, s->c->size, sizeof *s->counts));
  TRY(arena_alloc(&s->arena, &s->mine, share * s->p, sizeof *s->mine));
  TRY(arena_alloc(&s->arena, &s->groups, share + 1, sizeof *s->groups));
  TRY(arena_alloc(&s->arena, &s->statuses, share, sizeof *s->statuses));
  if (s->c->rank == 0) TRY(root_alloc(s));
  return worker_open(&s->worker);
}

static int row_compare(const void *x, const void *y)
{
  const struct place *a = x, *b = y;
  return (a->row > b->row) - (a->row < b->row);
}

/* order[count] <- the next drawn rows, hardly more than are still needed, sorted by row.  Returns
 * count. */
static idx block_order(struct seeding *s)
{
  gidx need = ((gidx)s->task->k - s->state[0]) * s->d - s->state[1];
  gidx max = imin(imax(need, MIN_BLOCK), s->block);
  idx count = (idx)imin(max, s->draw.count - s->used);
  for (idx i = 0; i < count; i++) s->order[i] = (struct place){s->draw.drawn[s->used + i].row, i};
  qsort(s->order, (size_t)count, sizeof *s->order, row_compare);
  s->used += count;
  return count;
}

/* Cut this rank's share into groups of rows that are read together, and return their number.  If
 * the source has chunks, a group spans at most as many rows as a chunk, and at most NEAR_BYTES.  If
 * not, a group has consecutive rows. */
static gidx groups_cut(struct seeding *s)
{
  const struct place *order = s->order + s->partition_first;
  gidx most = NEAR_BYTES / (s->p * (gidx)sizeof *s->mine);
  gidx count = 0, begin = 0, near = imin(s->task->rows->unit, most);
  for (gidx i = 0; i < s->partition_count; i++) {
    int is_next = i > begin && order[i].row == order[i - 1].row + 1;
    int goes_on = i > begin && (order[i].row < order[begin].row + near || (near == 0 && is_next));
    if (goes_on) continue;
    s->groups[count++] = (idx)i;
    begin = i;
  }
  s->groups[count] = (idx)s->partition_count;
  return count;
}

/* x[count][p] <- the rows of a group, which need not be neighbours. */
static int rows_pick(const struct row_source *rows, const struct place *from, gidx count, float *x)
{
  gidx span = from[count - 1].row - from->row + 1, p = rows->p;
  if (span == count) return rows->read(rows->self, from->row, (idx)count, x);
  float *all = malloc((size_t)(span * p) * sizeof *all);
  CHECK(all, ERR_MEMORY, "cannot allocate %lld rows", (long long)span);
  int status = rows->read(rows->self, from->row, (idx)span, all);
  for (gidx i = 0; i < count && !status; i++)
    memcpy(x + i * p, all + (from[i].row - from->row) * p, (size_t)p * sizeof *x);
  free(all);
  return status;
}

/* Read, centre and check the rows of a group. */
static int group_read(const struct seeding *s, gidx group)
{
  const struct row_source *rows = s->task->rows;
  gidx first = s->groups[group], count = s->groups[group + 1] - first;
  const struct place *from = s->order + s->partition_first + first;
  float *x = s->mine + first * s->p;
  TRY(rows_pick(rows, from, count, x));
  rows_center(x, count, s->p, s->task->mean);
  for (gidx i = 0; i < count; i++) TRY(rows_source_check(rows, x + i * s->p, from[i].row, 1));
  return OK;
}

static void group_run(void *self, gidx group)
{
  struct seeding *s = self;
  s->statuses[group] = group_read(s, group);
  status_clear(); /* of this thread */
}

static int partition_read(void *argument)
{
  struct seeding *s = argument;
  int threads = s->task->rows->is_shared ? team_spare() : 1;
  gidx count = groups_cut(s);
  if (threads > 1) spare_run(count, group_run, s);
  for (gidx i = 0; i < count; i++) /* with several threads: read only the groups that failed, once
                                    * more and in order, so that this thread has the message */
    if (threads == 1 || s->statuses[i]) TRY(group_read(s, i));
  return OK;
}

/* On rank 0: x <- the rows in the order of s->order.  Rows ascend with the ranks, so the lowest
 * rank that fails has the lowest bad row. */
static int block_read(struct seeding *s, idx count)
{
  for (int r = 0; r < s->c->size; r++) {
    comm_partition(count, s->c->size, r, &s->partition_first, &s->partition_count);
    s->counts[r] = (idx)s->partition_count;
  }
  comm_partition(count, s->c->size, s->c->rank, &s->partition_first, &s->partition_count);
  TRY(comm_agree(s->c, worker_run(&s->worker, partition_read, s)));
  return comm_gather(s->c, s->mine, s->counts, (size_t)s->p * sizeof *s->x, s->x);
}

/* Was a row with this identity accepted before?  With `add`, remember it. */
static int seen_find(struct seeding *s, uint64_t identity, int add)
{
  if (identity == 0) identity = 1;
  uint64_t at = identity & s->mask;
  for (; s->seen[at]; at = (at + 1) & s->mask)
    if (s->seen[at] == identity) return 1;
  if (add) s->seen[at] = identity;
  return 0;
}

static int row_is_zero(const float *x, idx p)
{
  idx c = 0;
  while (c < p && x[c] == 0) c++;
  return c == p;
}

/* Are the m + 1 rows in raw independent?  Then basis is their orthonormal frame. */
static int frame_grows(struct seeding *s, idx m)
{
  gidx values = (gidx)(m + 1) * s->p;
  for (gidx i = 0; i < values; i++) s->basis[i] = s->raw[i];
  return frame_orthonormalize(s->basis, m + 1, s->p) == m + 1;
}

/* Append the frame in progress to the finished atoms; if d = 1, the normalized row. */
static void frame_finish(struct seeding *s)
{
  gidx values = (gidx)s->d * s->p;
  float *out = s->atoms + (s->state[0] - s->written) * values;
  for (gidx i = 0; i < values; i++) out[i] = s->d == 1 ? s->raw[i] : (float)s->basis[i];
  if (s->d == 1) atoms_normalize(out, 1, 1, s->p);
  s->state[0]++;
  s->state[1] = 0;
}

/* Accept or skip the next drawn row x[p]. */
static void row_handle(struct seeding *s, const float *x)
{
  idx m = (idx)s->state[1];
  float *raw = s->raw + (gidx)m * s->p;
  for (idx c = 0; c < s->p; c++) raw[c] = x[c] + 0.0f; /* -0 is 0: equal rows have equal bytes */
  uint64_t identity = hash64(raw, (size_t)s->p * sizeof *raw);
  if (row_is_zero(raw, s->p)) {
    s->result->zero++;
  } else if (seen_find(s, identity, 0)) {
    s->result->repeated++;
  } else if (s->d > 1 && !frame_grows(s, m)) {
    s->result->dependent++;
  } else {
    seen_find(s, identity, 1);
    s->result->accepted++;
    if (++s->state[1] == s->d) frame_finish(s);
  }
}

/* Handle the rows of a block in drawn order, and write the atoms that they finish.  Rank 0
 * alone. */
static int block_handle(struct seeding *s, idx count)
{
  for (idx i = 0; i < count; i++) s->sorted[s->order[i].at] = i;
  for (idx i = 0; i < count && s->state[0] < s->task->k; i++)
    row_handle(s, s->x + (gidx)s->sorted[i] * s->p);
  gidx more = s->state[0] - s->written, frame = (gidx)s->d * s->p;
  if (more == 0) return OK;
  s->result->fingerprint +=
      fingerprint(s->atoms, more * frame, sizeof *s->atoms, s->written * frame);
  struct matrix_access access = {s->task->sink, s->written, more, s->atoms};
  TRY(matrix_access(&s->worker, access));
  s->written += more;
  return OK;
}

static int rows_exhausted(const struct seeding *s)
{
  const struct seed_result *r = s->result;
  if (s->c->rank) return OK;
  FAIL(ERR_INPUT,
       "'%s' gives %lld of %d atoms: of its %lld rows %lld %s, %lld repeat a row and %lld depend "
       "on their frame: %s",
       s->task->rows->name, (long long)s->state[0], s->task->k, (long long)s->task->rows->n,
       (long long)r->zero, s->task->mean ? "equal the mean" : "are zero", (long long)r->repeated,
       (long long)r->dependent,
       s->state[0] ? "lower --atoms or give more rows" : "give other rows");
}

static int task_check(const struct seed_task *t)
{
  gidx need = (gidx)t->k * t->d;
  CHECK(t->d <= t->rows->p, ERR_INPUT, "frames of %d vectors need %d columns, '%s' has %d", t->d,
        t->d, t->rows->name, t->rows->p);
  CHECK(t->rows->n >= need, ERR_INPUT,
        "'%s' has %lld rows, %d atoms of %d vectors need %lld: lower --atoms or give more rows",
        t->rows->name, (long long)t->rows->n, t->k, t->d, (long long)need);
  return OK;
}

static int window_next(struct seeding *s)
{
  TRY(comm_agree(s->c, s->draw.ended ? rows_exhausted(s) : OK));
  s->used = 0;
  return draw_next(&s->draw, s->c);
}

static int seeding_run(struct seeding *s)
{
  const struct seed_task *t = s->task;
  TRY(comm_agree(s->c, task_check(t)));
  TRY(comm_agree(s->c, seeding_alloc(s)));
  gidx need = (gidx)t->k * t->d;
  s->draw = (struct draw){.n = t->rows->n, .seed = t->seed, .wanted = need + need / 4 + 1024};
  struct progress progress;
  progress_start(&progress, "seed", "atoms", t->k);
  while (s->state[0] < t->k) {
    if (s->used == s->draw.count) {
      TRY(window_next(s));
      continue;
    }
    idx count = block_order(s);
    TRY(block_read(s, count));
    TRY(comm_agree(s->c, s->c->rank ? OK : block_handle(s, count)));
    TRY(comm_broadcast(s->c, s->state, LENGTH(s->state), sizeof *s->state));
    progress_show(&progress, s->state[0]);
  }
  return OK;
}

int seed_run(const struct seed_task *task, struct comm *c, struct seed_result *result)
{
  struct seeding *s; /* on the heap: struct run of job/run.h says why */
  *result = (struct seed_result){0};
  TRY(comm_agree(c, struct_alloc(&s, sizeof *s)));
  *s = (struct seeding){.task = task, .c = c, .result = result, .p = task->rows->p, .d = task->d};
  TRY(seeding_run(s));
  worker_close(&s->worker);
  draw_free(&s->draw);
  arena_free(&s->arena);
  free(s);
  return OK;
}
