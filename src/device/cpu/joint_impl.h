/* SPDX-License-Identifier: BSD-3-Clause
 * The joint system on the CPU: the state of a batch, which joint_row.c fills row by row and
 * joint_add.c adds to S.
 *
 * Floor: device; included by joint*.c of both backends and lanczos.c only. */
#ifndef DEVICE_CPU_JOINT_IMPL_H
#define DEVICE_CPU_JOINT_IMPL_H

#include "device/cpu/cpu.h"
#include "device/cpu/dense_loops.h"
#include "device/cpu/joint_row.h"
#include "device/joint.h"

struct joint_state {
  struct arena arena;
  const struct joint *j; /* borrowed */
  const struct dense_loops *loops;
  int threads;
  idx longest, max_q;
  real *e;   /* of each atom [p][q], at p direction[a] */
  real *own; /* [directions][max_q] E'E inside each atom */
  struct row_space *space;
  /* the batch; arrays grow */
  idx n;
  struct row_offsets *rows;
  struct row_offsets end; /* where the next row would begin */
  gidx rows_capacity, border_capacity, vector_capacity, y_capacity;
  idx *atom, *at;      /* [entries], [entries + rows] */
  real *t, *pivot, *y; /* borders, vectors, Y */
  real *error;         /* [n] */
  gidx error_capacity, atom_capacity, at_capacity;
  gidx *list_start; /* [k + 1] rows of each atom */
  idx *list_row, *list_at;
  gidx list_capacity, list_at_capacity;
};

/* list_row, list_at [list_start[a] ..]: rows of the batch that have atom a, ascending, and the
 * atom's position there. */
void joint_lists_make(struct joint_state *s);

#endif
