/* SPDX-License-Identifier: BSD-3-Clause
 * Codes on a GPU: Gram matrices of some rows, then a warp a row; states stay on the device between
 * rounds. */
#include "base/log.h"
#include "base/status.h"
#include "device/cuda.h"
#include "plan.h"

enum { WARPS_A_MULTIPROCESSOR = 32 };       /* twice what runs at a time */
static const gidx STATES_BYTES = 1ll << 30; /* of rows at a time, at most, unless one needs more */

gidx cuda_codes_state(const struct device *dev, idx m_most, real rho)
{
  const struct cuda_state *s = dev->state;
  return codes_state_bytes(m_most * s->options.d, rho);
}

/* Without states of the caller there is one for each of *rows rows, which are halved while memory
 * is short; then a dictionary that is not in use does with less. */
static int states_take(struct device *dev, const struct buffer *atoms, gidx bytes, idx *rows)
{
  struct cuda_state *s = dev->state;
  gidx most = STATES_BYTES / bytes > 1 ? STATES_BYTES / bytes : 1;
  if (*rows > most) *rows = (idx)most;
  int status = cuda_reserve(s, &s->states, *rows * bytes);
  while (status == ERR_MEMORY) {
    if (*rows == 1) {
      if (s->window == 0 || atoms->device == s->filter.frames.at) return status;
      TRY(cuda_window_halve(dev));
    } else {
      *rows = (*rows + 1) / 2;
      log_rank("memory of GPU %d is short: codes of %d rows at a time", s->number, *rows);
      status_clear();
    }
    status = cuda_reserve(s, &s->states, *rows * bytes);
  }
  return status;
}

static void *device_side(const struct buffer *b)
{
  return b ? b->device : NULL;
}

/* Move the arguments on by some rows. */
static void args_advance(struct codes_args *a, idx rows)
{
  gidx columns = (gidx)rows * a->p;
  a->n -= rows;
  a->rows += columns;
  a->slot += (gidx)rows * a->m_most;
  if (a->residual) a->residual += columns;
  if (a->codes) a->codes += (gidx)rows * a->m_new * a->d;
  if (a->quality) a->quality += rows;
  if (a->keep) a->states += rows * a->state_bytes;
}

static idx blocks_of(const struct cuda_state *s, idx rows, idx warps)
{
  idx blocks = WARPS_A_MULTIPROCESSOR / warps * s->multiprocessors;
  return blocks < rows ? blocks : rows;
}

struct kernel_shape cuda_codes_shape(const struct cuda_state *s, idx vectors)
{
  return (struct kernel_shape){.mma = s->architecture == 90, .one = codes_chunks(vectors) == 1};
}

static int rows_solve(struct device *dev, struct codes_args *a)
{
  const struct cuda_state *s = dev->state;
  idx vectors = a->m_most * a->d, warps = codes_warps(vectors);
  struct kernel_shape shape = cuda_codes_shape(s, vectors);
  struct cuda_launch gram = {.name = KERNEL_GRAM,
                             .shape = shape,
                             .grid = {(unsigned)blocks_of(s, a->n, warps), 1, 1},
                             .block = {WARP, (unsigned)warps, 1},
                             .shared = gram_shared_bytes(vectors),
                             .arguments = a};
  struct cuda_launch codes = {.name = KERNEL_CODES,
                              .shape = shape,
                              .grid = {(unsigned)blocks_of(s, a->n, 1), 1, 1},
                              .block = {WARP, 1, 1},
                              .shared = codes_shared_bytes(vectors, a->rho),
                              .arguments = a};
  if (!shape.one && a->m_old < a->m_new) TRY(cuda_launch(dev, &gram));
  return cuda_launch(dev, &codes);
}

int cuda_codes(struct device *dev, const struct codes_job *job)
{
  struct cuda_state *s = dev->state;
  idx p = s->options.p, rows = job->n;
  gidx at = (gidx)job->first * p;
  struct codes_args all = {.rows = (const float *)job->rows->device + at,
                           .atoms = job->atoms->device,
                           .slot = job->slot->device,
                           .n = job->n,
                           .p = p,
                           .d = s->options.d,
                           .m_old = job->m_old,
                           .m_new = job->m_new,
                           .m_most = job->m_most,
                           .rho = job->rho,
                           .states = device_side(job->state),
                           .state_bytes = cuda_codes_state(dev, job->m_most, job->rho),
                           .keep = job->state != NULL,
                           .codes = device_side(job->codes),
                           .quality = device_side(job->quality)};
  if (job->residual) all.residual = (float *)job->residual->device + at;
  if (!job->state && rows && job->m_most * all.d > WARP) {
    TRY(states_take(dev, job->atoms, all.state_bytes, &rows));
    all.states = s->states.at;
  }
  while (all.n) {
    struct codes_args some = all;
    if (some.n > rows) some.n = rows;
    TRY(rows_solve(dev, &some));
    args_advance(&all, some.n);
  }
  return cuda_finish(s);
}
