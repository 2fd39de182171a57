/* SPDX-License-Identifier: BSD-3-Clause
 * The certified filter on a GPU (doc/certified.md): its state, and routing of rows by it.
 *
 * Floor: device.  cuda_filter_atoms.c has the dictionary, cuda_filter_probe.c tries the matrix
 * unit, cuda_filter.c routes. */
#ifndef DEVICE_CUDA_FILTER_H
#define DEVICE_CUDA_FILTER_H

#include <cuda_runtime_api.h>

#include "base/types.h"
#include "device/cuda_kernels.h"
#include "device/device.h"
#include "filter_types.h"

struct cuda_state;
struct cuda_step;

/* Memory of the device that grows when asked. */
struct cuda_work {
  void *at;
  gidx bytes;
};

struct cuda_filter {
  int is_on, is_automatic; /* automatic: off again where it does not pay */
  int wgmma;               /* as in struct filter_form */
  int is_tried;            /* the matrix unit, and it did as assumed */
  double gamma;            /* (C.8) */
  idx first, filled;       /* slots that are short operands now */
  idx turn, sampled;       /* their order, and how many are the sample; 0: too few for one */
  struct cuda_work frames; /* [window][d][pitch] f32 */
  struct cuda_work halves, most;
  struct cuda_work rows, work;
  cudaEvent_t marks[FILTER_LEFT + 1]; /* around the stages */
};

/* (C.8) A bound on the error of a sum of `terms` products by the matrix unit, as a part of the sum
 * of their magnitudes: groups are added to the accumulator, aligned to the largest exponent and cut
 * to a number of fraction bits.  Twice what is observed; infinity for too many terms. */
double cuda_filter_gamma(int architecture, gidx terms);

/* Is the filter wanted and worth its start?  ERR_DEVICE where `on` cannot be. */
int cuda_filter_open(struct device *dev);
void cuda_filter_close(struct cuda_state *s);

/* Floats from one f32 vector to the next, for 16 bytes to be copied at a time. */
static inline idx cuda_filter_pitch(idx p)
{
  return (p + 3) / 4 * 4;
}

/* Room for f32 frames of so many slots, and nothing there; or give it up. */
int cuda_filter_take(struct cuda_state *s, gidx slots);
/* Give its memory back, which is taken again at need; for good; or, 1 if that was possible, because
 * others need the memory. */
void cuda_filter_release(struct cuda_state *s);
void cuda_filter_stop(struct cuda_state *s);
int cuda_filter_drop(struct cuda_state *s);

/* Frames from slot `to` of the window on <- count frames on the device. */
int cuda_filter_put(struct cuda_state *s, const float *frames, idx count, idx to);

/* The frames, where they are all atoms put so far one after another; else a zeroed buffer. */
struct buffer cuda_filter_atoms(const struct device *dev);

/* Short operands of what the window has; the first call tries the matrix unit, and
 * turns the filter off, saying so, where it fails. */
int cuda_filter_prepare(struct device *dev);

/* Are sums of the matrix unit as near as (C.8) assumes, on planted and on random vectors? */
int cuda_filter_probe(struct device *dev, int *good);

/* As cuda_step_exact(), by way of the filter. */
int cuda_filter_step(struct cuda_step *t);

/* Launch a kernel of the filter with a warp a row, `shared` bytes of shared memory a warp. */
int cuda_filter_launch(struct device *dev, enum kernel_name name, struct filter_args *a, gidx rows,
                       gidx shared);
/* Launch the product; a->blocks is set. */
int cuda_filter_product(struct device *dev, struct filter_args *a, int sample);

#endif
