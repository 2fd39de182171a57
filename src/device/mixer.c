/* SPDX-License-Identifier: BSD-3-Clause
 * Gated delta nets: check the buffers that a call reads and writes, once for all backends. */
#include "device/mixer.h"

#include <stdlib.h>

#include "base/num.h"
#include "base/memory.h"
#include "base/status.h"
#include "device/backend.h"

int mixer_open(struct mixer *w, struct device *dev, const struct mixer_plan *plan)
{
  *w = (struct mixer){.device = dev, .net = *plan->mixer, .most = *plan};
  w->most.mixer = NULL;
  CHECK_HAS(dev, mixer_run);
  TRY(gated_delta_check(&w->net));
  w->way = memory_zeroed((size_t)imax(plan->sequences, 1));
  w->owner = memory_zeroed((size_t)imax(plan->slots, 1) * sizeof *w->owner);
  CHECK(w->way && w->owner, ERR_MEMORY, "cannot allocate a list of %d slots", plan->slots);
  return dev->backend->mixer_open ? dev->backend->mixer_open(w) : OK;
}

void mixer_close(struct mixer *w)
{
  if (w->state) w->device->backend->mixer_close(w);
  free(w->way);
  free(w->owner);
  *w = (struct mixer){0};
}

/* A buffer must have the bytes that a call uses.  A view of host memory has bytes 0: not
 * checked. */
static int buffer_check(const char *name, const struct buffer *b, gidx floats)
{
  CHECK(b || !floats, ERR_INTERNAL, "there is no buffer for %s", name);
  CHECK(!b || !b->bytes || b->bytes >= floats * 4, ERR_INTERNAL,
        "the buffer of %s has %lld bytes, %lld are needed", name, (long long)b->bytes,
        (long long)floats * 4);
  return OK;
}

static int buffers_check(const struct mixer *w, const struct mixer_job *job)
{
  const struct gated_delta *m = &w->net;
  gidx tokens = job->start[job->slots.sequences], channels = gated_delta_channels(m);
  gidx heads = tokens * job->count, slots = job->slots.slots;
  TRY(buffer_check("x", job->x, tokens * channels));
  TRY(buffer_check("g", job->g, heads * gated_delta_decays(m)));
  TRY(buffer_check("beta", job->beta, heads));
  TRY(buffer_check("o", job->o, heads * m->dv));
  TRY(buffer_check("s", job->s, slots * job->count * m->dv * m->d));
  if (!m->width) return OK;
  if (job->conv_bias) TRY(buffer_check("conv_bias", job->conv_bias, channels));
  TRY(buffer_check("conv", job->conv, channels * m->width));
  return buffer_check("taps", job->taps, slots * channels * (m->width - 1));
}

static int call_check(const struct mixer *w, const struct mixer_job *job)
{
  idx n = job->slots.sequences;
  CHECK(n >= 0 && n <= w->most.sequences && job->slots.slots <= w->most.slots, ERR_INTERNAL,
        "there are %d sequences and %d slots, but the plan is for %d and %d", n, job->slots.slots,
        w->most.sequences, w->most.slots);
  CHECK(job->start[0] == 0 && job->start[n] <= w->most.tokens, ERR_INTERNAL,
        "there are %lld tokens from %lld on, but the plan is for %lld", (long long)job->start[n],
        (long long)job->start[0], (long long)w->most.tokens);
  for (idx i = 0; i < n; i++)
    CHECK(job->start[i + 1] >= job->start[i], ERR_INTERNAL, "sequence %d has %lld tokens", i,
          (long long)(job->start[i + 1] - job->start[i]));
  CHECK(job->first >= 0 && job->count >= 1 && job->first + job->count <= w->net.heads, ERR_INTERNAL,
        "heads %d .. %d of %d", job->first, job->first + job->count - 1, w->net.heads);
  return buffers_check(w, job);
}

int mixer_run(struct mixer *w, const struct mixer_job *job)
{
  idx gathered;
  CHECK_HAS(w->device, mixer_run);
  TRY(call_check(w, job));
  TRY(delta_slots_plan(&job->slots, w->way, w->owner, &gathered));
  w->gathered += gathered;
  for (idx i = 0; i < job->slots.sequences; i++) {
    w->read += job->slots.in[i] >= 0;
    w->written += job->slots.out[i] >= 0;
  }
  return w->device->backend->mixer_run(w, job);
}
