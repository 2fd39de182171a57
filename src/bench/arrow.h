/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench solve: arrow systems beside the memory's bandwidth, LAPACKE and PETSc.
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

/* Measure and print.  Collective; several ranks only with GPUs. */
int bench_arrow(const struct bench_arrow_options *o, const struct bench_common *common,
                struct comm *c);

/* Seconds of one system by LAPACKE and BLAS: dpotrf and dtrsm for each row, dsyrk for the sums, the
 * border by dpotrf; on one thread.  step_t, step_b as arrow_reference; work has
 * peer_arrow_work(d, k, n) reals.  -1 when OpenBLAS or LAPACKE is not installed. */
double peer_arrow(const struct arrow_system *s, real *step_t, real *step_b, real *work);
gidx peer_arrow_work(idx d, idx k, gidx n);

/* Seconds of one system by PETSc: its whole matrix factored and solved by KSPPREONLY and Cholesky;
 * making the matrix is not counted.  -1 when PETSc is not installed, or its solution is not
 * that of step_t, step_b.  Close when all are done. */
double peer_petsc(const struct arrow_system *s, const real *step_t, const real *step_b);
void peer_petsc_close(void);

#endif
