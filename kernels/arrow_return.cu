/* SPDX-License-Identifier: BSD-3-Clause
 * arrow_return: copies steps to page-locked arrays of the host, for each system whose not_ok
 * (struct arrow_found) is 0.  So no host thread has to unpack them.
 *
 * grid, block, shared   as in arrow_fetch.cu */
#include "arrow_types.h"
#include "bus_copy.h"

extern "C" __global__ void arrow_return(const __grid_constant__ struct arrow_args a)
{
  pieces_each(
      &a, [&](int i) { return a.atoms[i].out; },
      [&](int i, long long first, long long end) {
        struct arrow_pointers s = a.places[i];
        const double *from = a.out + a.atoms[i].out;
        long long rows = (long long)a.atoms[i].n * s.d, all = rows + s.k;
        if (a.found[i].not_ok) return;
        bus_copy(
            first, end < all ? end : all, [&](long long e) { return from + e; },
            [&](long long e) { return e < rows ? s.step_t + e : s.step_b + (e - rows); });
      });
}
