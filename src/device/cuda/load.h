/* SPDX-License-Identifier: BSD-3-Clause
 * Kernels on the device: loading and launching.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_LOAD_H
#define DEVICE_CUDA_LOAD_H

#include "device/cuda/cuda.h"

/* Launch a kernel on the computing stream, with one struct as its argument.  It is first compiled
 * and loaded if necessary. */
struct cuda_launch {
  enum kernel_name name;
  struct kernel_shape shape;
  dim3 grid, block;
  int cluster;  /* blocks of a cluster, compute capability 9.0 and newer; 0: no clusters */
  int shared;   /* bytes of dynamic shared memory */
  int is_dense; /* 1: prefer shared memory to L1 cache, so that more blocks fit */
  int is_early; /* 1: may begin before the previous launch ends, 9.0 and newer */
  void *arguments;
  cudaStream_t stream; /* NULL: the computing stream */
};
int cuda_launch(struct device *dev, const struct cuda_launch *launch);

/* *clusters <- the number of clusters of this launch that the GPU can hold at a time. */
int cuda_clusters(struct device *dev, const struct cuda_launch *launch, int *clusters);

/* Load kernels that are not loaded yet; threads compile in parallel.  If a kernel cannot be
 * compiled, its first launch reports the error. */
int cuda_load(struct device *dev, const struct kernel_recipe *recipes, int count);

/* Load the kernels that jobs with the device's options are likely to launch. */
int cuda_prepare(struct device *dev);

/* Does a test ask for kernels of the certified filter that can weaken the filter's proof? */
static inline int cuda_test_hooks(const struct cuda_state *s)
{
  const struct device_test *test = s->options.test;
  return test && (test->bound != 0 || test->threshold != 0);
}

#endif
