/* SPDX-License-Identifier: BSD-3-Clause
 * A solver written with standard libraries.  Y = L^-1 B and u = L^-1 g of all rows of a system form
 * one (n d) x (k + 1) matrix [Y u], so that one dsyrk computes all sums. */
#include <dlfcn.h>
#include <string.h>

#include "base/log.h"
#include "bench/arrow.h"

enum { COLUMNS = 102, PLAIN = 111, TRANSPOSED = 112, LOWER = 122, NON_UNIT = 131, LEFT = 141 };

typedef int potrf_call(int order, char uplo, int n, double *a, int lda);
typedef void trsm_call(int order, int side, int uplo, int trans, int diag, int m, int n,
                       double alpha, const double *a, int lda, double *b, int ldb);
typedef void syrk_call(int order, int uplo, int trans, int n, int k, double alpha, const double *a,
                       int lda, double beta, double *c, int ldc);
typedef void gemv_call(int order, int trans, int m, int n, double alpha, const double *a, int lda,
                       const double *x, int incx, double beta, double *y, int incy);
typedef void threads_call(int threads);

static struct peer {
  potrf_call *potrf;
  trsm_call *trsm;
  syrk_call *syrk;
  gemv_call *gemv;
  threads_call *threads;
} peer;

static int symbol(void *library, const char *name, void *out)
{
  void *found = library ? dlsym(library, name) : NULL;
  memcpy(out, &found, sizeof found);
  return found != NULL;
}

static int peer_load(void)
{
  void *blas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_GLOBAL);
  void *lapacke = dlopen("liblapacke.so.3", RTLD_NOW | RTLD_LOCAL);
  int found = symbol(lapacke ? lapacke : blas, "LAPACKE_dpotrf", &peer.potrf) &&
              symbol(blas, "cblas_dtrsm", &peer.trsm) && symbol(blas, "cblas_dsyrk", &peer.syrk) &&
              symbol(blas, "cblas_dgemv", &peer.gemv) &&
              symbol(blas, "openblas_set_num_threads", &peer.threads);
  if (found) peer.threads(1);
  return found;
}

gidx peer_arrow_work(idx d, idx k, gidx n)
{
  return n * d * d + n * d * (k + 1) + (gidx)(k + 1) * (k + 1) + k;
}

/* Compute the factors L_i of the row blocks, and [Y u] in column-major order. */
static void rows_whiten(const struct arrow_system *s, real *l, real *y)
{
  int d = s->d, k = s->k, rows = (int)s->n * d;
  memcpy(l, s->h, (size_t)(s->n * d * d) * sizeof *l);
  for (gidx i = 0; i < s->n; i++) {
    const real *b = s->b + i * d * k, *g = s->g + i * d;
    real *factor = l + i * d * d, *at = y + i * d;
    for (int j = 0; j < k; j++)
      memcpy(at + (gidx)j * rows, b + (gidx)j * d, (size_t)d * sizeof *at);
    memcpy(at + (gidx)k * rows, g, (size_t)d * sizeof *at);
    peer.potrf(COLUMNS, 'L', d, factor, d);
    peer.trsm(COLUMNS, LEFT, LOWER, PLAIN, NON_UNIT, d, k + 1, 1, factor, d, at, rows);
  }
}

double peer_arrow(const struct arrow_system *s, real *step_t, real *step_b, real *work)
{
  static int state; /* 0: not tried yet; 1: loaded; -1: not installed */
  int d = s->d, k = s->k, rows = (int)s->n * d, size = k + 1;
  real *l = work, *y = l + s->n * d * d, *t = y + (gidx)rows * size;
  if (!state) state = peer_load() ? 1 : -1;
  if (state < 0) return -1;
  double begun = log_seconds();
  rows_whiten(s, l, y);
  peer.syrk(COLUMNS, LOWER, TRANSPOSED, size, rows, -1, y, rows, 0, t, size);
  for (int j = 0; j < k; j++) {
    for (int i = j; i < k; i++) t[(gidx)j * size + i] += s->c[(gidx)j * k + i];
    step_b[j] = -t[(gidx)j * size + k] - s->g_b[j];
  }
  peer.potrf(COLUMNS, 'L', k, t, size);
  peer.trsm(COLUMNS, LEFT, LOWER, PLAIN, NON_UNIT, k, 1, 1, t, size, step_b, k);
  peer.trsm(COLUMNS, LEFT, LOWER, TRANSPOSED, NON_UNIT, k, 1, 1, t, size, step_b, k);
  memcpy(step_t, y + (gidx)rows * k, (size_t)rows * sizeof *step_t);
  peer.gemv(COLUMNS, PLAIN, rows, k, -1, y, rows, step_b, 1, -1, step_t, 1);
  for (gidx i = 0; i < s->n; i++)
    peer.trsm(COLUMNS, LEFT, LOWER, TRANSPOSED, NON_UNIT, d, 1, 1, l + i * d * d, d, step_t + i * d,
              d);
  return log_seconds() - begun;
}
