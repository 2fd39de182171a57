/* SPDX-License-Identifier: BSD-3-Clause
 * The K = 1 systems of all atoms, class after class.
 *
 * Floor: stage.  Knows no files: systems go to a sink.
 *
 * Systems are assembled in batches of one class and handed over before the next batch is begun, so
 * that the ranks hold a batch at a time, whatever the size of systems.h5. */
#ifndef STAGE_ASSEMBLE_ALL_H
#define STAGE_ASSEMBLE_ALL_H

#include "model/classes.h"
#include "model/systems.h"
#include "stage/assemble.h"

struct assembled {
  struct fit *fit; /* borrowed */
  idx q;
  struct systems_shape shape; /* of the file: classes in order, atoms ascending */
  idx *atom, *color;          /* [shape.count] */
  struct arena arena;
};

/* Bytes of the records of a batch, about, on rank 0. */
gidx assembled_memory(const struct fit_task *task, idx q);

/* The shape of the systems of every atom that is in a class, with q directions: their borders are
 * an upper bound until they are assembled.  Collective, as below. */
int assembled_open(struct assembled *a, struct fit *f, const struct classes *classes, idx q);
void assembled_free(struct assembled *a);

/* Assemble and hand the systems to the sink (used on rank 0) in the file's order; *fingerprint of
 * all. */
int assembled_run(struct assembled *a, const struct system_sink *sink, uint64_t *fingerprint);

#endif
