/* SPDX-License-Identifier: BSD-3-Clause
 * Eigenvalues and inertia of the Schur complement S by LAPACK, and nearly equal atoms. */
#include "terminal/spectrum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "terminal/device.h"
#include "terminal/lapack.h"

/* to[n_border][n_border] <- the lower triangle of S; `to` has room for S with its stride. */
static int schur_copy(struct terminal *w, real *to)
{
  gidx n = w->r->n_border, stride = schur_stride(w);
  struct buffer view = {.host = to, .device = w->s.device, .bytes = w->s.bytes};
  int is_gpu = device_is_gpu(&w->device);
  const real *s = is_gpu ? to : w->s.device;
  if (is_gpu) TRY(device_get(&w->device, &view, 0, view.bytes));
  for (gidx j = 0; j < n; j++)
    memmove(to + j * n + j, s + j * stride + j, (size_t)(n - j) * sizeof *to);
  return OK;
}

/* Find the atoms with the largest parts of a unit vector's squared norm. */
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

/* What LAPACK gets for n borders: S to overwrite, and room for the lowest eigenvectors. */
struct spectrum_work {
  struct arena arena;
  real *copy;    /* [n][n], with room for S with its stride */
  idx max;       /* largest number of vectors; 0 if only the inertia is asked for */
  real *vectors; /* [max][n] */
};

static int work_alloc(struct spectrum_work *work, const struct terminal *w)
{
  gidx n = w->r->n_border;
  work->max = w->t->spectrum == SPECTRUM_FULL ? (idx)imin(n, MAX_WEAK) : 0;
  TRY(arena_alloc(&work->arena, &work->copy, n * schur_stride(w), sizeof(real)));
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

/* If a routine failed, append it to out->why.  The report is then incomplete, which is no error. */
static void failure_note(struct spectrum *out, const struct lapack_failure *failure)
{
  size_t used = strlen(out->why);
  if (!failure->routine) return;
  out->info = failure->info;
  snprintf(out->why + used, sizeof out->why - used, "; %s failed with info %d", failure->routine,
           failure->info);
  log_warn("the report on S is incomplete: %s; evidence and covariance do not need it", out->why);
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

/* Find the eigenvalues, and for each listed weak one the atoms with the largest shares of its
 * eigenvector. */
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
    log_warn("no spectrum, inertia or weak directions: %s", out->why);
    return OK;
  }
  snprintf(out->why, sizeof out->why, "%s", library);
  TRY(work_alloc(&work, w));
  TRY(schur_copy(w, work.copy));
  struct lapack_failure failure = {0};
  TRY(lapack_inertia(work.copy, n, out->inertia, &failure));
  failure_note(out, &failure);
  out->has_inertia = !failure.routine;
  if (w->t->spectrum == SPECTRUM_FULL) {
    TRY(schur_copy(w, work.copy));
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

/* The root mean square of the cosines of the principal angles between two frames.  It is sqrt(sum /
 * d), where sum adds the squares of the d x d cosines of their vectors. */
static real frames_cosine(const real *cosines, gidx stride, idx d)
{
  real sum = 0;
  for (idx m = 0; m < d; m++)
    for (idx l = 0; l < d; l++) sum += cosines[m + l * stride] * cosines[m + l * stride];
  return sqrt(sum / d);
}

enum { MAX_LISTED = 1000, VECTORS_AT_ONCE = 512 };

/* List a pair of near duplicates.  When the list is full, only the MAX_LISTED nearest stay. */
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
  struct buffer wide;   /* [vectors][p] real: the atoms */
  struct buffer cosine; /* [width d][vectors] real */
  idx width;            /* atoms at a time */
};

static int duplicates_alloc(struct duplicates_work *d, const struct terminal *w, struct device *dev)
{
  const struct atom_source *a = w->t->atoms;
  gidx vectors = (gidx)a->k * a->d, real_bytes = (gidx)sizeof(real);
  d->width = VECTORS_AT_ONCE / a->d;
  TRY(buffer_alloc(dev, &d->wide, vectors * a->p * real_bytes));
  return buffer_alloc(dev, &d->cosine, (gidx)d->width * a->d * vectors * real_bytes);
}

static int list_alloc(struct terminal_result *r)
{
  return arena_alloc(&r->arena, &r->duplicate, 2 * MAX_LISTED, sizeof *r->duplicate);
}

/* Count host and device bytes of the buffers and the dense work. */
static int duplicates_count(const struct terminal *w, gidx *host, gidx *device)
{
  const struct terminal_task *t = w->t;
  struct duplicates_work d;
  struct device dry = {.is_dry = 1};
  gidx dense =
      device_dense_bytes(&w->device, t->threads, t->panel, (idx)((gidx)t->atoms->k * t->atoms->d));
  TRY(duplicates_alloc(&d, w, &dry));
  *host = dry.planned_host + (device_is_gpu(&w->device) ? 0 : dense);
  *device = dry.planned_device + dense;
  return OK;
}

int terminal_duplicates_bytes(const struct terminal *w, gidx *bytes)
{
  struct terminal_result r = {.arena.is_dry = 1};
  gidx unused;
  TRY(duplicates_count(w, bytes, &unused));
  TRY(list_alloc(&r));
  *bytes += (gidx)r.arena.bytes;
  return OK;
}

int terminal_duplicates_device(const struct terminal *w, gidx *bytes)
{
  gidx unused;
  return duplicates_count(w, &unused, bytes);
}

/* Read the cosines of atoms first .. first + count - 1 with all later atoms. */
static void cosines_read(struct terminal *w, const real *cosine, gidx stride, idx first, idx count)
{
  struct terminal_result *r = w->r;
  for (idx i = 0; i < count; i++)
    for (idx b = first + i + 1; b < r->k; b++) {
      const real *block = cosine + (gidx)(b - first) * r->d + (gidx)i * r->d * stride;
      real c = frames_cosine(block, stride, r->d);
      if (c >= w->t->duplicate) pair_list(r, first + i, b, c);
    }
}

/* Compute in f64 the cosines of about VECTORS_AT_ONCE vectors at a time with all later vectors. */
int terminal_duplicates(struct terminal *w)
{
  struct terminal_result *r = w->r;
  struct device *dev = &w->device;
  struct duplicates_work d = {0};
  idx vectors = r->k * r->d;
  struct dense dense;
  TRY(list_alloc(r));
  TRY(dense_open(&dense, dev, w->t->panel, vectors));
  TRY(duplicates_alloc(&d, w, dev));
  for (gidx i = 0; i < (gidx)vectors * r->p; i++) ((real *)d.wide.host)[i] = w->atoms[i];
  TRY(device_put(dev, &d.wide, 0, d.wide.bytes));
  struct dense_operand o = {d.wide.device, r->p, 1, 0, 0};
  for (idx a = 0; a < r->k; a += d.width) {
    idx count = r->k - a < d.width ? r->k - a : d.width, first = a * r->d;
    gidx stride = vectors - first, bytes = stride * count * r->d * (gidx)sizeof(real);
    struct dense_product p = {o, o,    first,           vectors, first,   (a + count) * r->d,
                              0, r->p, d.cosine.device, stride,  PART_ALL};
    TRY(device_clear(dev, &d.cosine, 0, bytes));
    TRY(dense_product(&dense, &p));
    TRY(device_get(dev, &d.cosine, 0, bytes));
    cosines_read(w, d.cosine.host, stride, a, count);
  }
  qsort(r->duplicate, (size_t)r->n_duplicates, sizeof *r->duplicate, duplicate_compare);
  if (r->n_duplicates > MAX_LISTED) r->n_duplicates = MAX_LISTED;
  buffer_free(dev, &d.wide);
  buffer_free(dev, &d.cosine);
  dense_close(&dense);
  return OK;
}
