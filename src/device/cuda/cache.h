/* SPDX-License-Identifier: BSD-3-Clause
 * Compiled kernels on disk, under $XDG_CACHE_HOME/sagitta or ~/.cache/sagitta.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_CACHE_H
#define DEVICE_CUDA_CACHE_H

#include <stddef.h>

struct kernel_image {
  void *bytes; /* owned: free() */
  size_t size;
};

/* *image <- what the cache has for a key, a text that names everything on which the image depends.
 * Returns 1 when it was found and is intact. */
int cache_find(const char *key, struct kernel_image *image);

/* Failures are only logged: a cache is not needed. */
void cache_store(const char *key, const struct kernel_image *image);

#endif
