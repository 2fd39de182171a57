/* SPDX-License-Identifier: BSD-3-Clause
 * The arrow systems of all atoms, one for each atom, class by class.
 *
 * Floor: refit.  Knows no files: systems go to a sink.
 *
 * Systems are assembled in batches of one class.  A batch is given to the sink before the next one
 * is begun, so ranks hold one batch at a time, whatever the size of systems.h5. */
#ifndef REFIT_ALL_SYSTEMS_H
#define REFIT_ALL_SYSTEMS_H

#include "base/stop.h"
#include "model/classes.h"
#include "model/systems.h"
#include "refit/batch_systems.h"

struct all_systems {
  struct refit_state *fit; /* borrowed */
  idx q;
  struct systems_shape shape; /* of the file: classes in order, atoms ascending */
  idx *atom, *color;          /* [shape.count] */
  gidx first, end;            /* systems first .. end - 1 are to be made: an earlier run made the
                               * others */
  struct stops stops;         /* asked at the ends of batches; set by the caller */
  struct arena arena;
  struct system_access { /* what the worker writes */
    const struct system_sink *sink;
    struct systems_block block;
  } writing;
};

/* *bytes <- the peak memory of assembling and writing a batch, without the state, with the arrays
 * for all systems.  A function of type batch_bytes_of. */
int all_systems_batch_bytes(const struct refit_state *f, const struct atom_batch *b, idx q,
                            gidx *bytes);

/* Set the shape of the systems: one for each atom that is in a class, with q directions.  Border
 * sizes are upper bounds until systems are assembled.  Collective, like the functions below. */
int all_systems_open(struct all_systems *a, struct refit_state *f, const struct classes *classes,
                     idx q);
void all_systems_free(struct all_systems *a);

/* Skip the first `count` systems, which exist already.  k[count], on rank 0: their border sizes. */
int all_systems_skip(struct all_systems *a, const idx *k, gidx count);

/* Assemble the systems and give them to the sink (used on rank 0) in the file's order.
 * *fingerprint <- the fingerprint of these systems, on rank 0.  If stops asks to stop, a->end is
 * set to the position after the last system written. */
int all_systems_write(struct all_systems *a, const struct system_sink *sink, uint64_t *fingerprint);

/* A hash of the classes, from the systems that they give.  Not collective. */
uint64_t all_systems_hash(const struct all_systems *a);

#endif
