/* SPDX-License-Identifier: BSD-3-Clause
 * The forecast plans the state of a fit without running it, and then closes it. */
#include "fit/forecast.h"

#include <stdlib.h>

#include "base/num.h"
#include "base/status.h"
#include "fit/fit_impl.h"
#include "fit/plan.h"
#include "fit/start.h"

/* The work of a sweep.  Routing is counted as the coder counts it for GPUs.  The descent is the
 * passes of (N.20), or the products with the codes and with their transpose (N.65). */
static void work_find(const struct fit *f, struct fit_forecast *forecast)
{
  const struct fit_task *t = f->task;
  double rows = (double)f->part_rows + (double)f->held.n, atom = (double)t->k * f->fitted.p;
  forecast->routing = rows * atom * t->rounds;
  if (f->how == UPDATE_JOINT) forecast->descent = atom * t->k * t->passes;
  if (f->how == UPDATE_CONJUGATE)
    forecast->descent =
        (2.0 * t->passes + 1) * (double)f->part_rows * f->result->top_s * f->fitted.p;
}

static void shapes_find(const struct fit *f, struct fit_forecast *forecast)
{
  gidx first;
  *forecast = (struct fit_forecast){
      .update = f->how,
      .device = f->task->device,
      .alone = comm_is_alone(f->c),
      .fitted = f->fitted.n,
      .held = f->held.n,
      .parts = f->parts,
      .part_rows = f->part_rows,
      .rank_rows = refit_rows_partition(f->part_rows, f->c->size, 0, &first),
      .gpu = f->gpu,
      .shared = f->shares_gram ? fit_shared_bytes(f, f->part_rows) : 0,
  };
  work_find(f, forecast);
}

/* If there is memory to read the next part ahead, as a fit then does: count this memory. */
static void ahead_add(const struct fit *f, struct refit_memory *m)
{
  gidx bytes = fit_ahead_bytes(f), present = memory_per_process(f->c->local_size);
  if (m->total + bytes > present - present / 4) return;
  m->held.rows += bytes;
  m->total += bytes;
}

/* Bytes beside the state: the arrays of fit_sources_open(); the coder, which stays open; and on
 * rank 0 the atoms that are being written to state.h5.  With several parts a part is read while the
 * sums of earlier parts are in memory, so both count. */
static int total_find(const struct fit *f, struct fit_forecast *forecast)
{
  struct refit_memory *m = &forecast->m;
  gidx coder, state = m->held.rows + m->held.supports + m->held.frames + m->part;
  gidx work = f->parts > 1 ? m->load + m->batch : imax(m->load, m->batch);
  TRY(sparse_coder_bytes(&f->shape, forecast->rank_rows, &coder));
  forecast->beside = (gidx)f->arena.bytes + coder +
                     (gidx)f->task->k * f->task->d * f->fitted.p * (gidx)sizeof(float);
  m->total = memory_program() + state + forecast->beside +
             imax(imax(work, m->classes), m->sweep_end - coder);
  ahead_add(f, m);
  return OK;
}

static int find(struct fit *f, struct fit_forecast *forecast)
{
  TRY(fit_ranks_plan(f));
  int status = comm_agree(f->c, fit_task_plan(f));
  if (!status) status = fit_gram_plan(f, f->part_rows);
  TRY(status);
  shapes_find(f, forecast);
  status =
      refit_memory(&f->refit_task, f->c, fit_batch_bytes(f), f->task->directions, &forecast->m);
  if (!status) status = total_find(f, forecast);
  return comm_agree(f->c, status);
}

int fit_forecast(const struct fit_task *task, struct comm *c, struct fit_forecast *forecast)
{
  struct fit *f;
  struct fit_result none = {0};
  struct fit_task own = *task;
  uint64_t lacks = (uint64_t)device_lacks_gpu(task->device, c->local_rank);
  TRY(comm_agree(c, struct_alloc(&f, sizeof *f)));
  TRY(comm_agree_flags(c, OK, 0, &lacks));
  if (lacks) own.device = "cpu";
  f->task = &own;
  f->c = f->all = c;
  f->result = &none;
  TRY(comm_agree(c, fit_sources_open(f)));
  TRY(find(f, forecast));
  TRY(comm_unite(c, &f->alone));
  fit_close(f);
  return OK;
}
