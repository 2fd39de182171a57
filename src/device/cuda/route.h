/* SPDX-License-Identifier: BSD-3-Clause
 * Routing of a job on a GPU.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_ROUTE_H
#define DEVICE_CUDA_ROUTE_H

#include "device/cuda/cuda.h"

/* Operations of the table. */
int cuda_route(struct device *dev, struct route_job *job);
int cuda_scatter(struct device *dev, const struct scatter_job *job);

#endif
