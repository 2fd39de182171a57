/* SPDX-License-Identifier: BSD-3-Clause
 * The state of the pass, which the files of src/terminal share.
 *
 * Floor: terminal; included by src/terminal only. */
#ifndef TERMINAL_TERMINAL_IMPL_H
#define TERMINAL_TERMINAL_IMPL_H

#include "device/joint.h"
#include "refit/state.h"
#include "terminal/rows.h"
#include "terminal/terminal.h"

/* The pass.  On the heap, like every job's state (struct run of job/run.h). */
struct terminal {
  const struct terminal_task *t;
  struct comm *c;
  struct terminal_result *r;
  struct phase *phases;
  struct refit_task refit_task; /* for finding the directions */
  struct refit_state state;
  struct terminal_rows rows; /* on rank 0 */
  struct joint joint;
  float *atoms;   /* [k][d][p] */
  idx *direction; /* [k + 1] the first direction of each atom */
  real *e;        /* [directions][p] */
  idx longest;    /* largest number of atoms of a row */
  /* Rank 0 computes all but the directions on this device, which holds S; `dense` is the work space
   * of operations on S. */
  struct device device;
  struct dense dense;
  struct buffer s; /* [border][schur_stride()] real, on the device side */
  struct arena inputs;
};

/* The stride of S: even, which is fastest on GPUs. */
static inline gidx schur_stride(const struct terminal *w)
{
  return w->r->n_border + w->r->n_border % 2;
}

/* Allocate the atoms. */
int terminal_atoms_alloc(struct terminal *w);

#endif
