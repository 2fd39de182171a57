/* SPDX-License-Identifier: BSD-3-Clause
 * Kernels on the device: loading and launching.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_LOAD_H
#define DEVICE_CUDA_LOAD_H

#include "device/cuda/cuda.h"

/* Launch a kernel on the computing stream with one struct as argument; it is compiled and loaded
 * where it was not yet. */
struct cuda_launch {
  enum kernel_name name;
  struct kernel_shape shape;
  dim3 grid, block;
  int cluster;  /* blocks of a cluster, from 9.0 on; 0: there are none */
  int shared;   /* bytes of dynamic shared memory */
  int is_dense; /* as many blocks as its shared memory allows, at the first-level cache's cost */
  int is_early; /* it may begin when all blocks of the launch before let it, from 9.0 on */
  void *arguments;
  cudaStream_t stream; /* NULL: the computing one */
};
int cuda_launch(struct device *dev, const struct cuda_launch *launch);

/* *clusters <- how many clusters of this launch the GPU can hold at a time. */
int cuda_clusters(struct device *dev, const struct cuda_launch *launch, int *clusters);

/* Load kernels that are not loaded yet; threads compile side by side.  One that cannot be compiled
 * is left to its launch, which says why. */
int cuda_load(struct device *dev, const struct kernel_recipe *recipes, int count);

/* Load what jobs of the device's options are likely to launch. */
int cuda_prepare(struct device *dev);

/* May the filter's kernels weaken its proof, for a test? */
static inline int cuda_test_hooks(const struct cuda_state *s)
{
  const struct device_test *test = s->options.test;
  return test && (test->bound != 0 || test->threshold != 0);
}

#endif
