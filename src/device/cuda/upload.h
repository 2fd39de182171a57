/* SPDX-License-Identifier: BSD-3-Clause
 * Copies of large host arrays that are not page-locked to the GPU.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_UPLOAD_H
#define DEVICE_CUDA_UPLOAD_H

#include "device/cuda/cuda.h"

/* to[bytes] on the device <- from[bytes], in order on the computing stream.  On return `from` has
 * been read, and may change. */
int cuda_upload(struct cuda_state *s, void *to, const void *from, gidx bytes);
void cuda_upload_close(struct cuda_state *s);

#endif
