/* SPDX-License-Identifier: BSD-3-Clause
 * CUDA C++ for a CPU.  The threads of a block are fibres of ThreadSanitizer that run in turn.
 *
 * ThreadSanitizer reports two accesses of shared memory as a data race if no barrier orders them.
 * This does not depend on the order in which fibres run, and needs no GPU.  Barriers (bar.sync,
 * __syncwarp) order memory.  Shuffles and votes wait for the warp, but order no memory.  A copy by
 * cp.async is written twice: when it begins, and when it is waited for.  Blocks run one after
 * another.  Inline assembly has to be replaced (test_kernel_races.py).
 *
 * C++17, with -fsanitize=thread. */
#ifndef TESTS_KERNEL_THREADS_H
#define TESTS_KERNEL_THREADS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <functional>
#include <vector>

extern "C" {
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void *__tsan_get_current_fiber(void);
void __tsan_acquire(void *at);
void __tsan_release(void *at);
alignas(1024) char memory[256 << 10]; /* dynamic shared memory */
}

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define UNSEEN_BY_TSAN __attribute__((no_sanitize("thread"), noinline))

struct alignas(16) double2 {
  double x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct dim {
  unsigned x, y, z;
};

enum { MAX_COPIES = 1024, STACK_BYTES = 1 << 18 };

/* A copy of 16 bytes that has begun.  group: how many groups its thread had committed before. */
struct copy {
  void *to;
  const void *from;
  int group;
};

struct fibre {
  ucontext_t context;
  char stack[STACK_BYTES];
  void *tsan;
  int is_done;
  dim id;
  long long word; /* a value that other threads of the warp may read */
  copy copies[MAX_COPIES];
  int n_copies, groups; /* copies that have begun; groups that were committed */
};

/* A barrier: how often it was passed, how many threads wait, and an address for ThreadSanitizer to
 * order memory, for even passes and for odd ones. */
struct barrier {
  long passed;
  int waiting;
  char order[2];
};

static dim blockIdx;
static fibre fibres[1024];
static int n_fibres, now;
static ucontext_t scheduler;
static void *scheduler_tsan;
static barrier barriers[16], warp_barriers[32], meetings[32];
#define threadIdx (own_fibre()->id)

UNSEEN_BY_TSAN static fibre *own_fibre(void)
{
  return &fibres[now];
}

UNSEEN_BY_TSAN static void others_run(void)
{
  fibre *own = own_fibre();
  __tsan_switch_to_fiber(scheduler_tsan, 1);
  swapcontext(&own->context, &scheduler);
}

UNSEEN_BY_TSAN static int living(int first, int end)
{
  int n = 0;
  for (int i = first; i < end && i < n_fibres; i++) n += !fibres[i].is_done;
  return n;
}

/* Wait until `count` threads have come.  count = 0: wait for all threads of first .. end - 1 that
 * have not ended.  orders: 1 if the barrier orders memory. */
UNSEEN_BY_TSAN static void barrier_wait(barrier *b, int count, int first, int end, int orders)
{
  long pass = b->passed;
  if (orders) __tsan_release(&b->order[pass % 2]);
  b->waiting++;
  while (b->passed == pass)
    if (b->waiting >= (count ? count : living(first, end)))
      b->waiting = 0, b->passed++;
    else
      others_run();
  if (orders) __tsan_acquire(&b->order[pass % 2]);
}

static void __syncthreads(void)
{
  barrier_wait(&barriers[0], 0, 0, n_fibres, 1);
}

static void named_sync(int name, int threads)
{
  barrier_wait(&barriers[name], threads, 0, 0, 1);
}

UNSEEN_BY_TSAN static void __syncwarp(void)
{
  barrier_wait(&warp_barriers[now / 32], 0, now / 32 * 32, now / 32 * 32 + 32, 1);
}

UNSEEN_BY_TSAN static void warp_meet(void)
{
  barrier_wait(&meetings[now / 32], 0, now / 32 * 32, now / 32 * 32 + 32, 0);
}

UNSEEN_BY_TSAN static int __syncthreads_or(int is)
{
  static int any;
  __syncthreads();
  any = 0;
  __syncthreads();
  any |= is;
  __syncthreads();
  return any;
}

template <class T> UNSEEN_BY_TSAN static T lane_read(T value, int lane)
{
  memcpy(&own_fibre()->word, &value, sizeof value);
  warp_meet();
  memcpy(&value, &fibres[now / 32 * 32 + lane].word, sizeof value);
  warp_meet();
  return value;
}

template <class T> static T __shfl_sync(unsigned, T value, int lane)
{
  return lane_read(value, lane % 32);
}
template <class T> static T __shfl_xor_sync(unsigned, T value, int mask)
{
  return lane_read(value, now % 32 ^ mask);
}
template <class T> static T __shfl_up_sync(unsigned, T value, int step)
{
  return lane_read(value, now % 32 >= step ? now % 32 - step : now % 32);
}

template <class To, class From> static To bits_as(From from)
{
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
static int __double2hiint(double x)
{
  return (int)(bits_as<long long>(x) >> 32);
}
static int __double2loint(double x)
{
  return (int)bits_as<long long>(x);
}
static double __hiloint2double(int high, int low)
{
  return bits_as<double>((long long)high << 32 | (unsigned)low);
}
static long long __double_as_longlong(double x)
{
  return bits_as<long long>(x);
}
static float __int_as_float(int x)
{
  return bits_as<float>(x);
}
static float __uint_as_float(unsigned x)
{
  return bits_as<float>(x);
}
static int __float_as_int(float x)
{
  return bits_as<int>(x);
}
static unsigned __float_as_uint(float x)
{
  return bits_as<unsigned>(x);
}
static float __fadd_rn(float a, float b)
{
  return a + b;
}
static float __fsub_rn(float a, float b)
{
  return a - b;
}
static float __fmul_rn(float a, float b)
{
  return a * b;
}
static float __fdiv_rn(float a, float b)
{
  return a / b;
}
static float __fmaf_rn(float a, float b, float c)
{
  return fmaf(a, b, c);
}
static unsigned __umulhi(unsigned a, unsigned b)
{
  return (unsigned)((unsigned long long)a * b >> 32);
}
static int __popc(unsigned x)
{
  return __builtin_popcount(x);
}
static int max(int a, int b)
{
  return a > b ? a : b;
}
static int min(int a, int b)
{
  return a < b ? a : b;
}
template <class T> static T __ldg(const T *p)
{
  return *p;
}
template <class T> static T __ldcg(const T *p)
{
  return *p;
}
static void __threadfence(void)
{
}
template <class T> static T atomicAdd(T *p, T value)
{
  return __atomic_fetch_add(p, value, __ATOMIC_ACQ_REL);
}

UNSEEN_BY_TSAN static void copy_note(void *to, const void *from)
{
  fibre *own = own_fibre();
  if (own->n_copies == MAX_COPIES) abort();
  own->copies[own->n_copies++] = {to, from, own->groups};
}

UNSEEN_BY_TSAN static void async_commit(void)
{
  own_fibre()->groups++;
}

/* *c <- a copy of any group except the last `pending` ones; it is taken from the list.  Returns 0
 * if there is none. */
UNSEEN_BY_TSAN static int copy_take(copy *c, int pending)
{
  fibre *own = own_fibre();
  for (int i = 0; i < own->n_copies; i++)
    if (own->copies[i].group < own->groups - pending) {
      *c = own->copies[i];
      own->copies[i] = own->copies[--own->n_copies];
      return 1;
    }
  return 0;
}

static void async_copy16(void *to, const void *from)
{
  memcpy(to, from, 16);
  copy_note(to, from);
}

static void async_wait(int pending)
{
  copy c;
  while (copy_take(&c, pending)) memcpy(c.to, c.from, 16);
}
#define ASYNC_WAIT(pending) async_wait(pending)
#define ASYNC_COPY_H /* replaces kernels/async_copy.h */

static std::function<void(void)> kernel_call;

UNSEEN_BY_TSAN static void fibre_run(void)
{
  kernel_call();
  own_fibre()->is_done = 1;
  __tsan_release(&scheduler_tsan);
  others_run();
}

UNSEEN_BY_TSAN static void fibre_begin(fibre *f, unsigned thread)
{
  getcontext(&f->context);
  f->context.uc_stack.ss_sp = f->stack;
  f->context.uc_stack.ss_size = sizeof f->stack;
  f->context.uc_link = NULL;
  makecontext(&f->context, fibre_run, 0);
  f->is_done = f->n_copies = f->groups = 0;
  f->id = {thread, 0, 0};
  f->tsan = __tsan_create_fiber(0);
}

/* Run a kernel.  backward: threads take turns from the last one to the first. */
UNSEEN_BY_TSAN static void launch(unsigned blocks, unsigned threads, int backward,
                                  std::function<void(void)> call)
{
  kernel_call = call;
  scheduler_tsan = __tsan_get_current_fiber();
  n_fibres = (int)threads;
  for (blockIdx = {0, 0, 0}; blockIdx.x < blocks; blockIdx.x++) {
    memset(barriers, 0, sizeof barriers);
    for (unsigned i = 0; i < threads; i++) fibre_begin(&fibres[i], i);
    while (living(0, n_fibres))
      for (int n = 0; n < n_fibres; n++) {
        now = backward ? n_fibres - 1 - n : n;
        if (own_fibre()->is_done) continue;
        __tsan_switch_to_fiber(own_fibre()->tsan, 1);
        swapcontext(&scheduler, &own_fibre()->context);
      }
    __tsan_acquire(&scheduler_tsan);
    for (unsigned i = 0; i < threads; i++) __tsan_destroy_fiber(fibres[i].tsan);
  }
}

#endif
