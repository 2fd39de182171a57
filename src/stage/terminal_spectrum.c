/* SPDX-License-Identifier: BSD-3-Clause
 * What LAPACK says about S, and which atoms are nearly the same: the identifiability report. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "device/lapack.h"
#include "stage/terminal_inside.h"

static void schur_copy(const struct terminal *w, real *to)
{
  gidx n = w->r->n_border;
  for (gidx j = 0; j < n; j++)
    memcpy(to + j * n + j, w->s + j * n + j, (size_t)(n - j) * sizeof *to);
}

/* The atoms with the largest shares of a unit vector. */
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

static int eigenvalues_find(struct terminal *w, real *copy)
{
  struct terminal_result *r = w->r;
  struct spectrum *out = &r->spectrum;
  struct arena arena = {0};
  idx n = r->n_border, most = n < WEAK_MOST ? n : WEAK_MOST;
  struct lapack_spectrum s = {.a = copy, .n = n, .most = most, .part = w->t->weak};
  TRY(arena_take(&r->arena, &out->eigenvalue, n, sizeof(real)));
  TRY(arena_take(&arena, &s.vectors, (gidx)most * n, sizeof(real)));
  s.eigenvalue = out->eigenvalue;
  TRY(lapack_spectrum(&s));
  out->weak = s.weak;
  out->listed = s.found;
  out->weak_part = w->t->weak;
  TRY(arena_take(&r->arena, &out->direction, out->listed, sizeof *out->direction));
  real least = INFINITY, largest = 0;
  for (idx i = 0; i < n; i++) {
    least = fmin(least, fabs(out->eigenvalue[i]));
    largest = fmax(largest, fabs(out->eigenvalue[i]));
  }
  out->condition = largest / least;
  for (idx i = 0; i < out->listed; i++) {
    out->direction[i].eigenvalue = out->eigenvalue[i];
    carriers_find(r, s.vectors + (gidx)i * n, &out->direction[i]);
  }
  arena_free(&arena);
  return OK;
}

int terminal_spectrum(struct terminal *w)
{
  struct spectrum *out = &w->r->spectrum;
  struct arena arena = {0};
  real *copy = NULL;
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
  TRY(arena_take(&arena, &copy, (gidx)n * n, sizeof *copy));
  schur_copy(w, copy);
  TRY(lapack_inertia(copy, n, out->inertia));
  if (w->t->spectrum == SPECTRUM_FULL) {
    schur_copy(w, copy);
    TRY(eigenvalues_find(w, copy));
  }
  out->is_there = 1;
  arena_free(&arena);
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

enum { LISTED_MOST = 1000, VECTORS_AT_ONCE = 512 };

static void pair_list(struct terminal_result *r, idx first, idx second, real cosine)
{
  struct duplicate new = {first, second, cosine};
  r->duplicates++;
  if (r->n_duplicates == 2 * LISTED_MOST) {
    qsort(r->duplicate, 2 * LISTED_MOST, sizeof new, duplicate_compare);
    r->n_duplicates = LISTED_MOST;
  }
  r->duplicate[r->n_duplicates++] = new;
}

gidx terminal_duplicates_bytes(const struct terminal_task *t)
{
  gidx vectors = (gidx)t->atoms->k * t->atoms->d, a_real = sizeof(real);
  return vectors * (t->atoms->p + VECTORS_AT_ONCE) * a_real +
         2 * LISTED_MOST * (gidx)sizeof(struct duplicate) +
         dense_bytes(t->threads, t->panel, (idx)vectors);
}

/* Cosines of VECTORS_AT_ONCE vectors with all after them, in f64. */
int terminal_duplicates(struct terminal *w)
{
  struct terminal_result *r = w->r;
  struct arena arena = {0};
  gidx vectors = (gidx)r->k * r->d, values = vectors * r->p;
  idx width = VECTORS_AT_ONCE / r->d;
  real *wide = NULL, *cosine = NULL;
  struct dense dense;
  TRY(arena_take(&r->arena, &r->duplicate, 2 * LISTED_MOST, sizeof *r->duplicate));
  TRY(dense_open(&dense, w->t->variant, w->t->threads, w->t->panel, (idx)vectors));
  TRY(arena_take(&arena, &wide, values, sizeof *wide));
  TRY(arena_take(&arena, &cosine, (gidx)width * r->d * vectors, sizeof *cosine));
  for (gidx i = 0; i < values; i++) wide[i] = w->atoms[i];
  struct dense_operand o = {wide, r->p, 1, 0, 0};
  for (idx a = 0; a < r->k; a += width) {
    idx count = r->k - a < width ? r->k - a : width, first = a * r->d;
    gidx stride = vectors - first;
    memset(cosine, 0, (size_t)(stride * count * r->d) * sizeof *cosine);
    struct dense_product p = {o, o,    first,  (idx)vectors, first,   (a + count) * r->d,
                              0, r->p, cosine, stride,       PART_ALL};
    dense_product(&dense, &p);
    for (idx i = 0; i < count; i++)
      for (idx b = a + i + 1; b < r->k; b++) {
        real c =
            frames_cosine(cosine + (gidx)(b - a) * r->d + (gidx)i * r->d * stride, stride, r->d);
        if (c >= w->t->duplicate) pair_list(r, a + i, b, c);
      }
  }
  qsort(r->duplicate, (size_t)r->n_duplicates, sizeof *r->duplicate, duplicate_compare);
  if (r->n_duplicates > LISTED_MOST) r->n_duplicates = LISTED_MOST;
  dense_close(&dense);
  arena_free(&arena);
  return OK;
}
