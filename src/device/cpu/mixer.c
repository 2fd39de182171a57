/* SPDX-License-Identifier: BSD-3-Clause
 * Gated delta nets on the CPU. */
#include "device/mixer.h"

#include "device/cpu/cpu.h"

int cpu_mixer_run(struct mixer *w, const struct mixer_job *job)
{
  const struct gated_delta_call call = {
      .slots = job->slots,
      .first = job->first,
      .count = job->count,
      .start = job->start,
      .x = job->x->device,
      .conv = job->conv ? job->conv->device : NULL,
      .conv_bias = job->conv_bias ? job->conv_bias->device : NULL,
      .g = job->g->device,
      .beta = job->beta->device,
      .s = job->s ? job->s->device : NULL,
      .taps = job->taps ? job->taps->device : NULL,
      .o = job->o->device,
  };
  return gated_delta_run(&w->net, &call);
}
