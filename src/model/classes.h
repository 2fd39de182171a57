/* SPDX-License-Identifier: BSD-3-Clause
 * Colour classes: sets of atoms of which no two are in the support of the same row (N.6).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The atoms of a class can be refitted at the same time, since they share no row. */
#ifndef MODEL_CLASSES_H
#define MODEL_CLASSES_H

#include "base/memory.h"
#include "base/types.h"

/* Supports as a sparse matrix: row i has atoms[start[i] .. start[i + 1] - 1], each once. */
struct support_view {
  gidx n; /* rows */
  idx k;  /* atoms */
  const gidx *start;
  const idx *atoms;
};

/* Class c has atoms[start[c] .. start[c + 1] - 1].  color[a] is the class of atom a, or -1 for a
 * dead atom, which is in no row's support. */
struct classes {
  idx k, count;
  idx *color;         /* [k] */
  gidx *start;        /* [count + 1] */
  idx *atoms;         /* ascending inside a class */
  struct arena arena; /* holds the arrays */
};
void classes_free(struct classes *c);

/* The reference: greedy colouring (N.6), atoms in falling order of the number of rows that use
 * them; of equal numbers the lower index comes first.  Each atom gets the lowest class without an
 * atom that shares a row with it.  The work is entries times row length.  ERR_MEMORY; ERR_INPUT
 * beyond 2^31 - 1 rows. */
int classes_color(struct classes *c, const struct support_view *supports);

/* *bytes <- the memory of classes of k atoms, with at most k classes. */
int classes_bytes(idx k, gidx *bytes);

/* The classes of given colors color[k], each -1 or 0 .. count - 1. */
int classes_from_colors(struct classes *c, const idx *color, idx k, idx count);

/* ERR_INPUT names the first row with two atoms in one class, or an atom that is in a row but in no
 * class.  first: the global number of row 0; name: the file of the classes. */
int classes_check(const struct classes *c, const struct support_view *supports, gidx first,
                  const char *name);

/* Statistics for the report. */
struct class_report {
  /* longest_row: largest number of atoms of a row, a lower bound on the number of classes. */
  gidx classes, dead, longest_row;
  gidx min, max;      /* atoms in a class */
  real mean;          /* NaN without classes */
  gidx histogram[32]; /* classes of 1, 2 .. 3, 4 .. 7, ... atoms */
  gidx atoms[32];     /* the number of atoms in these classes */
};
void classes_report(const struct classes *c, gidx longest_row, struct class_report *out);

#endif
