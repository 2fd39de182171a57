/* SPDX-License-Identifier: BSD-3-Clause
 * The K = 1 arrow system of an atom, from the state of a fit (N.16).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The border has k = q d entries: direction j and frame vector m have index j d + m.  Blocks are
 * column-major, as in model/arrow.h. */
#ifndef MODEL_ASSEMBLY_H
#define MODEL_ASSEMBLY_H

#include "base/memory.h"
#include "model/arrow.h"
#include "model/dictionary.h"
#include "model/directions.h"
#include "model/state.h"

/* Inner products of a frame and directions, as lane products (base/sums.h).  They are computed
 * although frames and directions are orthonormal: products that are 1 or 0 up to rounding are used
 * as they are. */
struct frame_products {
  idx d, q;
  real uu[MAX_FRAME * MAX_FRAME];           /* [m][m'] U'U */
  real ue[MAX_DIRECTIONS * MAX_FRAME];      /* [j][m] (U'E_j)_m */
  real ee[MAX_DIRECTIONS * MAX_DIRECTIONS]; /* [j][j'] E_j'E_j' */
};
void frame_products(const real *frame, const real *e, idx d, idx q, idx p,
                    struct frame_products *out);

/* Number of reals that a row contributes to the border: its codes t[d], then U'r [d], then E'r
 * [q]. */
static inline idx row_products(idx d, idx q)
{
  return 2 * d + q;
}

/* h[d d], b[d k], g[d] <- the diagonal block, the coupling and the gradient of a row that
 * contributes products[2 d + q]. */
void assembly_row(const struct frame_products *f, real rho, const real *products, real *h, real *b,
                  real *g);

/* c[k k], g_b[k] <- the border of n rows that contribute products[n][stride]; sums by (N.12). */
void assembly_border(const struct frame_products *f, gidx n, const real *products, idx stride,
                     real *c, real *g_b);

/* Reference: *out <- the system of an atom with directions e[q][p]; its arrays are in the arena. */
int assembly_reference(const struct atom_view *a, const real *e, idx q, struct arena *arena,
                       struct arrow_system *out);

#endif
