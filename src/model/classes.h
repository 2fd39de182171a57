/* SPDX-License-Identifier: BSD-3-Clause
 * Colour classes: sets of atoms no two of which are in one row's support (N.6).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The atoms of a class can be refitted side by side: none touches another's rows. */
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

/* Class c has atoms[start[c] .. start[c + 1] - 1]; color[a] is the class of atom a, -1: dead. */
struct classes {
  idx k, count;
  idx *color;         /* [k] */
  gidx *start;        /* [count + 1] */
  idx *atoms;         /* ascending inside a class */
  struct arena arena; /* holds the arrays */
};
void classes_free(struct classes *c);

/* Colour greedily: atoms by falling support size, ties by smaller index first; each takes the
 * smallest class without a conflicting atom (N.6).  Work: entries times row length; memory: three
 * integers an entry.  ERR_MEMORY; ERR_INPUT beyond 2^31 - 1 rows. */
int classes_color(struct classes *c, const struct support_view *supports);

/* The classes that color[k] names, of any origin: class numbers 0 .. count - 1. */
int classes_from_colors(struct classes *c, const idx *color, idx k, idx count);

/* ERR_INPUT names the first row of which two atoms are in one class, or an atom that is in a row
 * and in no class.  first is the global number of row 0, name that of the classes' file. */
int classes_check(const struct classes *c, const struct support_view *supports, gidx first,
                  const char *name);

/* What the report says. */
struct class_report {
  gidx classes, dead, longest_row; /* longest_row: most atoms in a row, a lower bound */
  gidx least, most;                /* atoms in a class */
  real mean;                       /* NaN without classes */
  gidx histogram[32];              /* classes of 1, 2 .. 3, 4 .. 7, ... atoms */
};
void classes_report(const struct classes *c, gidx longest_row, struct class_report *out);

#endif
