/* SPDX-License-Identifier: BSD-3-Clause
 * The only user of OpenBLAS. */
#include "cli/bench_peer.h"

#include "config.h"

#if HAVE_OPENBLAS
#include <cblas.h>

#include "base/log.h"

double peer_sgemm(const float *rows, const float *atoms, idx n, idx k, idx p, float *product,
                  int threads)
{
  openblas_set_num_threads(threads);
  double begun = log_seconds();
  for (idx first = 0; first < n; first += PEER_ROWS)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans,
                n - first < PEER_ROWS ? n - first : PEER_ROWS, k, p, 1, rows + (gidx)first * p, p,
                atoms, p, 0, product, k);
  return log_seconds() - begun;
}

#else

double peer_sgemm(const float *rows, const float *atoms, idx n, idx k, idx p, float *product,
                  int threads)
{
  (void)rows, (void)atoms, (void)n, (void)k, (void)p, (void)product, (void)threads;
  return 0;
}

#endif
