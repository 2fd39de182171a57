/* SPDX-License-Identifier: BSD-3-Clause
 * The K = 1 systems of all atoms, class after class.
 *
 * Floor: stage.  Knows no files: systems go to a sink.
 *
 * Systems stay with their owners until all are there, since a file wants its sizes first: the
 * memory of all ranks together is that of systems.h5. */
#ifndef STAGE_ASSEMBLE_ALL_H
#define STAGE_ASSEMBLE_ALL_H

#include "base/phase.h"
#include "model/classes.h"
#include "model/systems.h"
#include "stage/assemble.h"

/* What one batch leaves. */
struct assembled_part {
  struct batch batch;
  struct assembly assembly;
  real *rows;  /* [whole rows of own members] global rows */
  gidx first;  /* of its systems in the file */
  idx *member; /* [count] members in ascending order of atoms, as the file has them */
  struct arena arena;
};

struct assembled {
  struct fit *fit;
  struct assembled_part *parts;
  gidx n_parts;
  struct systems_shape shape; /* of the file: classes in order, atoms ascending */
  idx *atom, *color;          /* [shape.count] */
  struct arena arena;
};

/* Assemble every atom that is in a class, with q directions.  Collective, as below. */
int assembled_make(struct assembled *a, struct fit *f, const struct classes *classes, idx q);
void assembled_free(struct assembled *a);

/* Hand the systems to the sink (used on rank 0) in the file's order; *fingerprint of all. */
int assembled_write(const struct assembled *a, const struct system_sink *sink,
                    uint64_t *fingerprint);

#endif
