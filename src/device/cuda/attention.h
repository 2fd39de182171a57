/* SPDX-License-Identifier: BSD-3-Clause
 * Attention of many sequences on a GPU: operations of the table in backend.h.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_ATTENTION_H
#define DEVICE_CUDA_ATTENTION_H

#include "device/cuda/cuda.h"

int cuda_attend_open(struct attend *w, const struct attend_plan *plan);
void cuda_attend_close(struct attend *w);
int cuda_attend_run(struct attend *w, const struct attend_job *job);
int cuda_attend_attribute(struct attend *w, const struct attribute_job *job);

#endif
