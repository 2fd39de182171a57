/* SPDX-License-Identifier: BSD-3-Clause
 * Arguments that the launcher and the kernel of the assembly of S share (N.18).  C11 that is also
 * CUDA C++.
 *
 * Floor: kernels.  Includes forms.h alone. */
#ifndef JOINT_TYPES_H
#define JOINT_TYPES_H

#include "forms.h"

enum { JOINT_THREADS = 64 };

/* As struct row_offsets of device/cpu/joint_row.h. */
struct joint_offsets {
  int m, width, padded, count;
  long long y, entry, border, vector;
};

/* A batch of rows, in the layout of struct joint_state of device/cpu/joint_impl.h.  From
 * places[i].entry + i on, `at` has for each atom of row i the index of its first border in the
 * row. */
struct joint_args {
  const struct joint_offsets *places; /* [n] */
  const int *at;                      /* [entries + n] */
  const int *border;                  /* [borders of the batch] index in S */
  const double *t, *y;
  const long long *list_start; /* [k + 1] */
  const int *list_row, *list_at;
  const int *direction; /* [k + 1] */
  const double *own;    /* [directions][max_q] */
  double *s;
  long long stride;
  int d, max_q;
};

#endif
