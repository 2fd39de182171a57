/* SPDX-License-Identifier: BSD-3-Clause
 * dlsym() finds the Fortran routines.  The lengths of their text arguments follow the other
 * arguments, as gfortran has it.  A spectrum is made by dsytrd, then dsterf for all eigenvalues,
 * and dstemr and dormtr for the lowest eigenvectors. */
#include "terminal/lapack.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"

typedef void sytrf_call(const char *, const int *, double *, const int *, int *, double *,
                        const int *, int *, size_t);
typedef void sytrd_call(const char *, const int *, double *, const int *, double *, double *,
                        double *, double *, const int *, int *, size_t);
typedef void sterf_call(const int *, double *, double *, int *);
typedef void stemr_call(const char *, const char *, const int *, double *, double *, const double *,
                        const double *, const int *, const int *, int *, double *, double *,
                        const int *, const int *, int *, int *, double *, const int *, int *,
                        const int *, int *, size_t, size_t);
typedef void ormtr_call(const char *, const char *, const char *, const int *, const int *,
                        double *, const int *, double *, double *, const int *, double *,
                        const int *, int *, size_t, size_t, size_t);

static struct {
  sytrf_call *sytrf;
  sytrd_call *sytrd;
  sterf_call *sterf;
  stemr_call *stemr;
  ormtr_call *ormtr;
} lapack;

static int symbol_find(void *library, const char *name, void *pointer)
{
  void *symbol = dlsym(library, name);
  memcpy(pointer, &symbol, sizeof symbol);
  return symbol != NULL;
}

static int library_find(void *library)
{
  return symbol_find(library, "dsytrf_", &lapack.sytrf) &&
         symbol_find(library, "dsytrd_", &lapack.sytrd) &&
         symbol_find(library, "dsterf_", &lapack.sterf) &&
         symbol_find(library, "dstemr_", &lapack.stemr) &&
         symbol_find(library, "dormtr_", &lapack.ormtr);
}

int lapack_load(int threads, const char **name)
{
  static const char *const names[] = {"libopenblas.so.0", "liblapack.so.3"};
  for (int i = 0; i < LENGTH(names); i++) {
    void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library || !library_find(library)) continue;
    void (*set_threads)(int) = NULL;
    if (symbol_find(library, "openblas_set_num_threads", &set_threads)) set_threads(threads);
    *name = names[i];
    return 1;
  }
  return 0;
}

/* Note a failure; returns 1 if the routine succeeded. */
static int succeeded(struct lapack_failure *failure, const char *routine, int info, int good)
{
  if (!good) *failure = (struct lapack_failure){routine, info};
  return good;
}

/* Count the signs of the eigenvalues of D, whose blocks have one or two rows, block by block. */
static void blocks_count(const real *a, idx n, const int *pivot, idx *counts)
{
  for (idx i = 0; i < n; i++) {
    const real *at = a + i + (gidx)i * n;
    if (pivot[i] > 0 || i + 1 == n) {
      counts[at[0] > 0 ? 0 : at[0] < 0 ? 1 : 2]++;
      continue;
    }
    real one = at[0], two = at[n + 1], off = at[1], det = one * two - off * off;
    if (det < 0) {
      counts[0]++;
      counts[1]++;
    } else
      counts[one + two > 0 ? 0 : 1] += 2;
    i++;
  }
}

struct factor_work {
  struct arena arena;
  int *pivot, size;
  real *work;
};

static int factor_alloc(struct factor_work *w, idx n)
{
  w->size = n * 64 + 1;
  TRY(arena_alloc(&w->arena, &w->pivot, n, sizeof *w->pivot));
  return arena_alloc(&w->arena, &w->work, w->size, sizeof *w->work);
}

int lapack_inertia(real *a, idx n, idx *counts, struct lapack_failure *failure)
{
  struct factor_work w = {0};
  int info = 0;
  int status = factor_alloc(&w, n);
  memset(counts, 0, 3 * sizeof *counts);
  if (!status && n > 0) lapack.sytrf("L", &n, a, &n, w.pivot, w.work, &w.size, &info, 1);
  /* info > 0: a pivot is 0, which the inertia counts */
  if (!status && succeeded(failure, "dsytrf", info, info >= 0)) blocks_count(a, n, w.pivot, counts);
  arena_free(&w.arena);
  return status;
}

/* Work space of the routines below. */
struct tridiagonal {
  real *d, *e, *tau, *work, *copy_d, *copy_e, *value;
  int *integer, *support;
  int work_size, integer_size;
};

static int tridiagonal_alloc(struct tridiagonal *t, struct arena *a, idx n)
{
  t->work_size = n * 64 + 64;
  t->integer_size = 10 * n + 10;
  real **arrays[] = {&t->d, &t->e, &t->tau, &t->copy_d, &t->copy_e, &t->value};
  for (int i = 0; i < LENGTH(arrays); i++) TRY(arena_alloc(a, arrays[i], n + 1, sizeof(real)));
  TRY(arena_alloc(a, &t->work, t->work_size, sizeof(real)));
  TRY(arena_alloc(a, &t->support, 2 * (gidx)n + 2, sizeof(int)));
  return arena_alloc(a, &t->integer, t->integer_size, sizeof(int));
}

/* Find the lowest eigenvectors; returns 1 on success. */
static int vectors_make(struct lapack_spectrum *s, struct tridiagonal *t)
{
  idx n = s->n;
  int first = 1, last = s->found, got = 0, try_hard = 1, info = 0;
  real unused = 0;
  if (last == 0) return 1;
  lapack.stemr("V", "I", &n, t->d, t->e, &unused, &unused, &first, &last, &got, t->value,
               s->vectors, &n, &last, t->support, &try_hard, t->work, &t->work_size, t->integer,
               &t->integer_size, &info, 1, 1);
  if (!succeeded(&s->failure, "dstemr", info, info == 0 && got == last)) return 0;
  lapack.ormtr("L", "L", "N", &n, &last, s->a, &n, t->tau, s->vectors, &n, t->work, &t->work_size,
               &info, 1, 1, 1);
  return succeeded(&s->failure, "dormtr", info, info == 0);
}

/* Find all eigenvalues, and how many are weak; returns 1 on success. */
static int values_make(struct lapack_spectrum *s, struct tridiagonal *t)
{
  idx n = s->n;
  int info = 0;
  lapack.sytrd("L", &n, s->a, &n, t->d, t->e, t->tau, t->work, &t->work_size, &info, 1);
  if (!succeeded(&s->failure, "dsytrd", info, info == 0)) return 0;
  memcpy(s->eigenvalue, t->d, (size_t)n * sizeof(real));
  memcpy(t->copy_e, t->e, (size_t)n * sizeof(real));
  lapack.sterf(&n, s->eigenvalue, t->copy_e, &info);
  if (!succeeded(&s->failure, "dsterf", info, info == 0)) return 0;
  real largest = fmax(fabs(s->eigenvalue[0]), fabs(s->eigenvalue[n - 1]));
  while (s->weak < n && s->eigenvalue[s->weak] <= s->part * largest) s->weak++;
  s->found = s->weak < s->max ? s->weak : s->max;
  return 1;
}

int lapack_spectrum(struct lapack_spectrum *s)
{
  struct arena arena = {0};
  struct tridiagonal t = {0};
  s->weak = s->found = 0;
  s->has_values = s->has_vectors = s->n == 0;
  if (s->n == 0) return OK;
  int status = tridiagonal_alloc(&t, &arena, s->n);
  if (!status) s->has_values = values_make(s, &t);
  if (!status && s->has_values) s->has_vectors = vectors_make(s, &t);
  if (!s->has_vectors) s->found = 0;
  arena_free(&arena);
  return status;
}

int lapack_bytes(idx n, gidx *bytes)
{
  struct factor_work w = {.arena.is_dry = 1};
  struct tridiagonal t = {0};
  struct arena arena = {.is_dry = 1};
  TRY(factor_alloc(&w, n));
  TRY(tridiagonal_alloc(&t, &arena, n));
  *bytes = imax((gidx)w.arena.bytes, (gidx)arena.bytes);
  return OK;
}
