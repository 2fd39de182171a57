/* SPDX-License-Identifier: BSD-3-Clause
 * Householder reflections to a tridiagonal matrix, then the QL iteration with implicit shifts
 * (Wilkinson and Reinsch 1971, II/2 and II/4).  Inner loops run along rows. */
#include "model/eigen.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "base/sums.h"
#include "base/team.h"

/* most iterations per eigenvalue; rows or columns of a task; least n for several threads */
enum { ROTATIONS_MOST = 60, STRIPE = 256, THREADS_FROM = 512 };

/* Smaller squared norms of a row count as 0: they are far below squares of f32. */
#define NOTHING_SQUARED 0x1p-900

/* The reflections I - beta v v', one at a time; v[0 .. k] is 0. */
struct reduction {
  idx n, k; /* k: the row that is being reduced */
  real *a;  /* [n][n] */
  real *v;  /* [n][n] the vector of each reflection */
  real *beta, *p;
};

static void product_row(void *self, gidx i)
{
  struct reduction *r = self;
  idx first = r->k + 1, count = r->n - first;
  const real *row = r->a + (first + i) * r->n + first, *v = r->v + (gidx)r->k * r->n + first;
  r->p[first + i] = r->beta[r->k] * lane_product(row, v, count);
}

static void update_row(void *self, gidx i)
{
  struct reduction *r = self;
  idx first = r->k + 1;
  real *row = r->a + (first + i) * r->n;
  const real *v = r->v + (gidx)r->k * r->n;
  real v_i = v[first + i], p_i = r->p[first + i];
  for (idx c = first; c < r->n; c++) row[c] -= v_i * r->p[c] + p_i * v[c];
}

/* Find the reflection that zeroes row k after the entry next to the diagonal; returns the new value
 * of this entry. */
static real reflection_find(struct reduction *r)
{
  idx first = r->k + 1;
  real *v = r->v + (gidx)r->k * r->n;
  const real *row = r->a + (gidx)r->k * r->n;
  memset(v, 0, (size_t)r->n * sizeof *v);
  for (idx c = first; c < r->n; c++) v[c] = row[c];
  real squares = lane_product(v + first, v + first, r->n - first), size = sqrt(squares);
  real beside = v[first] > 0 ? -size : size;
  if (squares < NOTHING_SQUARED) return 0;
  v[first] -= beside;
  real length = lane_product(v + first, v + first, r->n - first);
  r->beta[r->k] = 2 / length;
  return beside;
}

/* diagonal[n], beside[n - 1] <- the tridiagonal matrix. */
static void matrix_reduce(struct reduction *r, real *diagonal, real *beside, int threads)
{
  idx n = r->n;
  for (r->k = 0; r->k < n; r->k++) {
    idx first = r->k + 1;
    diagonal[r->k] = r->a[(gidx)r->k * n + r->k];
    r->beta[r->k] = 0;
    if (first == n) break;
    beside[r->k] = first == n - 1 ? r->a[(gidx)r->k * n + first] : reflection_find(r);
    if (first == n - 1 || r->beta[r->k] == 0) continue;
    const real *v = r->v + (gidx)r->k * n;
    team_run(threads, n - first, product_row, r);
    real half = r->beta[r->k] / 2 * lane_product(r->p + first, v + first, n - first);
    for (idx c = first; c < n; c++) r->p[c] -= half * v[c];
    team_run(threads, n - first, update_row, r);
  }
}

/* The product H_0 H_1 .. of all reflections.  A task computes STRIPE of its rows: it applies the
 * reflections to rows of the unit matrix, H_0 first. */
struct product {
  const struct reduction *r;
  real *vector; /* [n][n] */
};

static void product_rows(void *self, gidx task)
{
  const struct product *q = self;
  idx n = q->r->n, end = (idx)(task + 1) * STRIPE < n ? (idx)(task + 1) * STRIPE : n;
  for (idx i = (idx)task * STRIPE; i < end; i++) {
    real *row = q->vector + (gidx)i * n; /* e_i' H_0 H_1 .. */
    memset(row, 0, (size_t)n * sizeof *row);
    row[i] = 1;
    for (idx k = 0; k + 2 < n; k++) {
      const real *v = q->r->v + (gidx)k * n;
      if (q->r->beta[k] == 0) continue;
      real along = q->r->beta[k] * lane_product(row + k + 1, v + k + 1, n - k - 1);
      for (idx c = k + 1; c < n; c++) row[c] -= along * v[c];
    }
  }
}

static void transpose(idx n, real *a)
{
  for (idx i = 0; i < n; i++)
    for (idx c = 0; c < i; c++) {
      real upper = a[(gidx)c * n + i];
      a[(gidx)c * n + i] = a[(gidx)i * n + c];
      a[(gidx)i * n + c] = upper;
    }
}

/* Rotations of rows first + i and first + i + 1 for i = 0 .. count - 1; the last pair is rotated
 * first. */
struct rotations {
  idx n, first, count;
  const real *cosine, *sine; /* [count] */
  real *vector;
};

static void rotate_stripe(void *self, gidx task)
{
  const struct rotations *r = self;
  idx begin = (idx)task * STRIPE, end = begin + STRIPE < r->n ? begin + STRIPE : r->n;
  for (idx i = r->count - 1; i >= 0; i--) {
    real *low = r->vector + (gidx)(r->first + i) * r->n, *high = low + r->n;
    real c = r->cosine[i], s = r->sine[i];
    for (idx j = begin; j < end; j++) {
      real z = high[j];
      high[j] = s * low[j] + c * z;
      low[j] = c * low[j] - s * z;
    }
  }
}

/* One implicit QL step on entries first .. last, which stores its rotations; returns how many. */
static idx ql_step(real *d, real *e, idx first, idx last, real *cosine, real *sine)
{
  real g = (d[first + 1] - d[first]) / (2 * e[first]), root = sqrt(g * g + 1);
  real shift = d[first] - e[first] / (g + (g < 0 ? -root : root));
  real s = 1, c = 1, p = 0;
  g = d[last] - shift;
  for (idx i = last - 1; i >= first; i--) {
    real f = s * e[i], b = c * e[i];
    root = sqrt(f * f + g * g);
    e[i + 1] = root;
    s = root > 0 ? f / root : 0;
    c = root > 0 ? g / root : 1;
    g = d[i + 1] - p;
    real r = (d[i] - g) * s + 2 * c * b;
    p = s * r;
    d[i + 1] = g + p;
    g = c * r - b;
    cosine[i - first] = c;
    sine[i - first] = s;
  }
  d[first] -= p;
  e[first] = g;
  e[last] = 0;
  return last - first;
}

/* The last row of the block that begins at `first`.  The off-diagonal entry after it is negligible
 * compared with its diagonal neighbours, or with the largest entry of the matrix. */
static idx block_end(const real *d, const real *e, idx first, idx n, real nothing)
{
  idx last = first;
  for (; last + 1 < n; last++) {
    real size = fabs(d[last]) + fabs(d[last + 1]);
    if (fabs(e[last]) <= 0x1p-53 * size || fabs(e[last]) <= nothing) break;
  }
  return last;
}

/* The size up to which an entry is negligible: 2^-60 of the largest entry. */
static real nothing_find(const real *d, const real *e, idx n)
{
  real largest = 0;
  for (idx i = 0; i < n; i++) largest = fmax(largest, fmax(fabs(d[i]), fabs(e[i])));
  return 0x1p-60 * largest;
}

int eigen_symmetric(idx n, real *matrix, real *value, real *vector, real *work, int threads)
{
  real *beside = work + (gidx)n * n, *beta = beside + n, *p = beta + n;
  struct reduction r = {.n = n, .a = matrix, .v = work, .beta = beta, .p = p};
  for (gidx i = 0; i < (gidx)n * n; i++)
    CHECK(isfinite(matrix[i]), ERR_INPUT, "entry %lld, %lld of a matrix is %g", (long long)(i / n),
          (long long)(i % n), matrix[i]);
  if (n < THREADS_FROM) threads = 1;
  matrix_reduce(&r, value, beside, threads);
  struct product q = {&r, vector};
  team_run(threads, (n + STRIPE - 1) / STRIPE, product_rows, &q);
  transpose(n, vector);
  beside[n - 1] = 0;
  real nothing = nothing_find(value, beside, n);
  struct rotations rotations = {.n = n, .cosine = beta, .sine = p, .vector = vector};
  for (idx first = 0; first < n; first++) {
    idx last;
    for (int tries = 0; (last = block_end(value, beside, first, n, nothing)) > first; tries++) {
      CHECK(tries < ROTATIONS_MOST, ERR_INPUT, "eigenvalue %d of %d is not found in %d steps",
            first, n, ROTATIONS_MOST);
      rotations.first = first;
      rotations.count = ql_step(value, beside, first, last, beta, p);
      team_run(threads, (n + STRIPE - 1) / STRIPE, rotate_stripe, &rotations);
    }
  }
  return OK;
}
