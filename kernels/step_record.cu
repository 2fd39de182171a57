/* SPDX-License-Identifier: BSD-3-Clause
 * step_record: copies the frames, codes and results of steps.  With is_writer it copies them from
 * this rank's arrays to its message, and otherwise from messages of other ranks to this rank's
 * arrays.  Frames and codes are copied only for accepted steps.
 *
 * grid     items
 * block    RECORD_THREADS */
#include "step_types.h"

/* Copy `count` reals to the record, or from it. */
static __device__ inline void reals_copy(const struct record_args *a, double *record, double *own,
                                         int count)
{
  double *to = a->is_writer ? record : own;
  const double *from = a->is_writer ? own : record;
  for (int i = threadIdx.x; i < count; i += RECORD_THREADS) to[i] = from[i];
}

extern "C" __global__ void __launch_bounds__(RECORD_THREADS)
    step_record(const __grid_constant__ struct record_args a)
{
  int at = blockIdx.x, frame = a.d * a.p;
  const struct step_item *item = a.items + at + (at < a.skip ? 0 : a.skipped);
  double *record = a.messages + item->record, *codes = record + STEP_FOUND + frame;
  struct step_found *found = a.found + item->atom;
  int accepted = (a.is_writer ? found : (const struct step_found *)record)->accepted;
  reals_copy(&a, record, (double *)found, STEP_FOUND);
  if (!accepted) return;
  reals_copy(&a, record + STEP_FOUND, a.frames + (long long)item->atom * frame, frame);
  for (int i = threadIdx.x; i < item->n * a.d; i += RECORD_THREADS) {
    double *own = a.codes + a.entry[item->first + i / a.d] * a.d + i % a.d;
    if (a.is_writer)
      codes[i] = *own;
    else
      *own = codes[i];
  }
}
