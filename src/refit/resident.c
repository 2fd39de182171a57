/* SPDX-License-Identifier: BSD-3-Clause
 * The device does a sweep as one job; its results are converted to the results of refit_sweep(). */
#include "refit/resident.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "comm/buffers.h"

static struct steps_job job_of(struct resident *r, const struct classes *classes)
{
  struct refit_state *f = r->f;
  return (struct steps_job){.n = f->n,
                            .s = f->s,
                            .d = f->d,
                            .p = f->p,
                            .k = f->k,
                            .directions = r->q,
                            .row = f->first,
                            .rho = f->rho,
                            .nonnegative = f->task->nonnegative,
                            .x = &r->rows->x,
                            .slots = &r->rows->atoms,
                            .codes = &r->rows->codes,
                            .start = f->start,
                            .entry = f->entry,
                            .has_entry = r->has_entry,
                            .classes = classes,
                            .frames = f->frames,
                            .results = r->results,
                            .work = &r->work,
                            .share = r->share.messages ? &r->share : NULL};
}

/* The exchange for struct steps_peers.  The host is at most one exchange ahead of the GPUs. */
static int messages_exchange(void *self, gidx bytes)
{
  struct resident *r = self;
  struct comm *c = r->coder->share;
  struct device *dev = &r->coder->device;
  gidx turn = 0;
  for (int rank = 0; rank < c->size; rank++) r->counts[rank] = (idx)(bytes / (gidx)sizeof(real));
  const struct comm_exchange one = {NULL, &r->messages, r->counts, sizeof(real)};
  TRY(comm_allgather_begin(c, dev, &one, 1, &turn));
  TRY(comm_allgather_follow(c, dev, turn));
  if (r->exchanged >= 0) TRY(comm_allgather_end(c, dev, r->exchanged));
  r->exchanged = turn;
  r->shared++;
  return OK;
}

/* Page-lock, or unlock, what is copied to and from the device in every sweep. */
static void arrays_pin(const struct resident *r, int is_on)
{
  const struct refit_state *f = r->f;
  struct device *dev = &r->coder->device;
  gidx frames = (gidx)f->k * f->d * f->p, entries = (gidx)f->n * f->s;
  const struct {
    void *at;
    gidx bytes;
  } arrays[] = {{f->frames, frames * (gidx)sizeof *f->frames},
                {r->table, frames * (gidx)sizeof *r->table},
                {f->entry, entries * (gidx)sizeof *f->entry},
                {f->atoms, entries * (gidx)sizeof *f->atoms},
                {f->score, entries * (gidx)sizeof *f->score}};
  for (int i = 0; i < LENGTH(arrays); i++)
    if (is_on)
      host_pin(dev, arrays[i].at, arrays[i].bytes);
    else
      host_unpin(dev, arrays[i].at);
}

int resident_index(struct resident *r)
{
  struct refit_state *f = r->f;
  struct steps_job job = job_of(r, NULL);
  r->has_entry = (gidx)f->n * f->s <= STEPS_INDEX_ENTRIES;
  if (!r->has_entry) return refit_state_index(f);
  TRY(comm_agree(f->c, device_steps_index(&r->coder->device, &job, f->start)));
  for (idx a = 0; a < f->k; a++) f->counts[a] = (idx)(f->start[a + 1] - f->start[a]);
  return OK;
}

/* The function of a color_looker (refit/coloring.h).  It finds conflicts of atoms on the device,
 * which has all rows. */
static int rows_conflicts(void *self, const struct color_conflicts *look)
{
  struct resident *r = self;
  struct steps_job job = job_of(r, NULL);
  const struct steps_conflicts steps = {look->begins, look->count, look->atoms,
                                        look->marks,  look->words, look->sets};
  TRY(device_steps_conflicts(&r->coder->device, &job, &steps));
  r->has_entry = 1;
  return OK;
}

const struct color_looker *resident_looker(const struct resident *r)
{
  return r->is_on && r->f->k <= STEPS_LOOK_ATOMS ? &r->looker : NULL;
}

static struct steps_job sizes_of(const struct refit_state *f, idx q)
{
  return (struct steps_job){.n = f->n, .s = f->s, .d = f->d, .p = f->p, .k = f->k, .directions = q};
}

int resident_fits(const struct refit_state *f, const struct sparse_coder_shape *shape, gidx held,
                  idx q)
{
  struct device dry = {0};
  gidx bytes = INT64_MAX; /* stays so without a GPU */
  int status = sparse_coder_device_dry(shape, f->n, held, &dry);
  if (!status) status = sparse_coder_device_memory(shape, f->c->local_size, &bytes);
  if (status) status_clear();
  if (status || !device_is_gpu(&dry) || bytes == INT64_MAX) return 0;
  const struct steps_job job = sizes_of(f, q);
  gidx steps = device_steps_bytes(&dry, &job),
       ranks = comm_is_alone(f->c) ? comm_whole(f->c)->size : 1;
  gidx all = dry.planned_device + steps + steps_message_bytes(&job, (int)ranks);
  return steps > 0 && all <= bytes - bytes / 32;
}

int resident_agree(struct comm *c, int can, struct comm **alone)
{
  struct comm *ended = *alone;
  uint64_t lacks = !can;
  status_clear();
  comm_recover(c); /* memory may suffice if ranks divide the rows */
  TRY(comm_or(c, &lacks, 1));
  if (!lacks) {
    log_info("rows    every rank has all rows, codes its share of them, and takes its share of "
             "the steps of large classes");
    return OK;
  }
  *alone = c;
  return comm_unite(c, ended);
}

/* Joined GPUs exchange directly, others through the hosts. */
static int exchange_open(struct resident *r)
{
  struct comm *c = r->coder->share;
  const struct steps_job job = sizes_of(r->f, r->q);
  if (!c || c->size < 2) return OK;
  gidx bytes = steps_message_bytes(&job, c->size);
  TRY(arena_alloc(&r->arena, &r->counts, c->size, sizeof *r->counts));
  if (c->gpus)
    TRY(buffer_alloc_device(&r->coder->device, &r->messages, bytes));
  else
    TRY(buffer_alloc(&r->coder->device, &r->messages, bytes));
  r->share = (struct steps_peers){c->rank, c->size, &r->messages, messages_exchange, r};
  return OK;
}

int resident_open(struct resident *r, struct refit_state *f, struct sparse_coder *coder,
                  const struct coded *rows, float *table, idx q)
{
  *r = (struct resident){.f = f, .coder = coder, .rows = rows, .table = table, .q = q};
  const struct steps_job job = sizes_of(f, q);
  gidx bytes = f->c->size == 1 ? device_steps_bytes(&coder->device, &job) : 0;
  if (bytes == 0) return OK;
  TRY(arena_alloc(&r->arena, &r->results, f->k, sizeof *r->results));
  TRY(exchange_open(r));
  r->looker = (struct color_looker){r, rows_conflicts};
  r->is_on = buffer_wrap_spare(&coder->device, &r->work, NULL, bytes) == OK;
  if (r->is_on) arrays_pin(r, 1);
  if (r->is_on) return OK;
  log_info("the steps of atoms stay with the CPU: %s", status_message());
  status_clear();
  r->work = (struct buffer){0};
  return OK;
}

void resident_close(struct resident *r)
{
  if (r->is_on) arrays_pin(r, 0);
  if (r->coder) buffer_free(&r->coder->device, &r->work);
  if (r->coder) buffer_free(&r->coder->device, &r->messages);
  arena_free(&r->arena);
  *r = (struct resident){0};
}

/* The step of an atom; the determinant pair of a failed system has no meaning on the device. */
static struct atom_step step_of(const struct step_result *result)
{
  struct atom_step step = {.accepted = result->accepted,
                           .status = result->status,
                           .retries = result->retries,
                           .ridge = result->ridge,
                           .pair = result->status ? det_pair_failed() : result->pair};
  step.log_det = det_pair_value(step.pair);
  return step;
}

int resident_sweep(struct resident *r, const struct classes *classes, struct atom_step *steps,
                   struct sweep_counts *counts)
{
  struct steps_job job = job_of(r, classes);
  r->has_entry = 0;
  r->exchanged = -1;
  int is_first = r->shared == 0;
  int status = device_steps(&r->coder->device, &job);
  if (job.share)
    TRY(status); /* the others may wait for this rank's GPU: a failure must end the
                               * job */
  TRY(comm_agree(r->f->c, status));
  if (is_first && r->shared)
    log_info("steps   ranks share %lld launches of %d classes", (long long)r->shared,
             classes->count);
  *counts = (struct sweep_counts){0};
  for (idx a = 0; a < r->f->k; a++) {
    int is_dead = classes->color[a] < 0;
    steps[a] = (struct atom_step){.pair = det_pair_failed(), .log_det = nan_canonical()};
    if (is_dead) continue;
    steps[a] = step_of(&r->results[a]);
    counts->accepted += steps[a].accepted;
    counts->rejected += !steps[a].accepted;
    counts->escalated += steps[a].retries > 0;
  }
  return OK;
}

int resident_residuals(struct resident *r)
{
  struct steps_job job = job_of(r, NULL);
  return device_steps_residual(&r->coder->device, &job, r->f->residual);
}
