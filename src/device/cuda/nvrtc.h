/* SPDX-License-Identifier: BSD-3-Clause
 * NVRTC without being linked with it: the functions of <nvrtc.h> that jit.c calls, by their names.
 *
 * Floor: device.  The first call opens the library of the version that the headers have; threads
 * may call side by side.  Without a library calls give NVRTC_ERROR_INTERNAL_ERROR, and
 * nvrtcGetErrorString() says why; so it does of a function that the library lacks. */
#ifndef DEVICE_CUDA_NVRTC_H
#define DEVICE_CUDA_NVRTC_H

#include <nvrtc.h>

#endif
