/* SPDX-License-Identifier: BSD-3-Clause
 * Barriers in shared memory (mbarrier), and bulk copies that complete on them (9.0). */
#ifndef BARRIERS_H
#define BARRIERS_H

#include "async_copy.h"

static __device__ inline void barrier_begin(unsigned long long *barrier, int arrivals)
{
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}

/* Call this after barrier_begin(), before other threads use the barriers. */
static __device__ inline void barriers_publish(void)
{
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ inline unsigned barrier_passed(unsigned long long *barrier, unsigned parity)
{
  unsigned passed;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
               "selp.u32 %0, 1, 0, p; }"
               : "=r"(passed)
               : "r"(shared_address(barrier)), "r"(parity)
               : "memory");
  return passed;
}

static __device__ inline void barrier_arrive(unsigned long long *barrier)
{
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

/* Arrive, and expect `bytes` of bulk copies. */
static __device__ inline void barrier_expect(unsigned long long *barrier, int bytes)
{
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

/* Arrive at a barrier of a block of the cluster; cluster_address() gives `barrier`.  This is for
 * buffers that the matrix unit or a bulk copy has read: no write of this thread has to become
 * visible.  The default scope is cheaper here: with cluster scope the arrival would first wait for
 * all memory. */
static __device__ inline void barrier_arrive_at(unsigned barrier)
{
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

static __device__ inline void bulk_copy(void *to, const void *from, int bytes,
                                        unsigned long long *barrier)
{
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

/* bulk_copy() to all blocks of the cluster whose bit in `blocks` is set.  In each of them it writes
 * to the address of `to` and completes on the barrier at the address of `barrier`. */
static __device__ inline void bulk_copy_shared(void *to, const void *from, int bytes,
                                               unsigned long long *barrier, unsigned short blocks)
{
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier)), "h"(blocks)
               : "memory");
}

/* Copy a box of the matrix that a tensor map describes.  The box begins at (inner, outer). */
static __device__ inline void box_copy(void *to, const void *map, int inner, int outer,
                                       unsigned long long *barrier)
{
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
               "l"(map), "r"(inner), "r"(outer), "r"(shared_address(barrier))
               : "memory");
}

static __device__ inline void box_copy_shared(void *to, const void *map, int inner, int outer,
                                              unsigned long long *barrier, unsigned short blocks)
{
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
               "l"(map), "r"(inner), "r"(outer), "r"(shared_address(barrier)), "h"(blocks)
               : "memory");
}

#endif
