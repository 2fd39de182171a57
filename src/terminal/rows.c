/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0's stream of rows: a batch is read, centred, checked and prepared, then added to S. */
#include "terminal/rows.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "model/access.h"
#include "terminal/terminal_impl.h"

enum { MAX_ROWS = 4096 };

/* Remove nonnegative codes that are 0 from the lists of n rows: these codes are at their bound, so
 * they are not unknowns (N.17).  d is 1.  ERR_INPUT: a code is negative. */
static int bound_drop(struct terminal_rows *r, idx n)
{
  gidx base = r->start[0], at = base, to = 0;
  for (idx i = 0; i < n; i++) {
    gidx end = r->start[i + 1];
    for (; at < end; at++) {
      float code = r->codes[at - base];
      CHECK(code >= 0, ERR_INPUT,
            "row %lld has the code %g, and its file says that codes are nonnegative",
            (long long)(r->next + i), (double)code);
      if (code == 0) continue;
      r->list[to] = r->list[at - base];
      r->codes[to++] = r->codes[at - base];
    }
    r->start[i + 1] = base + to;
  }
  return OK;
}

/* Read the next batch: as many rows as the arrays and the joint work have room for.  Runs in the
 * worker. */
static int read_run(void *argument)
{
  struct terminal_rows *r = argument;
  const struct terminal_task *t = r->w->t;
  gidx left = t->rows->n - r->next;
  idx n = left < r->capacity ? (idx)left : r->capacity;
  TRY(t->supports->starts(t->supports->self, r->next, n, r->start));
  n = cpu_joint_fit(&r->work, r->start, n);
  TRY(t->supports->read(t->supports->self, r->start[0], r->start[n] - r->start[0], r->list, NULL,
                        r->codes));
  if (t->nonnegative) TRY(bound_drop(r, n));
  TRY(t->rows->read(t->rows->self, r->next, n, r->x));
  r->batch = (struct joint_rows){r->next, n, r->x, r->start, r->list, r->codes};
  return OK;
}

int terminal_rows_alloc(struct terminal_rows *r, const struct terminal *w)
{
  const struct atom_source *atoms = w->t->atoms;
  r->capacity = (idx)imin(w->t->rows->n, MAX_ROWS);
  gidx entries = (gidx)r->capacity * w->longest;
  TRY(arena_alloc(&r->arena, &r->x, (gidx)r->capacity * atoms->p, sizeof *r->x));
  TRY(arena_alloc(&r->arena, &r->codes, entries * atoms->d, sizeof *r->codes));
  TRY(arena_alloc(&r->arena, &r->list, entries, sizeof *r->list));
  return arena_alloc(&r->arena, &r->start, (gidx)r->capacity + 1, sizeof *r->start);
}

int terminal_rows_open(struct terminal_rows *r, struct terminal *w, gidx workspace)
{
  const struct joint *j = &w->joint;
  *r = (struct terminal_rows){.w = w};
  TRY(terminal_rows_alloc(r, w));
  gidx capacity = workspace - (gidx)r->arena.bytes -
                  cpu_dense_bytes(w->t->threads, w->t->panel, w->r->n_border) -
                  cpu_joint_bytes(j, w->t->threads, w->longest);
  TRY(joint_open(&r->work, &w->device, j, w->longest, capacity));
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
  const struct terminal_task *t = r->w->t;
  struct phase *phases = r->w->phases;
  r->batch = (struct joint_rows){.first = r->next};
  if (r->next == t->rows->n) return OK;
  phase_begin(&phases[TERMINAL_READ]);
  TRY(worker_run(&r->worker, read_run, r));
  rows_center(r->x, r->batch.n, t->rows->p, t->mean);
  TRY(rows_source_check(t->rows, r->x, r->next, r->batch.n));
  phase_end(&phases[TERMINAL_READ], (double)r->batch.n * t->rows->row_bytes);
  phase_begin(&phases[TERMINAL_ROWS]);
  TRY(joint_batch(&r->work, &r->batch, sums));
  double width = 0, work = 0, p = t->rows->p;
  for (idx i = 0; i < r->batch.n; i++) {
    struct joint_size row;
    TRY(joint_row_size(&r->work, i, &row));
    double m = row.vectors;
    width = (double)row.width / t->atoms->d;
    work += p * (m * (width + 0.5 * m) + width + m) + 0.5 * m * m * row.width;
  }
  phase_end(&phases[TERMINAL_ROWS], work);
  r->next += r->batch.n;
  return OK;
}

/* *work <- the multiply-adds of adding the batch to S. */
static int batch_work(const struct terminal_rows *r, double *work)
{
  *work = 0;
  for (idx i = 0; i < r->batch.n; i++) {
    struct joint_size row;
    TRY(joint_row_size(&r->work, i, &row));
    *work += 0.5 * (row.vectors + 1.0) * row.width * (row.width + 1.0);
  }
  return OK;
}

/* Add all rows to S, batch by batch. */
static int batches_add(struct terminal_rows *r, struct joint_sums *sums)
{
  struct terminal *w = (struct terminal *)r->w;
  struct phase *phase = &w->phases[TERMINAL_ASSEMBLE];
  gidx stride = schur_stride(w);
  phase_begin(phase);
  TRY(joint_begin(&r->work, &w->dense, w->s.device, stride));
  phase_end(phase, 0.5 * (double)w->r->directions * w->r->directions * w->r->p);
  for (;;) {
    TRY(terminal_rows_next(r, sums));
    if (r->batch.n == 0) return OK;
    phase_begin(phase);
    double work;
    TRY(joint_add(&r->work, w->s.device, stride));
    TRY(batch_work(r, &work));
    phase_end(phase, work);
  }
}

gidx terminal_schur_bytes(const struct terminal *w)
{
  return w->r->n_border * schur_stride(w) * (gidx)sizeof(real);
}

int terminal_assemble(struct terminal *w, struct joint_sums *sums)
{
  TRY(buffer_alloc_device(&w->device, &w->s, terminal_schur_bytes(w)));
  TRY(terminal_rows_open(&w->rows, w, w->t->workspace));
  TRY(batches_add(&w->rows, sums));
  terminal_rows_close(&w->rows);
  return OK;
}
