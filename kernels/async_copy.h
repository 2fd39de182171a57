/* SPDX-License-Identifier: BSD-3-Clause
 * Asynchronous copies from global to shared memory (cp.async, compute capability 8.0).
 *
 * The copies that a thread began since its last async_commit() are a group.  Its groups
 * complete in order.  ASYNC_WAIT waits for the calling thread's own groups only: other threads may
 * read the copies after a barrier that follows the wait. */
#ifndef ASYNC_COPY_H
#define ASYNC_COPY_H

static __device__ inline unsigned shared_address(const void *p)
{
  return (unsigned)__cvta_generic_to_shared(p);
}

/* Begin to copy 16 bytes; `to` is a shared_address().  Both addresses are multiples of 16. */
static __device__ inline void async_copy16_at(unsigned to, const void *from)
{
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

static __device__ inline void async_copy4_at(unsigned to, const void *from)
{
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

static __device__ inline void async_copy16(void *to, const void *from)
{
  async_copy16_at(shared_address(to), from);
}

/* Begin to copy 16 bytes if `there`; otherwise 16 bytes of zeros are stored.  `from` must be a
 * valid address in both cases. */
static __device__ inline void async_copy16_or_zeros(void *to, const void *from, int there)
{
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(there ? 16 : 0)
               : "memory");
}

/* Begin to copy 8 bytes; both addresses are multiples of 8. */
static __device__ inline void async_copy8(void *to, const void *from)
{
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}

static __device__ inline void async_copy4_or_zeros(void *to, const void *from, int there)
{
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(there ? 4 : 0)
               : "memory");
}

/* Begin to copy the first `bytes` of 16 or of 8 bytes; the other bytes become zeros. */
static __device__ inline void async_copy16_part(void *to, const void *from, int bytes)
{
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes)
               : "memory");
}

static __device__ inline void async_copy8_part(void *to, const void *from, int bytes)
{
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes)
               : "memory");
}

/* End a group, which may be empty. */
static __device__ inline void async_commit(void)
{
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Wait until at most `pending` (a constant) of this thread's groups are unfinished. */
#define ASYNC_WAIT(pending) asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

#endif
