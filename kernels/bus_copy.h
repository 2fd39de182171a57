/* SPDX-License-Identifier: BSD-3-Clause
 * Copies between the device and page-locked arrays of the host, for kernels whose blocks share out
 * systems in x and the numbers of one in y. */
#ifndef BUS_COPY_H
#define BUS_COPY_H

/* Copy `count` numbers of a system, number e from `from(e)` to `to(e)`.  They come over the bus, so
 * what counts is how many are on their way: a thread asks for several before it stores one. */
template <class From, class To>
static __device__ inline void bus_copy(long long count, From from, To to)
{
  enum { AHEAD = 4 };
  long long threads = (long long)gridDim.y * blockDim.x;
  long long e = (long long)blockIdx.y * blockDim.x + threadIdx.x;
  for (; e < count; e += AHEAD * threads) {
    double x[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (e + i * threads < count) x[i] = *from(e + i * threads);
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (e + i * threads < count) *to(e + i * threads) = x[i];
  }
}

#endif
