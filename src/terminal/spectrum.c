/* SPDX-License-Identifier: BSD-3-Clause
 * What LAPACK says about S, and which atoms are nearly the same: the identifiability report. */
#include "terminal/spectrum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "terminal/lapack.h"

/* Copy the lower triangle of S. */
static void schur_copy(const struct terminal *w, real *to)
{
  gidx n = w->r->n_border;
  for (gidx j = 0; j < n; j++)
    memcpy(to + j * n + j, w->s + j * n + j, (size_t)(n - j) * sizeof *to);
}

/* Find the atoms that have the largest shares of a unit vector's squared norm. */
static void carriers_find(const struct terminal_result *r, const real *vector,
                          struct weak_direction *out)
{
  for (int i = 0; i < CARRIERS; i++) {
    out->atom[i] = -1;
    out->share[i] = 0;
  }
  for (idx a = 0; a < r->k; a++) {
    real share = 0;
    for (idx b = r->border[a]; b < r->border[a + 1]; b++) share += vector[b] * vector[b];
    int at = CARRIERS;
    for (; at > 0 && share > out->share[at - 1]; at--)
      if (at < CARRIERS) {
        out->share[at] = out->share[at - 1];
        out->atom[at] = out->atom[at - 1];
      }
    if (at == CARRIERS) continue;
    out->share[at] = share;
    out->atom[at] = a;
  }
}

/* What is handed to LAPACK for n borders: S to overwrite, and the lowest eigenvectors. */
struct spectrum_work {
  struct arena arena;
  real *copy;    /* [n][n] */
  idx max;       /* vectors at most; 0 when only the inertia is asked for */
  real *vectors; /* [max][n] */
};

static int work_alloc(struct spectrum_work *work, const struct terminal *w)
{
  gidx n = w->r->n_border;
  work->max = w->t->spectrum == SPECTRUM_FULL ? (idx)imin(n, MAX_WEAK) : 0;
  TRY(arena_alloc(&work->arena, &work->copy, n * n, sizeof(real)));
  return arena_alloc(&work->arena, &work->vectors, work->max * n, sizeof(real));
}

int terminal_spectrum_bytes(const struct terminal *w, gidx *bytes)
{
  struct spectrum_work work = {.arena.is_dry = 1};
  TRY(work_alloc(&work, w));
  TRY(lapack_bytes(w->r->n_border, bytes));
  *bytes += (gidx)work.arena.bytes;
  return OK;
}

/* Add what failed to the name of the library: a report that is not whole, but no error. */
static void failure_note(struct spectrum *out, const struct lapack_failure *failure)
{
  size_t used = strlen(out->why);
  if (!failure->routine) return;
  out->info = failure->info;
  snprintf(out->why + used, sizeof out->why - used, "; %s failed with info %d", failure->routine,
           failure->info);
  log_warn("the report on S is not whole: %s; evidence and covariance do not need it", out->why);
}

static void values_note(struct spectrum *out)
{
  real min = INFINITY, largest = 0;
  for (idx i = 0; i < out->n; i++) {
    min = fmin(min, fabs(out->eigenvalue[i]));
    largest = fmax(largest, fabs(out->eigenvalue[i]));
  }
  out->condition = largest / min;
}

/* Eigenvalues, and of the lowest the atoms that carry them. */
static int eigenvalues_find(struct terminal *w, const struct spectrum_work *work)
{
  struct terminal_result *r = w->r;
  struct spectrum *out = &r->spectrum;
  idx n = r->n_border;
  TRY(arena_alloc(&r->arena, &out->eigenvalue, n, sizeof(real)));
  struct lapack_spectrum s = {.a = work->copy,
                              .n = n,
                              .max = work->max,
                              .part = w->t->weak,
                              .eigenvalue = out->eigenvalue,
                              .vectors = work->vectors};
  TRY(lapack_spectrum(&s));
  failure_note(out, &s.failure);
  out->has_values = s.has_values;
  out->has_vectors = s.has_vectors;
  if (!s.has_values) return OK;
  values_note(out);
  out->weak = s.weak;
  out->listed = s.found;
  out->weak_part = w->t->weak;
  TRY(arena_alloc(&r->arena, &out->direction, out->listed, sizeof *out->direction));
  for (idx i = 0; i < out->listed; i++) {
    out->direction[i].eigenvalue = out->eigenvalue[i];
    carriers_find(r, s.vectors + (gidx)i * n, &out->direction[i]);
  }
  return OK;
}

int terminal_spectrum(struct terminal *w)
{
  struct spectrum *out = &w->r->spectrum;
  struct spectrum_work work = {0};
  const char *library = "";
  idx n = w->r->n_border;
  out->n = n;
  if (w->t->spectrum == SPECTRUM_NONE || n == 0) {
    snprintf(out->why, sizeof out->why, n ? "not asked for" : "there are no borders");
    return OK;
  }
  if (!lapack_load(w->t->threads, &library)) {
    snprintf(out->why, sizeof out->why,
             "no LAPACK found (libopenblas.so.0 or liblapack.so.3): install libopenblas0");
    log_warn("no spectrum, inertia and weak directions: %s", out->why);
    return OK;
  }
  snprintf(out->why, sizeof out->why, "%s", library);
  TRY(work_alloc(&work, w));
  schur_copy(w, work.copy);
  struct lapack_failure failure = {0};
  TRY(lapack_inertia(work.copy, n, out->inertia, &failure));
  failure_note(out, &failure);
  out->has_inertia = !failure.routine;
  if (w->t->spectrum == SPECTRUM_FULL) {
    schur_copy(w, work.copy);
    TRY(eigenvalues_find(w, &work));
  }
  arena_free(&work.arena);
  return OK;
}

static int duplicate_compare(const void *a, const void *b)
{
  const struct duplicate *x = a, *y = b;
  if (x->cosine != y->cosine) return x->cosine > y->cosine ? -1 : 1;
  if (x->first != y->first) return x->first - y->first;
  return x->second - y->second;
}

/* Root mean square of the cosines of two frames' vectors, from cosines[d][stride]. */
static real frames_cosine(const real *cosines, gidx stride, idx d)
{
  real sum = 0;
  for (idx m = 0; m < d; m++)
    for (idx l = 0; l < d; l++) sum += cosines[m + l * stride] * cosines[m + l * stride];
  return sqrt(sum / d);
}

enum { MAX_LISTED = 1000, VECTORS_AT_ONCE = 512 };

/* List a pair of near duplicates; when the list is full only the nearest stay. */
static void pair_list(struct terminal_result *r, idx first, idx second, real cosine)
{
  struct duplicate new = {first, second, cosine};
  r->duplicates++;
  if (r->n_duplicates == 2 * MAX_LISTED) {
    qsort(r->duplicate, 2 * MAX_LISTED, sizeof new, duplicate_compare);
    r->n_duplicates = MAX_LISTED;
  }
  r->duplicate[r->n_duplicates++] = new;
}

struct duplicates_work {
  struct arena arena;
  real *wide;   /* [vectors][p] the atoms in f64 */
  real *cosine; /* [width d][vectors] */
  idx width;    /* atoms at once */
};

static int duplicates_alloc(struct duplicates_work *d, const struct terminal *w)
{
  const struct atom_source *a = w->t->atoms;
  gidx vectors = (gidx)a->k * a->d;
  d->width = VECTORS_AT_ONCE / a->d;
  TRY(arena_alloc(&d->arena, &d->wide, vectors * a->p, sizeof *d->wide));
  return arena_alloc(&d->arena, &d->cosine, (gidx)d->width * a->d * vectors, sizeof *d->cosine);
}

static int list_alloc(struct terminal_result *r)
{
  return arena_alloc(&r->arena, &r->duplicate, 2 * MAX_LISTED, sizeof *r->duplicate);
}

int terminal_duplicates_bytes(const struct terminal *w, gidx *bytes)
{
  const struct terminal_task *t = w->t;
  struct duplicates_work d = {.arena.is_dry = 1};
  struct terminal_result r = {.arena.is_dry = 1};
  TRY(duplicates_alloc(&d, w));
  TRY(list_alloc(&r));
  *bytes = (gidx)(d.arena.bytes + r.arena.bytes) +
           cpu_dense_bytes(t->threads, t->panel, (idx)((gidx)t->atoms->k * t->atoms->d));
  return OK;
}

/* In f64, the cosines of VECTORS_AT_ONCE vectors at a time with all that come after them. */
int terminal_duplicates(struct terminal *w)
{
  struct terminal_result *r = w->r;
  struct duplicates_work d = {0};
  gidx vectors = (gidx)r->k * r->d, values = vectors * r->p;
  struct dense dense;
  TRY(list_alloc(r));
  TRY(dense_open(&dense, &w->device, w->t->panel, (idx)vectors));
  TRY(duplicates_alloc(&d, w));
  real *wide = d.wide, *cosine = d.cosine;
  idx width = d.width;
  for (gidx i = 0; i < values; i++) wide[i] = w->atoms[i];
  struct dense_operand o = {wide, r->p, 1, 0, 0};
  for (idx a = 0; a < r->k; a += width) {
    idx count = r->k - a < width ? r->k - a : width, first = a * r->d;
    gidx stride = vectors - first;
    memset(cosine, 0, (size_t)(stride * count * r->d) * sizeof *cosine);
    struct dense_product p = {o, o,    first,  (idx)vectors, first,   (a + count) * r->d,
                              0, r->p, cosine, stride,       PART_ALL};
    TRY(dense_product(&dense, &p));
    for (idx i = 0; i < count; i++)
      for (idx b = a + i + 1; b < r->k; b++) {
        real c =
            frames_cosine(cosine + (gidx)(b - a) * r->d + (gidx)i * r->d * stride, stride, r->d);
        if (c >= w->t->duplicate) pair_list(r, a + i, b, c);
      }
  }
  qsort(r->duplicate, (size_t)r->n_duplicates, sizeof *r->duplicate, duplicate_compare);
  if (r->n_duplicates > MAX_LISTED) r->n_duplicates = MAX_LISTED;
  dense_close(&dense);
  arena_free(&d.arena);
  return OK;
}
