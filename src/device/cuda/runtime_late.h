/* SPDX-License-Identifier: BSD-3-Clause
 * CUDA's runtime for a program that begins where there is none, as that of the Python wheel: its
 * functions under their own names, in the place of a library that is linked.
 *
 * Floor: device.  The first call opens libcudart of the headers' version, by DT_RPATH or where the
 * loader looks.  Without one each call fails, cudaGetErrorString() says what to install, and
 * the device is the CPU. */
#ifndef DEVICE_CUDA_RUNTIME_LATE_H
#define DEVICE_CUDA_RUNTIME_LATE_H

#include <cuda_runtime_api.h>

#endif
