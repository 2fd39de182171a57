/* SPDX-License-Identifier: BSD-3-Clause
 * Each warning has a function with its condition and its advice. */
#include "model/advice.h"

#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"

void advice_shape(const struct row_source *rows)
{
  if (rows->n == 0 || rows->n >= rows->p) return; /* no rows: refused elsewhere */
  log_warn_named(
      "transposed",
      "'%s' has %lld rows of %d columns, fewer rows than columns: are they transposed?  A "
      "sample is a row: then save them as rows.T",
      rows->name, (long long)rows->n, rows->p);
}

void advice_top_s(idx top_s, idx k)
{
  if (top_s <= k) return;
  log_warn_named("top-s", "top-s is %d, there are %d atoms: each row gets %d", top_s, k, k);
}

void advice_rows(gidx rows, idx k)
{
  enum { EACH = 10 };
  if (rows >= (gidx)EACH * k) return;
  log_warn_named(
      "few-rows",
      "%lld rows are %.3g an atom: other rows may be described much worse than these; give %lld "
      "rows, or `--atoms %lld`",
      (long long)rows, (double)rows / k, (long long)k * EACH, (long long)imax(1, rows / EACH));
}

void advice_dead(gidx dead, idx k)
{
  if (10 * dead <= k) return;
  log_warn_named("dead-atoms",
                 "%lld of %d atoms are in no row: rows or sweeps are too few for so many; give "
                 "more rows, more --sweeps or fewer --atoms",
                 (long long)dead, k);
}

void advice_unused(gidx dead, idx k, gidx rows)
{
  if (10 * dead <= k) return;
  log_warn_named(
      "dead-atoms",
      "%lld of %d atoms were in none of the last %lld rows: give more --epochs, or fewer "
      "--atoms",
      (long long)dead, k, (long long)rows);
}

void advice_converged(gidx sweeps, real gain, real tolerance)
{
  if (!(gain > tolerance) || isinf(gain) || tolerance == 0) return;
  log_warn_named("not-converged",
                 "sweep %lld was the last, and five passes over the rows still gained %.3g of "
                 "explained variance, --tolerance is %g: give more --sweeps, and --resume",
                 (long long)sweeps, gain, tolerance);
}

void advice_scale(const struct metrics *m, real fitted, const char *atoms)
{
  enum { LEAST_ROWS = 10 }; /* the median of fewer rows may be the norm of first tokens */
  static const real FAR = 3;
  real times = m->massive.median / fitted;
  int is_known = fitted > 0 && m->massive.median > 0 && m->massive.all >= LEAST_ROWS;
  if (!is_known || (times < FAR && 1 / times < FAR)) return;
  log_warn_named(
      "scale",
      "the median norm of these rows is %.3g, and that of the rows of '%s' was %.3g, each less its "
      "mean: are they of the same layer, and scaled as those were?",
      m->massive.median, atoms, fitted);
}

void advice_explained(real explained, const char *what)
{
  if (!(explained < 0)) return;
  log_warn_named(
      "negative-variance",
      "the explained variance of %s is %.6g, below 0: the mean of the rows describes them "
      "better; are rows and dictionary of the same layer, scale and mean?",
      what, explained);
}

/* Warn if all rows are equal in float32, though they may differ in float64: values far from 0, or
 * differences too small for float32. */
static void varying_advise(const struct metrics *m, const char *what)
{
  if (m->n < 2 || !isnan(m->explained_variance)) return;
  log_warn("%s are all equal as float32, as which they are read: nothing of them can be explained; "
           "subtract the mean and scale them before they are saved",
           what);
}

/* Warn if more than a hundredth of the atoms are in more than half of the rows, while an atom is in
 * at most a tenth of the rows on average.  If atoms are in more rows on average, atoms in half of
 * the rows are normal. */
static void dense_advise(const struct metrics *m, const char *what)
{
  gidx dense = 0, all = 0;
  for (idx a = 0; m->density && a < m->k; a++) {
    dense += m->density[a] > m->n / 2;
    all += m->density[a];
  }
  if (100 * dense <= m->k || 10 * (real)all > (real)m->n * m->k) return;
  log_warn_named(
      "dense-atoms",
      "%lld of %d atoms are in more than half of %s: they say little of any row, and often carry "
      "a mean or a massive direction; leave out massive rows by `--max-norm 8` of fit and train",
      (long long)dense, m->k, what);
}

void advice_metrics(const struct metrics *m, const char *what)
{
  norms_warn(&m->massive, what);
  advice_explained(m->explained_variance, what);
  varying_advise(m, what);
  dense_advise(m, what);
}

void advice_mean(const struct metrics *m, const char *atoms, const char *advice)
{
  static const real MUCH = 0.5, WELL = 0.9;
  if (!(m->mean_fraction > MUCH) || m->explained_variance > WELL) return;
  log_warn_named("no-mean",
                 "'%s' brings no mean, and that of the rows has %.4g of their squares: %s", atoms,
                 m->mean_fraction, advice);
}

/* *share <- the part that the mean of the rows contributes to the sum of squares of x[n][p]. */
static void fraction_find(const float *x, idx n, idx p, real *mean, real *share)
{
  real squares = 0, of_mean = 0;
  rows_shift(x, n, p, mean);
  for (gidx i = 0; i < (gidx)n * p; i++) squares += (real)x[i] * x[i];
  for (idx c = 0; c < p; c++) of_mean += mean[c] * mean[c];
  *share = squares > 0 ? (real)n * of_mean / squares : 0;
}

void advice_first_mean(const struct row_source *rows, const char *atoms, const char *advice)
{
  struct metrics m = {.explained_variance = nan_canonical()};
  idx n = (idx)imin(rows->n, SHIFT_ROWS), p = rows->p;
  float *x = malloc((size_t)n * (size_t)p * sizeof *x + 1);
  real *mean = malloc((size_t)p * sizeof *mean);
  int status = x && mean ? rows->read(rows->self, 0, n, x) : OK;
  if (x && mean && !status) fraction_find(x, n, p, mean, &m.mean_fraction);
  if (status) status_clear();
  advice_mean(&m, atoms, advice);
  free(x);
  free(mean);
}
