/* SPDX-License-Identifier: BSD-3-Clause
 * A worker reads piece after piece, until it has read the whole part or is asked to pause. */
#include "fit/ahead.h"

#include "base/num.h"
#include "base/status.h"
#include "model/access.h"

enum { PIECE_BYTES = 16 << 20 };

gidx part_ahead_most(gidx n, gidx last, const struct comm *c)
{
  gidx first, own = refit_rows_partition(n, c->size, c->rank, &first);
  return imax(own, refit_rows_partition(last, c->size, c->rank, &first));
}

int part_ahead_open(struct part_ahead *a, gidx most, idx p, const real *mean)
{
  *a = (struct part_ahead){.number = -1, .mean = mean};
  TRY(arena_alloc(&a->arena, &a->x[0], most * p, sizeof *a->x[0]));
  TRY(arena_alloc(&a->arena, &a->x[1], most * p, sizeof *a->x[1]));
  return worker_open(&a->worker);
}

void part_ahead_close(struct part_ahead *a)
{
  a->pauses = 1;
  worker_close(&a->worker);
  arena_free(&a->arena);
}

static int pieces_read(void *self)
{
  struct part_ahead *a = self;
  gidx p = a->rows.p, most = 1 + PIECE_BYTES / (p * (gidx)sizeof(float));
  while (a->done < a->n && !a->pauses) {
    struct rows_load load = {.rows = &a->rows,
                             .first = a->first + a->done,
                             .count = (idx)imin(a->n - a->done, most),
                             .x = a->x[0] + a->done * p,
                             .terms = &a->terms,
                             .mean = a->mean,
                             .whole = &a->rows,
                             .place = a->first + a->done};
    TRY(rows_load(&load));
    a->done += load.count;
  }
  return OK;
}

/* After a failure the part counts as not read: it is read again when it is used. */
static void give_up(struct part_ahead *a, int status)
{
  if (!status) return;
  status_clear();
  a->number = -1;
}

void part_ahead_go(struct part_ahead *a)
{
  if (!a->worker.state || a->number < 0) return;
  a->pauses = 0;
  if (a->done < a->n) give_up(a, worker_start(&a->worker, pieces_read, a));
}

void part_ahead_pause(struct part_ahead *a)
{
  if (!a->worker.state || a->number < 0) return;
  a->pauses = 1;
  give_up(a, worker_wait(&a->worker));
}

void part_ahead_begin(struct part_ahead *a, const struct row_source *all, gidx number, gidx first,
                      gidx n, const struct comm *c)
{
  if (!a->worker.state) return;
  part_source(&a->part, all, first, n, &a->rows);
  a->n = refit_rows_partition(n, c->size, c->rank, &a->first);
  a->number = number;
  a->done = 0;
  a->terms = 0;
  part_ahead_go(a);
}

void part_ahead_take(struct part_ahead *a, gidx number, struct refit_task *task)
{
  if (!a->worker.state) return;
  float *x = a->x[0];
  if (a->number >= 0) give_up(a, worker_wait(&a->worker));
  task->read = a->number == number && a->done == a->n ? &a->terms : NULL;
  a->number = -1;
  a->x[0] = a->x[1];
  a->x[1] = task->x = x;
}
