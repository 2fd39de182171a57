/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the joint log-determinant is that of the full matrix of all codes and borders, which is
 * built without a Schur complement.  If no two atoms share a row, it is the sum of the
 * log-determinants of the atoms' own systems. */
#include <string.h>

#include "joint_problem.h"
#include "model/arrow.h"
#include "model/dense.h"
#include "tap.h"

/* doc/numerics.md, section 9: 1e-13 of the larger of 1 and the value, and a rounding per pivot. */
static real tolerance(real value, gidx pivots)
{
  return 1e-13 * fmax(1, fabs(value)) + 0x1p-52 * (real)pivots;
}

static long double dot_atoms(const struct joint *j, idx a, idx m, idx b, idx k)
{
  long double sum = 0;
  const float *u = j->atoms + ((gidx)a * j->d + m) * j->p;
  const float *v = j->atoms + ((gidx)b * j->d + k) * j->p;
  for (idx c = 0; c < j->p; c++) sum += (long double)u[c] * v[c];
  return sum;
}

static long double dot_border(const struct joint *j, idx a, idx m, idx direction)
{
  long double sum = 0;
  const float *u = j->atoms + ((gidx)a * j->d + m) * j->p;
  for (idx c = 0; c < j->p; c++) sum += u[c] * (long double)j->e[(gidx)direction * j->p + c];
  return sum;
}

/* Fill the full matrix [size][size]: the codes of row after row, then the borders.  No vector is
 * dropped. */
static void full_fill(const struct joint_problem *c, long double *full, gidx size)
{
  const struct joint *j = &c->joint;
  idx d = c->d;
  gidx codes = c->start[c->n] * d;
  for (idx i = 0; i < c->n; i++)
    for (gidx a = c->start[i]; a < c->start[i + 1]; a++)
      for (idx m = 0; m < d; m++) {
        gidx row = a * d + m;
        for (gidx b = c->start[i]; b < c->start[i + 1]; b++)
          for (idx k = 0; k < d; k++)
            full[row * size + b * d + k] =
                dot_atoms(j, c->list[a], m, c->list[b], k) + (row == b * d + k ? c->rho : 0);
      }
  for (idx i = 0; i < c->n; i++) {
    long double r[256];
    for (idx col = 0; col < c->p; col++) {
      r[col] = c->x[(gidx)i * c->p + col];
      for (gidx a = c->start[i]; a < c->start[i + 1]; a++)
        for (idx m = 0; m < d; m++)
          r[col] -=
              (long double)c->codes[a * d + m] * c->atoms[((gidx)c->list[a] * d + m) * c->p + col];
    }
    for (gidx b = c->start[i]; b < c->start[i + 1]; b++)
      for (idx e = j->direction[c->list[b]]; e < j->direction[c->list[b] + 1]; e++)
        for (idx k = 0; k < d; k++) {
          gidx column = codes + (gidx)e * d + k;
          for (gidx a = c->start[i]; a < c->start[i + 1]; a++)
            for (idx m = 0; m < d; m++) {
              long double value = dot_border(j, c->list[a], m, e) * c->codes[b * d + k];
              for (idx col = 0; a == b && m == k && col < c->p; col++)
                value -= r[col] * j->e[(gidx)e * c->p + col];
              full[(a * d + m) * size + column] += value;
              full[column * size + a * d + m] += value;
            }
          for (gidx a = c->start[i]; a < c->start[i + 1]; a++)
            for (idx f = j->direction[c->list[a]]; f < j->direction[c->list[a] + 1]; f++)
              for (idx m = 0; m < d; m++) {
                long double sum = 0;
                for (idx col = 0; col < c->p; col++)
                  sum += (long double)j->e[(gidx)e * c->p + col] * j->e[(gidx)f * c->p + col];
                full[column * size + codes + (gidx)f * d + m] +=
                    sum * c->codes[b * d + k] * c->codes[a * d + m];
              }
        }
  }
}

/* log |det| by Gaussian elimination with pivoting, which does not use symmetry. */
static real full_log_det(long double *full, gidx size)
{
  long double sum = 0;
  for (gidx k = 0; k < size; k++) {
    gidx best = k;
    for (gidx i = k; i < size; i++)
      if (fabsl(full[i * size + k]) > fabsl(full[best * size + k])) best = i;
    for (gidx j = 0; j < size; j++) {
      long double swap = full[k * size + j];
      full[k * size + j] = full[best * size + j];
      full[best * size + j] = swap;
    }
    sum += logl(fabsl(full[k * size + k]));
    for (gidx i = k + 1; i < size; i++) {
      long double factor = full[i * size + k] / full[k * size + k];
      for (gidx j = k; factor != 0 && j < size; j++)
        full[i * size + j] -= factor * full[k * size + j];
    }
  }
  return (real)sum;
}

/* The joint log-determinant; NaN if S is not positive definite. */
static real joint_log_det(struct joint_problem *c)
{
  gidx n = joint_border(&c->joint);
  struct joint_sums sums;
  real *s = NULL, *pivot = NULL;
  joint_sums_init(&sums);
  if (arena_alloc(&c->arena, &s, n * n, sizeof(real)) ||
      arena_alloc(&c->arena, &pivot, n, sizeof(real)) ||
      joint_reference(&c->joint, &c->rows, s, n, &sums))
    return NAN;
  if (cholesky_reference(s, (idx)n, n, pivot) < n) return NAN;
  struct det_pair border = det_pair_unit;
  for (gidx i = 0; i < n; i++) border = det_pair_pivot(border, pivot[i]);
  return det_pair_value(det_pair_times(pair_sum_total(&sums.pairs), border));
}

static void full_check(struct joint_problem c)
{
  long double *full = NULL;
  int status = joint_problem_open(&c);
  gidx size = c.start[c.n] * c.d + joint_border(&c.joint);
  if (!status) status = arena_alloc(&c.arena, &full, size * size, sizeof *full);
  full_fill(&c, full, size);
  real want = full_log_det(full, size), got = joint_log_det(&c);
  ok(!status && fabs(got - want) <= tolerance(want, size),
     "d=%d s=%d q=%d rho=%g: full matrix of %lld: %.15g, joint %.15g", c.d, c.s, c.q, c.rho,
     (long long)size, want, got);
  arena_free(&c.arena);
}

/* The log-determinant of an atom's own system by (N.16), with plain sums.  Rows have one atom
 * each. */
static real atom_log_det(struct joint_problem *c, idx atom)
{
  const struct joint *j = &c->joint;
  idx d = c->d, q = j->direction[atom + 1] - j->direction[atom], k = q * d;
  real *h, *b, *g, *corner, *step_t, *step_b, *work, *g_b;
  gidx rows = 0;
  struct arena *arena = &c->arena;
  if (arena_alloc(arena, &h, (gidx)c->n * d * d, sizeof(real)) ||
      arena_alloc(arena, &b, (gidx)c->n * d * k, sizeof(real)) ||
      arena_alloc(arena, &g, (gidx)c->n * d, sizeof(real)) ||
      arena_alloc(arena, &corner, (gidx)k * k, sizeof(real)) ||
      arena_alloc(arena, &g_b, k, sizeof(real)) ||
      arena_alloc(arena, &step_t, (gidx)c->n * d, sizeof(real)) ||
      arena_alloc(arena, &step_b, k, sizeof(real)) ||
      arena_alloc(arena, &work, arrow_work(d, k), sizeof(real)))
    return NAN;
  for (idx i = 0; i < c->n; i++) {
    if (c->start[i] == c->start[i + 1] || c->list[c->start[i]] != atom) continue;
    const float *t = c->codes + c->start[i] * d, *x = c->x + (gidx)i * c->p;
    for (idx m = 0; m < d; m++)
      for (idx l = 0; l < d; l++)
        h[rows * d * d + l * d + m] = (real)dot_atoms(j, atom, m, atom, l) + (m == l ? c->rho : 0);
    for (idx e = 0; e < q; e++)
      for (idx l = 0; l < d; l++) {
        const real *direction = j->e + (gidx)(j->direction[atom] + e) * c->p;
        for (idx m = 0; m < d; m++) {
          real value = (real)dot_border(j, atom, m, j->direction[atom] + e) * t[l];
          for (idx col = 0; m == l && col < c->p; col++) {
            real r = x[col];
            for (idx v = 0; v < d; v++)
              r -= (real)t[v] * c->atoms[((gidx)atom * d + v) * c->p + col];
            value -= r * direction[col];
          }
          b[rows * d * k + (e * d + l) * d + m] = value;
        }
        for (idx f = 0; f < q; f++)
          for (idx m = 0; m < d; m++) {
            real sum = 0;
            for (idx col = 0; col < c->p; col++)
              sum += direction[col] * j->e[(gidx)(j->direction[atom] + f) * c->p + col];
            corner[(e * d + l) * k + f * d + m] += sum * t[l] * t[m];
          }
      }
    rows++;
  }
  struct arrow_system system = {d, k, rows, h, b, g, corner, g_b};
  struct arrow_options options = {0};
  struct arrow_outcome out;
  arrow_reference(&system, &options, (struct arrow_start){0}, step_t, step_b, &out, work);
  return out.log_det;
}

static void sum_check(struct joint_problem c)
{
  int status = joint_problem_open(&c);
  real joint = joint_log_det(&c), sum = 0, magnitude = 0;
  for (idx a = 0; a < c.k; a++) {
    real one = atom_log_det(&c, a);
    sum += one;
    magnitude += fabs(one);
  }
  gidx pivots = c.start[c.n] * c.d + joint_border(&c.joint);
  ok(!status && fabs(joint - sum) <= tolerance(magnitude, pivots),
     "d=%d q=%d rho=%g: sum over atoms %.15g, joint %.15g", c.d, c.q, c.rho, sum, joint);
  arena_free(&c.arena);
}

int main(void)
{
  static const struct joint_problem full[] = {
      {.n = 40, .k = 8, .d = 1, .p = 60, .s = 3, .q = 3},
      {.n = 30, .k = 8, .d = 1, .p = 80, .s = 6, .q = 2, .rho = 0.5},
      {.n = 30, .k = 6, .d = 3, .p = 60, .s = 2, .q = 2},
      {.n = 20, .k = 5, .d = 2, .p = 60, .s = 3, .q = 4, .rho = 0.125},
  };
  static const struct joint_problem apart[] = {
      {.n = 80, .k = 6, .d = 1, .p = 50, .s = 1, .q = 4, .apart = 1},
      {.n = 90, .k = 6, .d = 3, .p = 50, .s = 1, .q = 2, .apart = 1, .rho = 0.25},
  };
  claim_begin("the log-determinant of the joint system is that of the full matrix");
  for (int i = 0; i < LENGTH(full); i++) full_check(full[i]);
  claim_end();
  claim_begin("if no two atoms share a row, the log-determinant is the sum over the atoms");
  for (int i = 0; i < LENGTH(apart); i++) sum_check(apart[i]);
  claim_end();
  return done_testing();
}
