/* SPDX-License-Identifier: BSD-3-Clause
 * Arrow systems on a GPU.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_ARROW_H
#define DEVICE_CUDA_ARROW_H

#include "device/cuda/cuda.h"

/* Operations of the table. */
int cuda_arrow(struct device *dev, struct arrow_job *job);
int cuda_arrow_ready(struct device *dev, const struct arrow_job *job);

/* Free what is kept between jobs. */
void cuda_arrow_close(struct cuda_state *s);

#endif
