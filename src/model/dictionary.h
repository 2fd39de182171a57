/* SPDX-License-Identifier: BSD-3-Clause
 * Dictionaries: K atoms, each a frame of d vectors of P floats, and how they are divided into
 * tiles.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Tiles have w atoms: tile j has atoms j w .. min((j + 1) w, K) - 1, and belongs to rank j mod the
 * number of ranks.  A rank holds its tiles one after another.  So each atom has an owner, and a
 * slot: its index in the owner's array. */
#ifndef MODEL_DICTIONARY_H
#define MODEL_DICTIONARY_H

#include "base/types.h"

enum { MAX_FRAME = 8 };

/* Atoms that can be read piece by piece as float32.  The io floor fills this struct for files. */
struct atom_source {
  idx k;            /* atoms */
  idx d, p;         /* vectors of a frame, columns */
  const char *name; /* borrowed: for messages */
  void *self;       /* borrowed */
  /* out[count][d][p] <- atoms first .. first + count - 1.  Not collective. */
  int (*read)(void *self, idx first, idx count, float *out);
  int is_shared; /* several threads may read at once */
  gidx unit;     /* atoms that are stored together, and so best read together; 0: no preference */
  /* ERR_INPUT: the atoms differ from the atoms that were written; read() does not check this.
   * Other threads may read meanwhile.  NULL: there is no separate check. */
  int (*confirm)(void *self);
};

/* Atoms in memory, also as a source.  The source points to the struct, which must stay in place. */
struct atom_array {
  const float *values; /* [k][d][p] borrowed */
  idx k, d, p;
};
struct atom_source atom_array_source(const struct atom_array *array, const char *name);

/* How a dictionary is divided: k atoms in tiles of `width` atoms, dealt round robin to ranks. */
struct tiling {
  idx k, width, workers; /* workers: ranks */
};
idx tiling_owner(const struct tiling *t, idx atom);
idx tiling_slot(const struct tiling *t, idx atom);             /* in the owner's array */
idx tiling_local(const struct tiling *t, idx worker);          /* atoms that a worker holds */
idx tiling_atom(const struct tiling *t, idx worker, idx slot); /* inverse of owner and slot */

/* Scale every vector of atoms[count][d][p] to unit norm: the squares are summed in f64, and each
 * quotient is rounded once.  A vector whose norm is zero or not finite stays as it is;
 * atoms_check() names it.  Returns 1 if all vectors were scaled.  Then atoms_check() is not needed
 * for d = 1: rounding changes a quotient by at most 2^-24 of its size, far less than
 * UNIT_TOLERANCE. */
int atoms_normalize(float *atoms, idx count, idx d, idx p);

/* ERR_INPUT names the first atom that is not finite or not of unit norm, or whose frame is not
 * orthonormal, to UNIT_TOLERANCE.  first is the global number of atom 0. */
#define UNIT_TOLERANCE 1e-4
int atoms_check(const float *atoms, idx count, idx d, idx p, idx first, const char *name);

/* ERR_INPUT unless rows and atoms have the same number of columns; the message says if the rows or
 * the atoms seem to be transposed. */
struct row_source;
int columns_check(const struct row_source *rows, const struct atom_source *atoms);

/* Orthonormalise frame[d][p] in place by modified Gram-Schmidt, each vector twice, with lane
 * products (base/sums.h).  Returns d; or the index of the first vector that is linearly dependent
 * on the vectors before it, because its norm fell to 2^-20 of its first value. */
idx frame_orthonormalize(real *frame, idx d, idx p);

#endif
