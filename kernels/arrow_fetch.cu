/* SPDX-License-Identifier: BSD-3-Clause
 * arrow_fetch: copies systems from page-locked arrays of the host, so that no host thread has to
 * pack them.
 *
 * grid    at most ARROW_BUS_BLOCKS: enough to keep the bus busy, and few enough to leave room for
 *         blocks that solve.  Blocks take the pieces in turn (bus_copy.h)
 * block   ARROW_BUS_THREADS
 * shared  none */
#include "arrow_types.h"
#include "bus_copy.h"

extern "C" __global__ void arrow_fetch(const __grid_constant__ struct arrow_args a)
{
  pieces_each(
      &a, [&](int i) { return a.atoms[i].in; },
      [&](int i, long long first, long long end) {
        struct arrow_pointers s = a.places[i];
        double *to = (double *)a.in + a.atoms[i].in;
        long long n = a.atoms[i].n, d = s.d, k = s.k;
        long long b = n * d * k, h = b + n * d * d, g = h + n * d, c = g + k * k, all = c + k;
        bus_copy(
            first, end < all ? end : all,
            [&](long long e) {
              return e < b   ? s.b + e
                     : e < h ? s.h + (e - b)
                     : e < g ? s.g + (e - h)
                     : e < c ? s.c + (e - g)
                             : s.g_b + (e - c);
            },
            [&](long long e) { return to + e; });
      });
}
