/* SPDX-License-Identifier: BSD-3-Clause
 * A sweep that moves atoms class by class, and the colouring before it, for `sagitta-bench rates`.
 *
 * Floor: bench.  Functions are collective. */
#ifndef BENCH_MOVES_H
#define BENCH_MOVES_H

#include "bench/route.h"
#include "comm/comm.h"

/* A sweep over rows that have one atom each.  Each rank has rank_rows rows of its own; on GPUs all
 * ranks have the same rows.  The atoms of a class have about class_rows rows times the number of
 * ranks.  Each atom has atom_rows rows, all ranks together.  *work <- each rank's part of
 * sweep_work() (refit/times.h).  ERR_DEVICE: a GPU takes no such steps. */
struct bench_moves_shape {
  idx columns, atom_rows, class_rows, rank_rows;
  idx directions; /* in which each atom moves */
};
int bench_moves_begin(const struct bench_moves_shape *shape, const struct bench_common *common,
                      struct comm *c, double *work);
int bench_moves_run(void);
int bench_moves_end(void);

/* Colouring of random supports with s atoms per row.  *work <- the number of pairs of atoms in the
 * rows of a rank, s * s / 2 per row. */
int bench_color_begin(idx s, idx atoms, const struct bench_common *common, struct comm *c,
                      double *work);
int bench_color_run(void);
int bench_color_end(void);

#endif
