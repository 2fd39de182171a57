/* SPDX-License-Identifier: BSD-3-Clause
 * The K = 1 systems of all atoms, class after class.
 *
 * Floor: refit.  Knows no files: systems go to a sink.
 *
 * Systems are assembled in batches of one class and handed over before the next batch is begun, so
 * that the ranks hold a batch at a time, whatever the size of systems.h5. */
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
  gidx first, end;            /* systems to be made: all, but for those of an earlier run */
  struct stops stops;         /* asked where batches end; set by the caller */
  struct arena arena;
  struct system_access { /* what the worker writes */
    const struct system_sink *sink;
    struct systems_block block;
  } writing;
};

/* A batch_bytes_of: the most that assembling and writing a batch takes beside the state, arrays for
 * all systems included. */
int all_systems_batch_bytes(const struct refit_state *f, const struct atom_batch *b, idx q,
                            gidx *bytes);

/* The shape of the systems of every atom that is in a class, with q directions: their borders are
 * an upper bound until they are assembled.  Collective, as below. */
int all_systems_open(struct all_systems *a, struct refit_state *f, const struct classes *classes,
                     idx q);
void all_systems_free(struct all_systems *a);

/* The first `count` systems are there already, with the borders k[count] on rank 0. */
int all_systems_skip(struct all_systems *a, const idx *k, gidx count);

/* Assemble and hand the systems to the sink (used on rank 0) in the file's order; *fingerprint of
 * these, on rank 0.  Where it is asked to stop, a->end is behind the last of them. */
int all_systems_write(struct all_systems *a, const struct system_sink *sink, uint64_t *fingerprint);

#endif
