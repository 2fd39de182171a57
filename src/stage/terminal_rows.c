/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0's stream of rows: what fits a batch is read, centred, checked and made ready; assembly. */
#include <string.h>

#include "base/status.h"
#include "stage/access.h"
#include "stage/terminal_inside.h"

enum { ROWS_MOST = 4096 };

struct read_job {
  struct terminal_rows *rows;
  gidx most;
};

static int read_run(void *argument)
{
  struct terminal_rows *r = ((struct read_job *)argument)->rows;
  const struct terminal_task *t = r->w->t;
  gidx left = t->rows->n - r->next;
  idx n = left < r->room ? (idx)left : r->room;
  TRY(t->supports->starts(t->supports->self, r->next, n, r->start));
  n = joint_fit(&r->work, r->start, n);
  TRY(t->supports->read(t->supports->self, r->start[0], r->start[n] - r->start[0], r->list, NULL,
                        r->codes));
  TRY(t->rows->read(t->rows->self, r->next, n, r->x));
  r->batch = (struct joint_rows){r->next, n, r->x, r->start, r->list, r->codes};
  return OK;
}

/* Of what terminal_rows_open() takes beside the joint work. */
gidx terminal_rows_bytes(gidx n, const struct atom_source *a, idx longest)
{
  enum { SLACK = 1024 };
  gidx room = n < ROWS_MOST ? n : ROWS_MOST, entries = room * longest;
  return room * (a->p * (gidx)sizeof(float) + (gidx)sizeof(gidx)) +
         entries * (a->d * (gidx)sizeof(float) + (gidx)sizeof(idx)) + SLACK;
}

int terminal_rows_open(struct terminal_rows *r, struct terminal *w, gidx workspace)
{
  const struct joint *j = &w->joint;
  *r = (struct terminal_rows){.w = w};
  gidx n = w->t->rows->n, entries;
  r->room = n < ROWS_MOST ? (idx)n : ROWS_MOST;
  entries = (gidx)r->room * w->longest;
  TRY(arena_take(&r->arena, &r->x, (gidx)r->room * j->p, sizeof *r->x));
  TRY(arena_take(&r->arena, &r->codes, entries * j->d, sizeof *r->codes));
  TRY(arena_take(&r->arena, &r->list, entries, sizeof *r->list));
  TRY(arena_take(&r->arena, &r->start, (gidx)r->room + 1, sizeof *r->start));
  gidx room = workspace - (gidx)r->arena.bytes -
              dense_bytes(w->t->threads, w->t->panel, w->r->n_border) -
              joint_bytes(j, w->t->threads, w->longest);
  TRY(joint_open(&r->work, j, &w->dense, w->longest, room));
  return worker_open(&r->worker);
}

void terminal_rows_close(struct terminal_rows *r)
{
  worker_close(&r->worker);
  joint_close(&r->work);
  arena_free(&r->arena);
}

int terminal_rows_next(struct terminal_rows *r, struct joint_sums *sums)
{
  static struct read_job job; /* outlives a read that passed the deadline */
  const struct terminal_task *t = r->w->t;
  struct phase *phases = r->w->phases;
  r->batch = (struct joint_rows){.first = r->next};
  if (r->next == t->rows->n) return OK;
  job = (struct read_job){.rows = r};
  phase_begin(&phases[TERMINAL_READ]);
  TRY(access_run(&r->worker, r->w->c->deadline, read_run, &job));
  rows_center(r->x, r->batch.n, t->rows->p, t->mean);
  TRY(rows_check(r->x, r->batch.n, t->rows->p, r->next, t->rows->name));
  phase_end(&phases[TERMINAL_READ], (double)r->batch.n * t->rows->row_bytes);
  phase_begin(&phases[TERMINAL_ROWS]);
  TRY(joint_batch(&r->work, &r->batch, sums));
  double width = 0, work = 0, p = t->rows->p;
  for (idx i = 0; i < r->batch.n; i++) {
    struct joint_row row = joint_row_of(&r->work, i);
    width = (double)row.width / t->atoms->d;
    work += p * (row.m * (width + 0.5 * row.m) + width + row.m) + 0.5 * row.m * row.m * row.width;
  }
  phase_end(&phases[TERMINAL_ROWS], work);
  r->next += r->batch.n;
  return OK;
}

static double batch_work(const struct terminal_rows *r)
{
  double work = 0;
  for (idx i = 0; i < r->batch.n; i++) {
    struct joint_row row = joint_row_of(&r->work, i);
    work += 0.5 * (row.m + 1.0) * row.width * (row.width + 1.0);
  }
  return work;
}

static int batches_add(struct terminal_rows *r, struct joint_sums *sums)
{
  struct terminal *w = (struct terminal *)r->w;
  struct phase *phase = &w->phases[TERMINAL_ASSEMBLE];
  gidx n = w->r->n_border;
  phase_begin(phase);
  joint_begin(&r->work, &w->dense, w->s, n);
  phase_end(phase, 0.5 * (double)w->r->directions * w->r->directions * w->r->p);
  for (;;) {
    TRY(terminal_rows_next(r, sums));
    if (r->batch.n == 0) return OK;
    phase_begin(phase);
    joint_add(&r->work, w->s, n);
    phase_end(phase, batch_work(r));
  }
}

int terminal_assemble(struct terminal *w, struct joint_sums *sums)
{
  static struct terminal_rows rows;
  TRY(arena_take(&w->matrix, &w->s, (gidx)w->r->n_border * w->r->n_border, sizeof *w->s));
  TRY(terminal_rows_open(&rows, w, w->t->workspace));
  TRY(batches_add(&rows, sums));
  terminal_rows_close(&rows);
  return OK;
}
