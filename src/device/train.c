/* SPDX-License-Identifier: BSD-3-Clause
 * Operations for training: arguments are checked here, once for all backends. */
#include "device/train.h"

#include "base/status.h"
#include "device/backend.h"
#include "device/tensor.h"

/* ERR_DEVICE unless the device's table has the operations. */
static int device_has(const struct device *dev)
{
  CHECK(dev->backend && dev->backend->train_codes, ERR_DEVICE,
        "a device of kind '%s' has no operations for training",
        dev->backend ? dev->backend->kind : "dry");
  return OK;
}

static int sizes_check(gidx n, gidx p, gidx k)
{
  CHECK(n >= 0 && p > 0 && k > 0, ERR_INTERNAL, "%lld rows of %lld columns and %lld atoms",
        (long long)n, (long long)p, (long long)k);
  return OK;
}

int device_train_codes(struct device *dev, const struct train_codes_job *job)
{
  TRY(device_has(dev));
  TRY(sizes_check(job->n, job->p, job->k));
  CHECK(job->live.most > 0 && (!job->is_dead || job->dead.most > 0), ERR_INTERNAL,
        "%d codes a row, %d of the dead", job->live.most, job->dead.most);
  if (job->precision != PRECISION_F32) TRY(device_tensor_has(dev, job->precision));
  return dev->backend->train_codes(dev, job);
}

gidx device_train_codes_bytes(const struct device *dev, const struct train_codes_job *job)
{
  return dev->backend->train_codes_bytes(job);
}

static int batch_check(const struct device *dev, const struct train_codes_job *job)
{
  TRY(device_has(dev));
  TRY(sizes_check(job->n, job->p, job->k));
  CHECK(device_train_batch_bytes(dev, job) <= job->work_bytes, ERR_INTERNAL,
        "%lld bytes for all scores of %d rows and %d atoms", (long long)job->work_bytes, job->n,
        job->k);
  return OK;
}

int device_train_scores(struct device *dev, const struct train_codes_job *job)
{
  TRY(batch_check(dev, job));
  if (job->precision != PRECISION_F32) TRY(device_tensor_has(dev, job->precision));
  return dev->backend->train_scores(dev, job);
}

int device_train_count(struct device *dev, const struct train_codes_job *job,
                       const struct batch_cut *cut, gidx *counts)
{
  TRY(batch_check(dev, job));
  return dev->backend->train_count(dev, job, cut, counts);
}

int device_train_cut(struct device *dev, const struct train_codes_job *job,
                     const struct batch_cut *cut, gidx ties)
{
  TRY(batch_check(dev, job));
  return dev->backend->train_cut(dev, job, cut, ties);
}

int device_train_raise(struct device *dev, const struct train_codes_job *job,
                       const struct train_raise *raise)
{
  TRY(batch_check(dev, job));
  return dev->backend->train_raise(dev, job, raise);
}

gidx device_train_batch_bytes(const struct device *dev, const struct train_codes_job *job)
{
  return dev->backend->train_batch_bytes(job);
}

int device_train_blocks(struct device *dev, const struct train_blocks_job *job)
{
  TRY(device_has(dev));
  TRY(sizes_check(job->n, 1, job->k));
  return dev->backend->train_blocks(dev, job);
}

int device_train_suffix(struct device *dev, float *errors, gidx n, int blocks, idx p)
{
  TRY(device_has(dev));
  TRY(sizes_check(n, p, blocks));
  return n ? dev->backend->train_suffix(dev, errors, n, blocks, p) : OK;
}

int device_train_block_get(struct device *dev, const float *errors, gidx n, int blocks, int block,
                           idx p, float *to)
{
  TRY(device_has(dev));
  TRY(sizes_check(n, p, blocks));
  CHECK(block >= 0 && block < blocks, ERR_INTERNAL, "block %d of %d", block, blocks);
  return n ? dev->backend->train_block_get(dev, errors, n, blocks, block, p, to) : OK;
}

int device_train_offset(struct device *dev, float *x, gidx n, idx p, const float *offset)
{
  TRY(device_has(dev));
  TRY(sizes_check(n, p, 1));
  return dev->backend->train_offset(dev, x, n, p, offset);
}

int device_train_sums(struct device *dev, const float *rows, gidx n, gidx stride, idx p, float *to)
{
  TRY(device_has(dev));
  TRY(sizes_check(n, p, 1));
  CHECK(stride >= p, ERR_INTERNAL, "rows of %d columns at a stride of %lld", p, (long long)stride);
  return dev->backend->train_sums(dev, rows, n, stride, p, to);
}

int device_train_errors(struct device *dev, const struct train_errors_job *job)
{
  TRY(device_has(dev));
  TRY(sizes_check(job->n, job->p, 1));
  return job->n ? dev->backend->train_errors(dev, job) : OK;
}

int device_train_scale(struct device *dev, float *values, gidx count, float factor)
{
  TRY(device_has(dev));
  return count > 0 ? dev->backend->train_scale(dev, values, count, factor) : OK;
}

int device_train_transpose(struct device *dev, const struct train_transpose_job *job)
{
  TRY(device_has(dev));
  TRY(sizes_check(job->n, 1, job->k));
  CHECK(job->first >= 0 && job->atoms >= 0 && job->first + job->atoms <= job->k, ERR_INTERNAL,
        "%lld of %d atoms from %lld on", (long long)job->atoms, job->k, (long long)job->first);
  return dev->backend->train_transpose(dev, job);
}

gidx device_train_transpose_bytes(const struct device *dev, idx n, idx k)
{
  return dev->backend->train_transpose_bytes ? dev->backend->train_transpose_bytes(n, k) : 0;
}

int device_train_idle(struct device *dev, const struct train_idle_job *job)
{
  TRY(device_has(dev));
  TRY(sizes_check(job->n, 1, job->k));
  return dev->backend->train_idle(dev, job);
}

int device_train_tangent(struct device *dev, const float *atoms, gidx count, idx p, float *gradient)
{
  TRY(device_has(dev));
  TRY(sizes_check(count, p, 1));
  return count ? dev->backend->train_tangent(dev, atoms, count, p, gradient) : OK;
}

int device_train_normalize(struct device *dev, float *atoms, gidx count, idx p)
{
  TRY(device_has(dev));
  TRY(sizes_check(count, p, 1));
  return count ? dev->backend->train_normalize(dev, atoms, count, p) : OK;
}
