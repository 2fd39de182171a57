/* SPDX-License-Identifier: BSD-3-Clause
 * The K = 1 system of an atom from a fit's state (N.16).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Border index of direction j and frame vector m: j d + m; k = q d.  Blocks are column-major, as
 * model/arrow.h has them. */
#ifndef MODEL_ASSEMBLY_H
#define MODEL_ASSEMBLY_H

#include "base/memory.h"
#include "model/arrow.h"
#include "model/dictionary.h"
#include "model/directions.h"
#include "model/state.h"

/* Products of frame and directions, each a chain over P: computed, never taken to be 1 or 0. */
struct frame_products {
  idx d, q;
  real uu[FRAME_MOST * FRAME_MOST];           /* [m][m'] U'U */
  real ue[DIRECTIONS_MOST * FRAME_MOST];      /* [j][m] (U'E_j)_m */
  real ee[DIRECTIONS_MOST * DIRECTIONS_MOST]; /* [j][j'] E_j'E_j' */
};
void frame_products(const real *frame, const real *e, idx d, idx q, idx p,
                    struct frame_products *out);

/* What a row adds: its codes t, then U'r, then E'r; reals a row. */
static inline idx row_products(idx d, idx q)
{
  return 2 * d + q;
}

/* h[d d], b[d k], g[d] <- the block of a row with products[2 d + q]. */
void assembly_row(const struct frame_products *f, real rho, const real *products, real *h, real *b,
                  real *g);

/* c[k k], hb[k] <- the border of n rows with products[n][stride], sums by (N.12). */
void assembly_border(const struct frame_products *f, gidx n, const real *products, idx stride,
                     real *c, real *hb);

/* Reference: the system of an atom with directions e[q][p]; its arrays are in the arena. */
int assembly_reference(const struct atom_view *a, const real *e, idx q, struct arena *arena,
                       struct arrow_system *out);

#endif
