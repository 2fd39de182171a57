/* SPDX-License-Identifier: BSD-3-Clause
 * The functions of CUDA's runtime under their own names, for a program that is not linked with the
 * runtime and also starts on machines without it, such as the program of the Python wheel.
 *
 * Floor: device.  The first call opens libcudart of the headers' version, by DT_RPATH or where the
 * loader looks.  If there is none, each call fails, and cudaGetErrorString() says what to
 * install. */
#ifndef DEVICE_CUDA_RUNTIME_LATE_H
#define DEVICE_CUDA_RUNTIME_LATE_H

#include <cuda_runtime_api.h>

#endif
