/* SPDX-License-Identifier: BSD-3-Clause
 * The joint system on the CPU: the state of a batch.  joint_row.c makes its rows, and joint_add.c
 * adds it to S.
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
  real *e;   /* directions, [p][q] for each atom; those of atom a begin at e + p direction[a] */
  real *own; /* [directions][max_q] E'E inside each atom */
  struct row_space *space;
  /* The batch.  Its arrays grow when a batch needs more. */
  idx n;
  struct row_offsets *rows;
  struct row_offsets end; /* offsets of the next row */
  gidx rows_capacity, border_capacity, vector_capacity, y_capacity;
  idx *atom, *at;      /* [entries], [entries + rows] as in struct joint_row */
  real *t, *pivot, *y; /* codes t of the borders; pivots of the vectors; Y */
  real *error;         /* [n] */
  gidx error_capacity, atom_capacity, at_capacity;
  gidx *list_start; /* [k + 1] start of the list of each atom */
  idx *list_row, *list_at;
  gidx list_capacity, list_at_capacity;
};

/* For every atom a, list_row[list_start[a] ..] <- the rows of the batch that have it, ascending,
 * and list_at[..] <- the atom's position in each of these rows. */
void joint_lists_make(struct joint_state *s);

#endif
