/* SPDX-License-Identifier: BSD-3-Clause
 * Codes on a GPU: a warp a row; states stay on the device between rounds. */
#include "base/log.h"
#include "base/status.h"
#include "device/cuda.h"
#include "plan.h"

enum { BLOCKS_A_MULTIPROCESSOR = 20 };
static const gidx STATES_BYTES = (gidx)4 << 30; /* of blocks, at most, unless one needs more */

gidx cuda_codes_state(const struct device *dev, idx m_most, real rho)
{
  const struct cuda_state *s = dev->state;
  return codes_state_bytes(m_most * s->options.d, rho);
}

/* Without states of the caller each block has one, for one row after another; *blocks is halved
 * while memory is short. */
static int states_take(struct cuda_state *s, gidx bytes, idx *blocks)
{
  int status = cuda_reserve(s, &s->states, *blocks * bytes);
  while (status == ERR_MEMORY && *blocks > 1) {
    *blocks = (*blocks + 1) / 2;
    log_rank("memory of GPU %d is short: codes of %d rows at a time", s->number, *blocks);
    status_clear();
    status = cuda_reserve(s, &s->states, *blocks * bytes);
  }
  return status;
}

static void *device_side(const struct buffer *b)
{
  return b ? b->device : NULL;
}

int cuda_codes(struct device *dev, const struct codes_job *job)
{
  struct cuda_state *s = dev->state;
  idx p = s->options.p, d = s->options.d, blocks = BLOCKS_A_MULTIPROCESSOR * s->multiprocessors;
  gidx at = (gidx)job->first * p;
  struct codes_args args = {.rows = (const float *)job->rows->device + at,
                            .atoms = job->atoms->device,
                            .slot = job->slot->device,
                            .n = job->n,
                            .p = p,
                            .d = d,
                            .m_old = job->m_old,
                            .m_new = job->m_new,
                            .m_most = job->m_most,
                            .rho = job->rho,
                            .states = device_side(job->state),
                            .state_bytes = cuda_codes_state(dev, job->m_most, job->rho),
                            .keep = job->state != NULL,
                            .codes = device_side(job->codes),
                            .quality = device_side(job->quality)};
  if (job->residual) args.residual = (float *)job->residual->device + at;
  if (job->state || blocks > job->n) blocks = job->n;
  if (!job->state) {
    gidx most = STATES_BYTES / args.state_bytes;
    if (blocks > most) blocks = most > 1 ? (idx)most : 1;
    int status = states_take(s, args.state_bytes, &blocks);
    while (status == ERR_MEMORY) {
      TRY(cuda_window_halve(dev));
      status = states_take(s, args.state_bytes, &blocks);
    }
    TRY(status);
    args.states = s->states.at;
  }
  struct cuda_launch launch = {.name = KERNEL_CODES,
                               .shape = {.mma = s->architecture == 90},
                               .grid = {(unsigned)blocks, 1, 1},
                               .block = {WARP, 1, 1},
                               .shared = codes_shared_bytes(job->m_most * d),
                               .arguments = &args};
  TRY(cuda_launch(dev, &launch));
  return cuda_finish(s);
}
