/* SPDX-License-Identifier: BSD-3-Clause
 * Blocks of a cluster read and write each other's shared memory (9.0).  On older devices a
 * cluster is one block. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "async_copy.h"

#if __CUDA_ARCH__ >= 900

static __device__ inline int cluster_rank(void)
{
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/* Called by all threads of all blocks.  A block may access another block's shared memory only after
 * the first cluster barrier.  It may end only after a cluster barrier that follows all such
 * accesses. */
static __device__ inline void cluster_barrier(void)
{
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

/* cluster_barrier() in two parts: arrive, then wait.  A thread calls cluster_arrive() when it has
 * made all of its reads.  cluster_arrive_after_writes() also makes the thread's writes visible. */
static __device__ inline void cluster_arrive(void)
{
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
static __device__ inline void cluster_arrive_after_writes(void)
{
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
static __device__ inline void cluster_wait(void)
{
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

/* The address in block `rank` that corresponds to `p` in this block. */
static __device__ inline unsigned cluster_address(const void *p, int rank)
{
  unsigned to;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(p)), "r"(rank));
  return to;
}

static __device__ inline double cluster_get(const double *p, int rank)
{
  double x;
  asm volatile("ld.shared::cluster.f64 %0, [%1];" : "=d"(x) : "r"(cluster_address(p, rank)));
  return x;
}

static __device__ inline void cluster_put(double *p, int rank, double x)
{
  asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(cluster_address(p, rank)), "d"(x)
               : "memory");
}

/* cluster_put() that also completes 8 bytes on a barrier of that block (barriers.h).  A thread that
 * waits for this barrier sees the numbers, without any other barrier. */
static __device__ inline void cluster_send(double *p, unsigned long long *barrier, int rank,
                                           double x)
{
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(
          cluster_address(p, rank)),
      "l"(__double_as_longlong(x)), "r"(cluster_address(barrier, rank))
      : "memory");
}

#else

static __device__ inline int cluster_rank(void)
{
  return 0;
}
static __device__ inline void cluster_barrier(void)
{
  __syncthreads(); /* the cluster is this block */
}
static __device__ inline void cluster_arrive(void)
{
}
static __device__ inline void cluster_arrive_after_writes(void)
{
}
static __device__ inline void cluster_wait(void)
{
}
static __device__ inline double cluster_get(const double *p, int)
{
  return *p;
}
static __device__ inline void cluster_put(double *p, int, double x)
{
  *p = x;
}
static __device__ inline void cluster_send(double *p, unsigned long long *, int, double x)
{
  *p = x;
}

#endif
#endif
