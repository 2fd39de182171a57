/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of all atoms on a GPU: operations of the table in backend.h.
 *
 * Floor: device; included by open.c only. */
#ifndef DEVICE_CUDA_STEPS_H
#define DEVICE_CUDA_STEPS_H

#include "device/steps.h"

int cuda_steps(struct device *dev, const struct steps_job *job);
int cuda_steps_index(struct device *dev, const struct steps_job *job, gidx *start);
int cuda_steps_conflicts(struct device *dev, const struct steps_job *job,
                         const struct steps_conflicts *look);
int cuda_steps_residual(struct device *dev, const struct steps_job *job, real *residual);
gidx cuda_steps_bytes(const struct device *dev, const struct steps_job *job);

#endif
