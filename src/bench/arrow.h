/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench solve: times of arrow systems, compared with the bandwidth of memory, LAPACKE and
 * PETSc.
 *
 * Floor: bench. */
#ifndef BENCH_ARROW_H
#define BENCH_ARROW_H

#include "base/options.h"
#include "bench/route.h"
#include "comm/comm.h"
#include "model/arrow.h"

struct bench_arrow_options {
  gidx system_rows, systems;
  idx frame, border, megabytes;
  const char *lengths;
};
enum { BENCH_ARROW_ROWS = 6 };
extern const struct option_row bench_arrow_rows[BENCH_ARROW_ROWS];

/* Measure and print.  Collective; several ranks are for GPUs only. */
int bench_arrow(const struct bench_arrow_options *o, const struct bench_common *common,
                struct comm *c);

/* Systems of the same kind for other benchmarks, with a border of o->border; each rank has a share.
 * bench_arrow_begin(): *bytes <- the bytes of this rank's systems and steps.  bench_arrow_solve()
 * solves all systems of this rank. */
int bench_arrow_begin(const struct bench_arrow_options *o, const struct bench_common *common,
                      struct comm *c, double *bytes);
int bench_arrow_solve(void);
void bench_arrow_end(void);

/* Seconds of one system by LAPACKE and BLAS, on one thread: dpotrf and dtrsm for each row, dsyrk
 * for the sums, dpotrf for the border, then back substitution.  step_t and step_b <- the solution
 * that arrow_reference() finds, with other rounding; work has peer_arrow_work(d, k, n) reals.
 * -1: OpenBLAS or LAPACKE is not installed. */
double peer_arrow(const struct arrow_system *s, real *step_t, real *step_b, real *work);
gidx peer_arrow_work(idx d, idx k, gidx n);

/* Seconds of one system by PETSc: the whole matrix is factored and solved by KSPPREONLY and
 * Cholesky.  The time to make the matrix is not included.  -1: PETSc is not installed; there was an
 * error (memory, PETSc, or too many entries for int); or PETSc's solution differs from step_t and
 * step_b.
 * Call peer_petsc_close() after the last system. */
double peer_petsc(const struct arrow_system *s, const real *step_t, const real *step_b);
void peer_petsc_close(void);

#endif
