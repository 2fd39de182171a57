/* SPDX-License-Identifier: BSD-3-Clause
 * Copies between the device and page-locked arrays of the host.  The numbers of all systems of a
 * launch are divided into equal pieces, which blocks take in turn.  A piece may begin or end inside
 * a system. */
#ifndef BUS_COPY_H
#define BUS_COPY_H

#include "arrow_types.h"

/* The threads of a block copy numbers first .. end - 1 of a system.  Number e is at from(e) and
 * goes to to(e).  Bus latency is hidden by many loads in flight: a thread starts several before it
 * stores one. */
template <class From, class To>
static __device__ inline void bus_copy(long long first, long long end, From from, To to)
{
  enum { AHEAD = 4 };
  int threads = blockDim.x;
  for (long long e = first + threadIdx.x; e < end; e += AHEAD * threads) {
    double x[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (e + i * threads < end) x[i] = *from(e + i * threads);
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (e + i * threads < end) *to(e + i * threads) = x[i];
  }
}

/* The last system whose numbers begin at or before `at`.  The numbers of system i begin at
 * place(i), which ascends from 0. */
template <class Place>
static __device__ inline int system_find(int count, long long at, Place place)
{
  int low = 0, high = count;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (place(middle) <= at)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* Blocks take the pieces of the launch in turn.  copy(i, first, end) copies numbers first .. end -
 * 1 of system i, counted from place(i).  The system may end before `end`, or before `first`. */
template <class Place, class Copy>
static __device__ inline void pieces_each(const struct arrow_args *a, Place place, Copy copy)
{
  for (long long begin = blockIdx.x * a->piece; begin < a->numbers; begin += gridDim.x * a->piece) {
    long long end = begin + a->piece;
    for (int i = system_find(a->count, begin, place); i < a->count && place(i) < end; i++)
      copy(i, begin > place(i) ? begin - place(i) : 0, end - place(i));
  }
}

#endif
