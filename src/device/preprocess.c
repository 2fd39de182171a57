/* SPDX-License-Identifier: BSD-3-Clause
 * Memory is allocated here, so that a dry device counts it.  The backend has preprocess_run() and
 * preprocess_sums(). */
#include "device/preprocess.h"

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "device/backend.h"

enum { FOUND_WORDS = 2 }; /* struct preprocess_found of kernels/types.h */

/* The most sum blocks that can end in the rows of a call. */
static gidx most_ended(const struct preprocess_shape *shape)
{
  return shape->block / ROW_BLOCK + 1;
}

static int sums_alloc(struct preprocess *in)
{
  gidx row = 2 * (gidx)in->shape.count * (gidx)sizeof(real);
  TRY(buffer_alloc(in->device, &in->shift, row / 2));
  for (int i = 0; i < 2; i++) TRY(buffer_alloc_device(in->device, &in->chains[i], row));
  return buffer_alloc_device(in->device, &in->ended, most_ended(&in->shape) * row);
}

int preprocess_open(struct preprocess *in, struct device *dev, const struct preprocess_shape *shape)
{
  *in = (struct preprocess){.device = dev, .shape = *shape};
  CHECK(dev->is_dry || dev->backend->preprocess_run, ERR_DEVICE,
        "a device of kind '%s' takes no rows in", dev->kind);
  gidx mean = shape->mean ? shape->p * (gidx)sizeof(real) : 0;
  TRY(buffer_alloc_device(dev, &in->found, FOUND_WORDS * (gidx)sizeof(uint64_t)));
  if (mean) TRY(buffer_wrap(dev, &in->mean, (void *)(uintptr_t)shape->mean, mean));
  if (!dev->is_dry) TRY(device_put(dev, &in->mean, 0, mean));
  return shape->count ? sums_alloc(in) : OK;
}

void preprocess_close(struct preprocess *in)
{
  struct buffer *const all[] = {&in->mean,      &in->shift,     &in->found,
                                &in->chains[0], &in->chains[1], &in->ended};
  for (int i = 0; in->device && i < LENGTH(all); i++) buffer_free(in->device, all[i]);
  *in = (struct preprocess){0};
}

int preprocess_run(struct preprocess *in, struct preprocess_job *job)
{
  job->terms = 0;
  job->bad = -1;
  return job->n ? in->device->backend->preprocess_run(in, job) : OK;
}

int preprocess_shift(struct preprocess *in, const real *shift)
{
  gidx bytes = in->shape.count * (gidx)sizeof *shift;
  if (bytes) memcpy(in->shift.host, shift + in->shape.first, (size_t)bytes);
  return device_put(in->device, &in->shift, 0, bytes);
}

int preprocess_sums(struct preprocess *in, const struct buffer *rows, gidx first, idx n,
                    real *ended)
{
  CHECK(n <= in->shape.block && first + n <= in->shape.n, ERR_INTERNAL,
        "%d rows at %lld of %lld, where %d were expected", n, (long long)first,
        (long long)in->shape.n, in->shape.block);
  if (!n || !in->shape.count) return OK;
  TRY(in->device->backend->preprocess_sums(in, rows, first, n, ended));
  in->turn = !in->turn;
  return OK;
}
