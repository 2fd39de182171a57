/* SPDX-License-Identifier: BSD-3-Clause
 * Compares the joint Schur complement S with PETSc: its log-determinant, the solution of S x = b
 * and its backward error, and the inverse from which the covariance is made.
 * RUN: np=1 */
#include "config.h"

#ifdef HAVE_PETSC
#include <petscksp.h>

#include "device/joint.h"
#include "joint_problem.h"
#include "model/dense.h"
#include "tap.h"

/* A call of PETSc that fails ends the program. */
#define PETSC(call) PetscCallAbort(PETSC_COMM_SELF, call)

static const real MAX_BACKWARD = 1e-14;   /* normwise: doc/numerics.md, section 9 */
static const real MAX_COVARIANCE = 1e-10; /* relative to the largest entry; cond(S) <= 1e4 */

struct schur {
  idx n;
  real *s, *l, *z; /* S, its factor, the factor's inverse: [n][n] */
  real log_det;
};

static int schur_make(struct joint_problem *c, struct schur *q)
{
  struct device dev;
  struct device_options options = {.p = 1, .d = 1, .threads = 1, .variant = "auto"};
  struct dense d;
  struct joint_work w = {0};
  struct joint_sums sums;
  real *pivot;
  idx good;
  gidx n = q->n = joint_border(&c->joint);
  TRY(arena_alloc(&c->arena, &q->s, n * n, sizeof(real)));
  TRY(arena_alloc(&c->arena, &q->l, n * n, sizeof(real)));
  TRY(arena_alloc(&c->arena, &q->z, n * n, sizeof(real)));
  TRY(arena_alloc(&c->arena, &pivot, n, sizeof(real)));
  TRY(device_open(&dev, &options));
  TRY(dense_open(&d, &dev, 64, q->n));
  TRY(joint_open(&w, &dev, &c->joint, c->s, cpu_joint_row_bytes(&c->joint, c->s) * c->n));
  joint_sums_init(&sums);
  TRY(joint_begin(&w, &d, q->s, n));
  TRY(joint_batch(&w, &c->rows, &sums));
  TRY(joint_add(&w, q->s, n));
  for (gidx j = 0; j < n; j++)
    for (gidx i = j; i < n; i++) q->l[i + j * n] = q->s[j + i * n] = q->s[i + j * n];
  TRY(dense_cholesky(&d, q->l, q->n, n, pivot, &good));
  CHECK(good == n, ERR_INTERNAL, "S is not definite");
  struct det_pair pair = det_pair_unit;
  for (gidx i = 0; i < n; i++) pair = det_pair_pivot(pair, pivot[i]);
  q->log_det = det_pair_value(pair);
  for (gidx i = 0; i < n * n; i++) q->z[i] = q->l[i];
  TRY(dense_inverse(&d, q->z, q->n, n));
  joint_close(&w);
  dense_close(&d);
  device_close(&dev);
  return OK;
}

static Mat matrix_of(const struct schur *q)
{
  Mat a;
  PetscScalar *values;
  PETSC(MatCreateSeqDense(PETSC_COMM_SELF, q->n, q->n, NULL, &a));
  PETSC(MatDenseGetArrayWrite(a, &values));
  for (gidx i = 0; i < (gidx)q->n * q->n; i++) values[i] = q->s[i];
  PETSC(MatDenseRestoreArrayWrite(a, &values));
  PETSC(MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY));
  PETSC(MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY));
  return a;
}

static void log_det_test(const struct schur *q)
{
  Mat a = matrix_of(q);
  const PetscScalar *u;
  real total = 0;
  PETSC(MatLUFactor(a, NULL, NULL, NULL));
  PETSC(MatDenseGetArrayRead(a, &u));
  for (gidx i = 0; i < q->n; i++) total += log(fabs(u[i * q->n + i]));
  PETSC(MatDenseRestoreArrayRead(a, &u));
  PETSC(MatDestroy(&a));
  ok(fabs(total - q->log_det) <= 1e-13 * fmax(1, fabs(total)) + 0x1p-52 * q->n,
     "border %d: log det %.15g, PETSc's %.15g", q->n, q->log_det, total);
}

/* Check the backward error of our solution, by PETSc's product, and compare it with PETSc's. */
static void solve_test(const struct schur *q)
{
  Mat a = matrix_of(q);
  Vec x, b, theirs;
  KSP ksp;
  PC pc;
  PetscScalar *values;
  real norm, x_norm, b_norm, apart;
  PETSC(MatCreateVecs(a, &x, &b));
  PETSC(VecDuplicate(x, &theirs));
  PETSC(VecGetArray(b, &values));
  for (idx i = 0; i < q->n; i++) values[i] = random_normal(8, 1, (uint64_t)i);
  PETSC(VecRestoreArray(b, &values));
  PETSC(VecCopy(b, x));
  PETSC(VecGetArray(x, &values));
  cholesky_solve(q->l, q->n, q->n, values);
  PETSC(VecRestoreArray(x, &values));
  PETSC(KSPCreate(PETSC_COMM_SELF, &ksp));
  PETSC(KSPSetOperators(ksp, a, a));
  PETSC(KSPSetType(ksp, KSPPREONLY));
  PETSC(KSPGetPC(ksp, &pc));
  PETSC(PCSetType(pc, PCLU));
  PETSC(KSPSolve(ksp, b, theirs));
  PETSC(VecAXPY(theirs, -1, x));
  PETSC(VecNorm(theirs, NORM_2, &apart));
  PETSC(MatMult(a, x, theirs));
  PETSC(VecAXPY(theirs, -1, b));
  PETSC(VecNorm(theirs, NORM_2, &norm));
  PETSC(VecNorm(x, NORM_2, &x_norm));
  PETSC(VecNorm(b, NORM_2, &b_norm));
  real a_norm, error;
  PETSC(MatNorm(a, NORM_FROBENIUS, &a_norm));
  error = norm / (a_norm * x_norm + b_norm);
  ok(error <= MAX_BACKWARD && apart <= MAX_COVARIANCE * x_norm,
     "border %d: backward error %.2g, PETSc's solution is %.2g away", q->n, error, apart / x_norm);
  PETSC(KSPDestroy(&ksp));
  PETSC(VecDestroy(&x));
  PETSC(VecDestroy(&b));
  PETSC(VecDestroy(&theirs));
  PETSC(MatDestroy(&a));
}

static void inverse_test(const struct schur *q)
{
  Mat a = matrix_of(q), unit, inverse;
  const PetscScalar *theirs;
  real apart = 0, largest = 0;
  PETSC(MatDuplicate(a, MAT_DO_NOT_COPY_VALUES, &unit));
  PETSC(MatDuplicate(a, MAT_DO_NOT_COPY_VALUES, &inverse));
  PETSC(MatZeroEntries(unit));
  PETSC(MatShift(unit, 1));
  PETSC(MatLUFactor(a, NULL, NULL, NULL));
  PETSC(MatMatSolve(a, unit, inverse));
  PETSC(MatDenseGetArrayRead(inverse, &theirs));
  for (idx i = 0; i < q->n; i++)
    for (idx j = 0; j < q->n; j++) {
      real mine = inverse_entry(q->z, q->n, q->n, i, j);
      apart = fmax(apart, fabs(mine - theirs[i + (gidx)j * q->n]));
      largest = fmax(largest, fabs(mine));
    }
  PETSC(MatDenseRestoreArrayRead(inverse, &theirs));
  ok(apart <= MAX_COVARIANCE * largest, "border %d: the inverse is %.2g away from PETSc's", q->n,
     apart / largest);
  PETSC(MatDestroy(&a));
  PETSC(MatDestroy(&unit));
  PETSC(MatDestroy(&inverse));
}

int main(int argc, char **argv)
{
  static const struct joint_problem problems[] = {
      {.n = 400, .k = 30, .d = 1, .p = 120, .s = 6, .q = 4},
      {.n = 600, .k = 40, .d = 1, .p = 150, .s = 10, .q = 7, .rho = 0.25},
      {.n = 300, .k = 20, .d = 3, .p = 100, .s = 4, .q = 3},
  };
  PETSC(PetscInitialize(&argc, &argv, NULL, NULL));
  claim_begin("log-determinant, solution and inverse of a Schur complement are PETSc's");
  for (int i = 0; i < LENGTH(problems); i++) {
    struct joint_problem c = problems[i];
    struct schur q = {0};
    int status = joint_problem_open(&c);
    if (!status) status = schur_make(&c, &q);
    if (!ok(!status, "problem %d %s", i, status ? status_message() : "")) continue;
    log_det_test(&q);
    solve_test(&q);
    inverse_test(&q);
    arena_free(&c.arena);
  }
  claim_end();
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
