/* SPDX-License-Identifier: BSD-3-Clause
 * The group /find of a dictionary.h5: how its features were found, and in state.h5 what that goes
 * on from.
 *
 * Floor: io.  Not collective. */
#ifndef IO_FINDING_H
#define IO_FINDING_H

#include "base/memory.h"
#include "io/identity.h"
#include "io/matrix.h"
#include "io/schema.h"

extern const struct object_table find_objects;

/* One line of /find/history; an attribute names the columns. */
enum { FINDING_COLUMNS = 7 };
struct finding_line {
  real update, atoms, l0, dead, replaced, held, held_out_l0;
};

struct finding_record {
  gidx update, count;           /* updates done, lines */
  gidx atoms;                   /* wanted at the end */
  gidx rows;                    /* of the last update */
  gidx replaced;                /* atoms, since the last line */
  struct identity fitted, held; /* .rows: the fitted and the held-out rows */
  float *means;                 /* [k] of the codes of each atom */
  gidx *firing;                 /* [k] rows of the last update that had each */
  float *offset;                /* [p] what rows lose beside the mean */
  real *mean;                   /* [p] NULL: rows are not centred */
  struct finding_line *lines;   /* [count] */
};

/* Add it to a dictionary of k atoms that is being written. */
int finding_write(struct matrix_output *f, const struct finding_record *record, idx k, idx p);
/* Read it, and *atoms, all *k of p columns, from the dictionary at path, into the arena.  ERR_INPUT
 * when `fit --find features` did not write it. */
int finding_read(const char *path, struct arena *arena, idx p, struct finding_record *record,
                 float **atoms, idx *k);

#endif
