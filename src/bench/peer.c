/* SPDX-License-Identifier: BSD-3-Clause
 * OpenBLAS is loaded only when a benchmark needs it.  If it were linked, it would start threads and
 * take memory in every rank of every job. */
#include "bench/peer.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static int double_compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double median(double *values, int count)
{
  qsort(values, (size_t)count, sizeof *values, double_compare);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double median_ratio(const double *a, const double *b, int count)
{
  double ratio[MAX_RATIOS];
  for (int i = 0; i < count; i++) ratio[i] = a[i] / b[i];
  return median(ratio, count);
}

/* cblas_sgemm of the standard C interface of BLAS.  Its constants: row major 101, not transposed
 * 111, transposed 112. */
typedef void sgemm_call(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                        const float *a, int lda, const float *b, int ldb, float beta, float *c,
                        int ldc);
typedef void potrf_call(const char *uplo, const int *n, double *a, const int *lda, int *info,
                        size_t uplo_length);
typedef void threads_call(int threads);

struct peer {
  sgemm_call *sgemm;
  potrf_call *potrf;
  threads_call *set_threads;
};

static int peer_load(struct peer *peer)
{
  void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  void *sgemm = library ? dlsym(library, "cblas_sgemm") : NULL;
  void *threads = library ? dlsym(library, "openblas_set_num_threads") : NULL;
  void *potrf = library ? dlsym(library, "dpotrf_") : NULL;
  memcpy(&peer->sgemm, &sgemm, sizeof sgemm);
  memcpy(&peer->potrf, &potrf, sizeof potrf);
  memcpy(&peer->set_threads, &threads, sizeof threads);
  return sgemm && potrf && threads;
}

/* The functions of OpenBLAS, which will use `threads` threads; NULL: it is not installed. */
static const struct peer *peer_get(int threads)
{
  static struct peer peer;
  static int state; /* 0: not tried yet; 1: loaded; -1: not installed */
  if (!state) state = peer_load(&peer) ? 1 : -1;
  if (state < 0) return NULL;
  peer.set_threads(threads);
  return &peer;
}

double peer_sgemm(const float *rows, const float *atoms, idx n, idx k, idx p, float *product,
                  int threads)
{
  const struct peer *peer = peer_get(threads);
  if (!peer) return 0;
  double begun = log_seconds();
  for (idx first = 0; first < n; first += PEER_ROWS)
    peer->sgemm(101, 111, 112, n - first < PEER_ROWS ? n - first : PEER_ROWS, k, p, 1,
                rows + (gidx)first * p, p, atoms, p, 0, product, k);
  return log_seconds() - begun;
}

double peer_potrf(real *a, idx n, int threads)
{
  const struct peer *peer = peer_get(threads);
  int info;
  if (!peer) return 0;
  double begun = log_seconds();
  peer->potrf("L", &n, a, &n, &info, 1);
  return log_seconds() - begun;
}
