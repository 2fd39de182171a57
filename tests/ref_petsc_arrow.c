/* SPDX-License-Identifier: BSD-3-Clause
 * Compares arrow systems with PETSc, which solves the whole bordered matrix by Cholesky, by LU and
 * by a Schur field split.  Checks solutions, backward errors and log-determinants, and prints the
 * time of each.
 * RUN: np=1 */
#include "config.h"

#ifdef HAVE_PETSC
#include <petscksp.h>

#include "arrow_data.h"
#include "base/log.h"
#include "base/status.h"
#include "tap.h"

/* A call of PETSc that fails ends the program. */
#define PETSC(call) PetscCallAbort(PETSC_COMM_SELF, call)

/* The largest componentwise backward error: see test_arrow_reference.c. */
static const real MAX_BACKWARD = 32 * 0x1p-53;
static const real MAX_STEPS = 1e-12; /* difference of solutions; conditions are below 1e3 */

struct whole {
  Mat a;
  Vec right, x;
  gidx rows; /* matrix rows of the row blocks; those of the border follow */
  real norm; /* the Frobenius norm */
};

static void entry_set(struct whole *w, gidx i, gidx j, real value)
{
  PETSC(MatSetValue(w->a, (PetscInt)i, (PetscInt)j, value, INSERT_VALUES));
  if (i != j) PETSC(MatSetValue(w->a, (PetscInt)j, (PetscInt)i, value, INSERT_VALUES));
}

/* Make the matrix with both triangles, from the lower triangles of its symmetric blocks. */
static struct whole whole_make(const struct arrow_system *s)
{
  gidx d = s->d, k = s->k;
  struct whole w = {.rows = s->n * d};
  PetscInt size = (PetscInt)(w.rows + k), *filled = NULL;
  PETSC(PetscMalloc1(size, &filled));
  for (PetscInt i = 0; i < size; i++) filled[i] = i < w.rows ? (PetscInt)(d + k) : size;
  PETSC(MatCreateSeqAIJ(PETSC_COMM_SELF, size, size, 0, filled, &w.a));
  PETSC(MatSetOption(w.a, MAT_SYMMETRIC, PETSC_TRUE));
  for (gidx row = 0; row < s->n; row++)
    for (gidx j = 0; j < d; j++) {
      for (gidx i = j; i < d; i++)
        entry_set(&w, row * d + i, row * d + j, s->h[row * d * d + j * d + i]);
      for (gidx c = 0; c < k; c++)
        entry_set(&w, w.rows + c, row * d + j, s->b[row * d * k + c * d + j]);
    }
  for (gidx j = 0; j < k; j++)
    for (gidx i = j; i < k; i++) entry_set(&w, w.rows + i, w.rows + j, s->c[j * k + i]);
  PETSC(MatAssemblyBegin(w.a, MAT_FINAL_ASSEMBLY));
  PETSC(MatAssemblyEnd(w.a, MAT_FINAL_ASSEMBLY));
  PETSC(MatNorm(w.a, NORM_FROBENIUS, &w.norm));
  PETSC(MatCreateVecs(w.a, &w.x, &w.right));
  for (gidx i = 0; i < w.rows + k; i++)
    PETSC(VecSetValue(w.right, (PetscInt)i, i < w.rows ? -s->g[i] : -s->g_b[i - w.rows],
                      INSERT_VALUES));
  PETSC(VecAssemblyBegin(w.right));
  PETSC(VecAssemblyEnd(w.right));
  PETSC(PetscFree(filled));
  return w;
}

static void whole_free(struct whole *w)
{
  PETSC(MatDestroy(&w->a));
  PETSC(VecDestroy(&w->x));
  PETSC(VecDestroy(&w->right));
}

static real backward_error(const struct whole *w, Vec x)
{
  Vec rest;
  real error, x_norm, right_norm;
  PETSC(VecDuplicate(w->right, &rest));
  PETSC(MatMult(w->a, x, rest));
  PETSC(VecAXPY(rest, -1, w->right));
  PETSC(VecNorm(rest, NORM_2, &error));
  PETSC(VecNorm(x, NORM_2, &x_norm));
  PETSC(VecNorm(w->right, NORM_2, &right_norm));
  PETSC(VecDestroy(&rest));
  return error / (w->norm * x_norm + right_norm);
}

static void factor_setup(KSP ksp, const char *type)
{
  PC pc;
  PETSC(KSPSetType(ksp, KSPPREONLY));
  PETSC(KSPGetPC(ksp, &pc));
  PETSC(PCSetType(pc, type));
}

/* Set up a full Schur factorisation.  The Schur complement is formed, and both parts are
 * factored. */
static void split_setup(KSP ksp, const struct whole *w)
{
  PC pc;
  IS part;
  KSP *inner;
  PetscInt size, count;
  factor_setup(ksp, PCFIELDSPLIT);
  PETSC(KSPGetPC(ksp, &pc));
  PETSC(MatGetSize(w->a, &size, NULL));
  PETSC(ISCreateStride(PETSC_COMM_SELF, (PetscInt)w->rows, 0, 1, &part));
  PETSC(PCFieldSplitSetIS(pc, "rows", part));
  PETSC(ISDestroy(&part));
  PETSC(ISCreateStride(PETSC_COMM_SELF, size - (PetscInt)w->rows, (PetscInt)w->rows, 1, &part));
  PETSC(PCFieldSplitSetIS(pc, "border", part));
  PETSC(ISDestroy(&part));
  PETSC(PCFieldSplitSetType(pc, PC_COMPOSITE_SCHUR));
  PETSC(PCFieldSplitSetSchurFactType(pc, PC_FIELDSPLIT_SCHUR_FACT_FULL));
  PETSC(PCFieldSplitSetSchurPre(pc, PC_FIELDSPLIT_SCHUR_PRE_FULL, NULL));
  PETSC(KSPSetUp(ksp));
  PETSC(PCFieldSplitGetSubKSP(pc, &count, &inner));
  for (PetscInt i = 0; i < count; i++) factor_setup(inner[i], PCLU);
  PETSC(PetscFree(inner));
}

/* w->x <- the solution.  Returns the seconds of factoring and solving.  type NULL: the field
 * split. */
static double petsc_solve(struct whole *w, const char *type)
{
  KSP ksp;
  double begun = log_seconds();
  PETSC(KSPCreate(PETSC_COMM_SELF, &ksp));
  PETSC(KSPSetOperators(ksp, w->a, w->a));
  if (type)
    factor_setup(ksp, type);
  else
    split_setup(ksp, w);
  PETSC(KSPSolve(ksp, w->right, w->x));
  double seconds = log_seconds() - begun;
  PETSC(KSPDestroy(&ksp));
  return seconds;
}

/* The log-determinant by a dense LU factor; the determinant is positive. */
static real petsc_log_det(const struct whole *w)
{
  Mat dense;
  PetscInt size;
  const PetscScalar *u;
  real total = 0;
  PETSC(MatGetSize(w->a, &size, NULL));
  PETSC(MatConvert(w->a, MATSEQDENSE, MAT_INITIAL_MATRIX, &dense));
  PETSC(MatLUFactor(dense, NULL, NULL, NULL));
  PETSC(MatDenseGetArrayRead(dense, &u));
  for (PetscInt i = 0; i < size; i++) total += log(fabs(u[i * size + i]));
  PETSC(MatDenseRestoreArrayRead(dense, &u));
  PETSC(MatDestroy(&dense));
  return total;
}

static Vec ours(const struct whole *w, const struct arrow_item *item)
{
  Vec x;
  PetscInt size;
  PETSC(VecDuplicate(w->right, &x));
  PETSC(VecGetSize(x, &size));
  for (PetscInt i = 0; i < size; i++)
    PETSC(VecSetValue(x, i, i < w->rows ? item->step_t[i] : item->step_b[i - w->rows],
                      INSERT_VALUES));
  PETSC(VecAssemblyBegin(x));
  PETSC(VecAssemblyEnd(x));
  return x;
}

/* |x - w->x| / |x| */
static real difference(const struct whole *w, Vec x)
{
  real apart, size;
  Vec rest;
  PETSC(VecDuplicate(x, &rest));
  PETSC(VecWAXPY(rest, -1, x, w->x));
  PETSC(VecNorm(rest, NORM_2, &apart));
  PETSC(VecNorm(x, NORM_2, &size));
  PETSC(VecDestroy(&rest));
  return apart / (size > 0 ? size : 1);
}

static void log_det_test(const struct whole *w, const struct arrow_item *item)
{
  gidx size = w->rows + item->system.k;
  real want = petsc_log_det(w), off = fabs(want - item->outcome.log_det);
  ok(off <= 1e-13 * fmax(1, fabs(want)) + 0x1p-52 * (real)size, "log det %.15g, PETSc's %.15g",
     item->outcome.log_det, want);
}

static void system_test(struct device *dev, idx d, idx k, gidx n, int max_dense)
{
  static const struct {
    const char *name, *type;
  } ways[] = {{"Cholesky", PCCHOLESKY}, {"LU", PCLU}, {"Schur field split", NULL}};
  struct arrow_item item = item_make(d, k, n, 3, 0);
  struct arrow_job job = {.items = &item, .count = 1};
  struct whole w = whole_make(&item.system);
  int warm = device_arrow(dev, &job); /* the first call allocates arrays */
  double begun = log_seconds();
  int solved = warm == OK && device_arrow(dev, &job) == OK && item.outcome.status == ARROW_OK;
  double seconds = log_seconds() - begun;
  Vec x = ours(&w, &item);
  const struct arrow_options plain = {0};
  real error = item_backward(&item, &plain, 0), off = item_backward(&item, &plain, 1e-12);
  ok(solved && error <= MAX_BACKWARD && off > 10 * MAX_BACKWARD,
     "d=%d k=%d n=%lld: backward error %.1e, off by 1e-12 %.1e", d, k, (long long)n, error, off);
  for (int i = 0; i < LENGTH(ways); i++) {
    if (!ways[i].type && (k == 0 || n == 0)) continue; /* nothing to split */
    double theirs = petsc_solve(&w, ways[i].type);
    real apart = difference(&w, x);
    ok(apart <= MAX_STEPS, "%s: solutions differ by %.1e, normwise backward error %.1e",
       ways[i].name, apart, backward_error(&w, w.x));
    printf("# PETSc %s %.3g ms, ours %.3g ms\n", ways[i].name, 1e3 * theirs, 1e3 * seconds);
  }
  if (w.rows + k <= max_dense) log_det_test(&w, &item);
  VecDestroy(&x);
  whole_free(&w);
  item_free(&item);
}

int main(int argc, char **argv)
{
  static const struct {
    idx d, k;
    gidx n;
  } shapes[] = {{1, 1, 1}, {2, 5, 1},   {2, 8, 33},   {2, 32, 40}, {3, 0, 32},
                {8, 3, 7}, {5, 16, 31}, {4, 40, 100}, {2, 4, 0},   {2, 8, 20000}};
  struct device dev;
  struct device_options options = {.p = 1, .d = 1, .threads = 1, .variant = "auto"};
  PETSC(PetscInitialize(&argc, &argv, NULL, NULL));
  if (device_check_fma()) {
    printf("1..0 # SKIP this processor has no fused multiply-add\n");
    return 0;
  }
  ok(device_open(&dev, &options) == OK, "a device");
  claim_begin("steps, backward errors and log-determinants beside PETSc's");
  for (int i = 0; i < LENGTH(shapes); i++)
    system_test(&dev, shapes[i].d, shapes[i].k, shapes[i].n, 1000);
  claim_end();
  device_close(&dev);
  PETSC(PetscFinalize());
  return done_testing();
}

#else
#include <stdio.h>

int main(void)
{
  printf("1..0 # SKIP built without PETSc: configure --with-petsc\n");
  return 0;
}
#endif
