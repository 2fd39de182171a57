/* SPDX-License-Identifier: BSD-3-Clause
 * The functions of <nvrtc.h> that jit.c calls, under their own names, without linking NVRTC.
 *
 * Floor: device.  The first call opens the library of the version that the headers have; several
 * threads may call at once.  If there is no library, or it lacks a function, calls give
 * NVRTC_ERROR_INTERNAL_ERROR, and nvrtcGetErrorString() says why. */
#ifndef DEVICE_CUDA_NVRTC_H
#define DEVICE_CUDA_NVRTC_H

#include <nvrtc.h>

#endif
