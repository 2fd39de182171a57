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

/* *image <- the image that the cache has for a key.  The key is a text that names everything on
 * which the image depends.  Returns 1 if the image was found and is intact, otherwise 0. */
int cache_find(const char *key, struct kernel_image *image);

/* Failures are only logged, because programs work without the cache. */
void cache_store(const char *key, const struct kernel_image *image);

#endif
