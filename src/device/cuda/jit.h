/* SPDX-License-Identifier: BSD-3-Clause
 * Compiling kernels at run time, or finding them in the cache on disk.
 *
 * Floor: device.  Needs NVRTC, but no driver and no GPU. */
#ifndef DEVICE_CUDA_JIT_H
#define DEVICE_CUDA_JIT_H

#include "device/cuda/cache.h"
#include "device/cuda/kernels.h"

/* Compile a kernel for an architecture (90 means sm_90a), from the texts in `folder`, or from those
 * built in if it is NULL.  Unless `log` is NULL, *log <- what the compiler reports about registers;
 * the caller frees it.  It is not set if the kernel does not compile.  ERR_INTERNAL with the
 * compiler's errors; ERR_DEVICE if NVRTC is not built in, is not found, or fails; ERR_IO if a text
 * in `folder` cannot be read; ERR_INPUT if a header in `folder` that launchers share is not the
 * built-in one. */
int kernel_compile(const struct kernel_recipe *recipe, int architecture, const char *folder,
                   struct kernel_image *image, char **log);

/* The same through the cache on disk; a damaged entry is replaced. */
int kernel_image_get(const struct kernel_recipe *recipe, int architecture, const char *folder,
                     struct kernel_image *image);

#endif
