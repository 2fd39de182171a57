/* SPDX-License-Identifier: BSD-3-Clause
 * step_follow: updates residuals after a launch in which other ranks made the steps of some
 * atoms.  Frames and codes are still the old ones here; step_record replaces them in the next
 * launch.
 * grid     (items, any number): the blocks of an item take its rows in turn, FOLLOW_ROWS at a time
 * block    RECORD_THREADS
 * sums     as the step kernel updates a row (step_moved.h)
 *
 * -D STEP_D  vectors per frame */
#include "step_moved.h"
#include "step_types.h"

/* Some rows of an atom: pointers to them, and their codes before and after. */
struct followers {
  double *row[FOLLOW_ROWS];
  double t[FOLLOW_ROWS][D], t_new[FOLLOW_ROWS][D];
};

static __device__ inline void followers_find(struct followers *f, const struct record_args *a,
                                             const struct step_item *item, int first, int count)
{
  const double *codes = a->messages + item->record + STEP_FOUND + D * a->p;
  for (int i = threadIdx.x; i < count; i += RECORD_THREADS) {
    long long entry = a->entry[item->first + first + i];
    f->row[i] = a->residual + entry / a->s * a->p;
    for (int m = 0; m < D; m++) {
      f->t[i][m] = a->codes[entry * D + m];
      f->t_new[i][m] = codes[(long long)(first + i) * D + m];
    }
  }
}

extern "C" __global__ void __launch_bounds__(RECORD_THREADS)
    step_follow(const __grid_constant__ struct record_args a)
{
  __shared__ struct followers f;
  int at = blockIdx.x;
  const struct step_item *item = a.items + at + (at < a.skip ? 0 : a.skipped);
  const double *record = a.messages + item->record, *u_new = record + STEP_FOUND;
  const double *u_old = a.frames + (long long)item->atom * D * a.p;
  if (!((const struct step_found *)record)->accepted) return;
  for (int first = blockIdx.y * FOLLOW_ROWS; first < item->n; first += gridDim.y * FOLLOW_ROWS) {
    int left = item->n - first, count = left < FOLLOW_ROWS ? left : FOLLOW_ROWS;
    __syncthreads();
    followers_find(&f, &a, item, first, count);
    __syncthreads();
    for (int c = threadIdx.x; c < a.p; c += RECORD_THREADS) {
      double before[D], after[D];
#pragma unroll
      for (int m = 0; m < D; m++) {
        before[m] = u_old[m * a.p + c];
        after[m] = u_new[m * a.p + c];
      }
#pragma unroll 4
      for (int i = 0; i < count; i++)
        f.row[i][c] = moved(added_back(f.row[i][c], before, f.t[i]), after, f.t_new[i]);
    }
  }
}
