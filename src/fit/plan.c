/* SPDX-License-Identifier: BSD-3-Clause
 * The plan makes the same allocations as a fit, but dry: for all rows, and if these do not fit, for
 * smaller and smaller parts. */
#include "fit/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "fit/fit_impl.h"
#include "fit/start.h"
#include "refit/layout.h"
#include "refit/sweep_end.h"

enum {
  LEAST_PART = 256,    /* the smallest part that a refusal names; all are 256 * 4^i rows */
  CHOSEN_PART = 65536, /* the smallest part that is chosen; all are 65536 * 4^i rows */
  CHOSEN_CODES = 256   /* least number of codes of an atom in a chosen part, on average */
};

/* The shape of the coder of this job. */
static struct sparse_coder_shape sparse_coder_shape_of(const struct fit *f)
{
  enum { SWEEPS_EXPECTED = 20 };
  const struct fit_task *t = f->task;
  struct sparse_coder_shape shape = refit_sparse_coder_shape(&f->state, t->rounds, t->device);
  gidx first, rows = refit_rows_partition(f->part_rows, f->c->size, 0, &first);
  gidx held = refit_rows_partition(f->held.n, f->c->size, 0, &first);
  shape.rows = imax(rows, held);
  shape.work *= (double)imin(t->sweeps, SWEEPS_EXPECTED);
  return shape;
}

/* f->gpu <- the fewest bytes that this rank needs on its GPU; 0: the plan has no GPU. */
static int gpu_find(struct fit *f, gidx held)
{
  struct device dry;
  gidx host;
  TRY(sparse_coder_device_dry(&f->shape, f->state.n, held, &dry));
  if (f->how == UPDATE_JOINT) TRY(update_plan(&f->state, &dry, &host));
  f->gpu = device_is_gpu(&dry) ? dry.planned_device : 0;
  return OK;
}

/* Find the bytes that each rank holds beside its fitted rows, and its bytes on a GPU. */
static int beside_find(struct fit *f)
{
  int size = f->c->size;
  gidx first, held = refit_rows_partition(f->held.n, size, f->c->rank, &first);
  TRY(refit_state_shape(&f->state, &f->refit_task, f->c));
  f->shape = sparse_coder_shape_of(f);
  f->refit_task.lends_sums = f->part_rows < f->fitted.n;
  TRY(fit_validation_bytes(&f->shape, f->held.n, size, &f->refit_task.beside));
  f->refit_task.beside += f->task->beside;
  TRY(gpu_find(f, held));
  f->state = (struct refit_state){0};
  return OK;
}

/* *bytes <- the memory of this rank's GPU, without the bytes that a device keeps free.  A query
 * takes time.  So a job that fits any GPU makes no query, and gets INT64_MAX. */
static int gpu_memory(const struct fit *f, gidx *bytes)
{
  static const gidx ANY_GPU = (gidx)1 << 30;
  *bytes = INT64_MAX;
  if (f->gpu <= ANY_GPU) return OK;
  TRY(sparse_coder_device_memory(&f->shape, f->c->local_size, bytes));
  *bytes -= *bytes / 32;
  return OK;
}

/* Is the rank's GPU large enough, as far as this can be known before it is opened? */
static int gpu_check(const struct fit *f)
{
  gidx present;
  TRY(gpu_memory(f, &present));
  CHECK(f->gpu <= present, ERR_MEMORY,
        "%lld bytes of a GPU are needed, %lld are there for each rank: take more GPUs, so that "
        "each holds fewer rows, or give --device cpu",
        (long long)f->gpu, (long long)present);
  return OK;
}

/* Do parts of `rows` rows take at most three quarters of this rank's memory, and at most three
 * quarters of the memory of its GPU?  The rest is left to other users.  ERR_MEMORY: they do not. */
static int part_check(struct fit *f, gidx rows, gidx present)
{
  struct refit_memory m;
  gidx gpu;
  f->part_rows = rows;
  fit_part_choose(f, 0);
  TRY(beside_find(f));
  TRY(refit_memory(&f->refit_task, f->c, fit_batch_bytes(f), 1, &m));
  TRY(gpu_memory(f, &gpu));
  return m.total <= present - present / 4 && f->gpu <= gpu - gpu / 4 ? OK : ERR_MEMORY;
}

/* For an update of all atoms at once: *rows <- the largest part that this rank can hold and that
 * has fewer rows than the present one; 0: there is none. */
static int parts_find(struct fit *f, gidx *rows)
{
  gidx present = memory_per_process(f->c->local_size), most = f->part_rows;
  for (*rows = (gidx)1 << 40; *rows >= LEAST_PART; *rows /= 4) {
    if (*rows >= most) continue;
    int status = part_check(f, *rows, present);
    if (status == OK) return OK;
    if (status != ERR_MEMORY) return status;
    status_clear();
  }
  *rows = 0;
  return OK;
}

/* Called if the present rows do not fit into memory.  *rows <- the largest part that every rank can
 * hold, 0: none.  Collective. */
static int parts_agree(struct fit *f, gidx *rows)
{
  gidx *all;
  f->refit_task.colors = 0;
  f->refit_task.no_steps = 1;
  if (!fit_moves_all(f->how)) f->how = fit_update_by_parts(f->task->k);
  TRY(fit_gram_plan(f, 0)); /* counts no lists: the rows of a part are not known yet */
  int status = arena_alloc(&f->arena, &all, f->c->size, sizeof *all);
  if (!status) status = parts_find(f, rows);
  TRY(comm_agree(f->c, status));
  TRY(comm_allgather_long(f->c, *rows, all));
  for (int r = 0; r < f->c->size; r++) *rows = imin(*rows, all[r]);
  return OK;
}

static int minibatch_advise(enum fit_update how, const char *why, gidx rows)
{
  CHECK(rows == 0, ERR_MEMORY, "%s; '--update %s --minibatch %lld' holds so many at a time", why,
        how == UPDATE_CONJUGATE ? "conjugate" : "joint", (long long)rows);
  FAIL(ERR_MEMORY, "%s; no '--minibatch' fits either: lower --atoms, or hold out fewer rows", why);
}

/* Fail, because the job does not fit into memory.  The message says which parts would fit.
 * Collective; ERR_MEMORY. */
static int memory_fail(struct fit *f)
{
  char why[1024];
  gidx rows = 0;
  status_take(why, sizeof why);
  comm_recover(f->c);
  TRY(parts_agree(f, &rows));
  return comm_agree(f->c, minibatch_advise(f->how, why, rows));
}

static int sparse_coder_warm_run(void *shape)
{
  sparse_coder_warm(shape);
  return OK;
}

static int warmer_start(struct fit *f)
{
  TRY(worker_open(&f->warmer));
  return worker_start(&f->warmer, sparse_coder_warm_run, &f->shape);
}

int fit_task_plan(struct fit *f)
{
  const struct fit_task *t = f->task;
  f->refit_task = (struct refit_task){.rows = &f->part_source,
                                      .atoms = &f->table_source,
                                      .supports = &f->no_supports,
                                      .mean = f->mean,
                                      .rho = t->rho,
                                      .nonnegative = t->nonnegative,
                                      .top_s = f->result->top_s,
                                      .threads = t->threads,
                                      .variant = t->variant,
                                      .no_steps = fit_moves_all(f->how),
                                      .colors = !fit_moves_all(f->how)};
  f->refit_task.filter = t->filter;
  f->refit_task.shares_gram = f->shares_gram;
  return beside_find(f);
}

batch_bytes_of *fit_batch_bytes(const struct fit *f)
{
  return f->how == UPDATE_CONJUGATE ? conjugate_bytes
         : f->how == UPDATE_JOINT   ? update_bytes
                                    : refit_batch_bytes;
}

gidx fit_shared_bytes(const struct fit *f, gidx rows)
{
  gidx gram = f->how == UPDATE_JOINT ? gram_window_bytes(f->c, f->task->k) : 0;
  return gram + all_rows_list_bytes(rows, f->result->top_s);
}

/* The update runs on a CPU if the plan has no GPU, if the GPU is not present, or if the update is
 * UPDATE_CONJUGATE. */
int fit_gram_plan(struct fit *f, gidx rows)
{
  const struct fit_task *t = f->task;
  f->shares_gram = 0;
  if (fit_moves_all(f->how) && f->c->size > 1) {
    int on_cpu =
        f->how == UPDATE_CONJUGATE || f->gpu == 0 || device_lacks_gpu(t->device, f->c->local_rank);
    gidx bytes = fit_shared_bytes(f, rows);
    TRY(gram_choose(f->c, bytes, t->share ? t->share : "auto", on_cpu, &f->shares_gram));
  }
  f->refit_task.shares_gram = f->shares_gram;
  return OK;
}

static int total_check(const struct fit *f)
{
  return refit_total_check(&f->refit_task, f->c, fit_batch_bytes(f), f->task->directions, 1);
}

/* Is there memory to read the next part while this one is used, with a quarter to spare?
 * Collective. */
static int ahead_plan(struct fit *f)
{
  gidx more = fit_ahead_bytes(f) + memory_per_process(f->c->local_size) / 4;
  if (f->parts == 1) return OK;
  f->refit_task.beside += more;
  int status = total_check(f);
  f->refit_task.beside -= more;
  f->reads_ahead = !status;
  if (status != ERR_MEMORY) return status;
  status_clear();
  comm_recover(f->c);
  return OK;
}

/* Does the job fit into memory?  ERR_MEMORY: the message says what is short.  Collective. */
static int memory_plan(struct fit *f)
{
  TRY(comm_agree(f->c, fit_task_plan(f)));
  TRY(fit_gram_plan(f, f->part_rows));
  TRY(ahead_plan(f));
  TRY(total_check(f));
  return comm_agree(f->c, gpu_check(f));
}

/* Can it pay that every rank has all rows?  It can if atoms take their steps class by class on
 * GPUs: ranks that divide the rows would exchange data after every class. */
static int may_be_alone(const struct fit *f)
{
  return f->all->size > 1 && f->how == UPDATE_ATOMS && strcmp(f->task->device, "cpu") != 0;
}

static int has_gpu(const struct fit *f)
{
  struct refit_state shape;
  return !refit_state_shape(&shape, &f->refit_task, f->c) &&
         resident_fits(&shape, &f->shape, f->held.n, f->task->directions);
}

/* f->c <- a communicator of this rank alone, if every rank can hold all rows (refit/resident.h). */
static int alone_plan(struct fit *f)
{
  TRY(comm_alone(f->all, &f->alone));
  f->c = &f->alone;
  int status = memory_plan(f);
  if (status && status != ERR_MEMORY && status != ERR_INPUT) return status;
  return resident_agree(f->all, !status && has_gpu(f), &f->c);
}

int fit_ranks_plan(struct fit *f)
{
  return may_be_alone(f) ? alone_plan(f) : OK;
}

/* The plan comes first: nothing is read until the whole job is known to fit. */
int fit_state_plan(struct fit *f)
{
  TRY(fit_ranks_plan(f));
  int status = comm_is_alone(f->c) ? OK : memory_plan(f);
  if (status == ERR_MEMORY) return memory_fail(f);
  TRY(status);
  return comm_agree(f->c, warmer_start(f));
}

gidx fit_chosen_part(idx k, idx top_s)
{
  gidx rows = CHOSEN_PART, s = imin(top_s, k);
  while (rows * s < CHOSEN_CODES * (gidx)k) rows *= 4;
  return rows;
}

int fit_parts_choose(const struct fit_task *task, struct comm *c, gidx *rows, char *why,
                     size_t capacity)
{
  struct fit *f;
  struct fit_result none = {0};
  *rows = 0;
  *why = '\0';
  if (task->update == UPDATE_ATOMS) return OK;
  TRY(comm_agree(c, struct_alloc(&f, sizeof *f)));
  f->task = task;
  f->c = c;
  f->result = &none;
  TRY(comm_agree(c, fit_sources_open(f)));
  int status = memory_plan(f);
  if (status == ERR_MEMORY) {
    status_take(why, capacity);
    comm_recover(c);
    *rows = fit_chosen_part(task->k, none.top_s);
    if (*rows >= f->fitted.n) *rows = 0; /* one part would be all rows, which do not fit */
  } else {
    TRY(status);
  }
  fit_close(f);
  return OK;
}
