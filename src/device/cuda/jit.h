/* SPDX-License-Identifier: BSD-3-Clause
 * Compiling kernels at run time, or finding them in the cache on disk.
 *
 * Floor: device.  Needs NVRTC, but no driver and no GPU. */
#ifndef DEVICE_CUDA_JIT_H
#define DEVICE_CUDA_JIT_H

#include "device/cuda/cache.h"
#include "device/cuda/kernels.h"

/* Compile for an architecture (90 is sm_90a); the texts are those of `folder`, or built in where
 * that is NULL.  *log (owned by the caller; may be NULL) receives what the compiler said about
 * registers.  ERR_INTERNAL with its errors; ERR_DEVICE in a build without NVRTC. */
int kernel_compile(const struct kernel_recipe *recipe, int architecture, const char *folder,
                   struct kernel_image *image, char **log);

/* The same from the cache, which it fills; a damaged entry is made again. */
int kernel_image_get(const struct kernel_recipe *recipe, int architecture, const char *folder,
                     struct kernel_image *image);

#endif
