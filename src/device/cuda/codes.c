/* SPDX-License-Identifier: BSD-3-Clause
 * For some rows at a time: first their Gram matrices, then their codes, by one warp per row.
 * States stay on the device between rounds. */
#include "device/cuda/codes.h"

#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"

enum { WARPS_A_MULTIPROCESSOR = 32 }; /* twice as many warps as run at a time */

gidx cuda_codes_state_bytes(idx vectors, real rho, int nonnegative)
{
  return plan_state_bytes(vectors, rho, nonnegative);
}

static void *device_side(const struct buffer *b)
{
  return b ? b->device : NULL;
}

/* Advance the arguments by some rows. */
static void args_advance(struct codes_args *a, idx rows)
{
  gidx columns = (gidx)rows * a->p;
  a->n -= rows;
  a->rows += columns;
  a->slot += (gidx)rows * a->max_m;
  if (a->residual) a->residual += columns;
  if (a->codes) a->codes += (gidx)rows * a->m_new * a->d;
  if (a->quality) a->quality += rows;
  if (a->keep) a->states += rows * a->state_bytes;
}

static idx blocks_of(const struct cuda_state *s, idx rows, idx warps)
{
  return (idx)imin(WARPS_A_MULTIPROCESSOR / warps * s->sizes.multiprocessors, rows);
}

/* Gram matrices of more than one tile have a kernel of their own.  For nonnegative codes they are
 * computed without rho. */
static int rows_solve(struct device *dev, struct codes_args *a)
{
  const struct cuda_state *s = dev->state;
  struct codes_args plain = *a;
  int nonnegative = dev->nonnegative;
  idx vectors = a->max_m * a->d, warps = codes_warps(vectors);
  struct kernel_shape shape = codes_shape(s->architecture, vectors);
  struct cuda_launch gram = {.name = KERNEL_GRAM,
                             .shape = shape,
                             .grid = {(unsigned)blocks_of(s, a->n, warps), 1, 1},
                             .block = {WARP, (unsigned)warps, 1},
                             .shared = gram_shared_bytes(vectors),
                             .arguments = nonnegative ? &plain : a};
  struct cuda_launch codes = {.name = nonnegative ? KERNEL_NONNEGATIVE : KERNEL_CODES,
                              .shape = shape,
                              .grid = {(unsigned)blocks_of(s, a->n, 1), 1, 1},
                              .block = {WARP, 1, 1},
                              .shared = nonnegative ? nonnegative_shared_bytes(vectors)
                                                    : codes_shared_bytes(vectors, a->rho),
                              .arguments = a};
  plain.rho = 0;
  if (!shape.one && a->m_old < a->m_new) TRY(cuda_launch(dev, &gram));
  return cuda_launch(dev, &codes);
}

/* States for some rows at a time, for a job that needs states although its caller gives none. */
struct own_states {
  struct codes_args all;
  idx rows; /* number of rows at a time; states_alloc() may lower it */
};

static int states_alloc(struct device *dev, struct own_states *own)
{
  struct cuda_state *s = dev->state;
  gidx bytes = own->all.state_bytes, spare;
  if (own->rows * bytes <= s->work.states.bytes) return OK; /* asking for free memory is slow */
  TRY(cuda_bytes_available(dev, &spare));
  own->rows = plan_codes_rows(&s->plan, bytes, own->all.n, spare + s->work.states.bytes);
  return cuda_reserve(s, &s->work.states, own->rows * bytes);
}

/* This may make a new plan, unless the job's atoms are in memory of the plan. */
static int states_prepare(struct device *dev, const struct codes_job *job, struct own_states *own)
{
  const struct cuda_state *s = dev->state;
  int in_use = job->atoms->device && job->atoms->device == s->work.frames.at;
  int status;
  do status = states_alloc(dev, own);
  while (!in_use && cuda_replan(dev, 0, &status));
  TRY(status);
  own->all.states = s->work.states.at;
  return OK;
}

static struct codes_args args_make(struct device *dev, const struct codes_job *job)
{
  const struct cuda_state *s = dev->state;
  gidx at = (gidx)job->first * s->options.p;
  return (struct codes_args){.rows = (const float *)job->rows->device + at,
                             .atoms = job->atoms->device,
                             .slot = job->slot->device,
                             .toward = device_side(job->toward),
                             .n = job->n,
                             .p = s->options.p,
                             .d = s->options.d,
                             .m_old = job->m_old,
                             .m_new = job->m_new,
                             .max_m = job->max_m,
                             .rho = job->rho,
                             .states = device_side(job->state),
                             .state_bytes = device_codes_state_bytes(dev, job->max_m, job->rho),
                             .keep = job->state != NULL,
                             .residual = job->residual ? (float *)job->residual->device + at : NULL,
                             .codes = device_side(job->codes),
                             .quality = device_side(job->quality)};
}

int cuda_codes(struct device *dev, const struct codes_job *job)
{
  struct own_states own = {args_make(dev, job), job->n};
  struct codes_args *all = &own.all;
  if (!job->state && job->max_m * all->d > WARP) TRY(states_prepare(dev, job, &own));
  while (all->n) {
    struct codes_args some = *all;
    some.n = (int)imin(own.rows, all->n);
    TRY(rows_solve(dev, &some));
    args_advance(all, some.n);
  }
  return cuda_finish(dev->state);
}
