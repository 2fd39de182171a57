/* SPDX-License-Identifier: BSD-3-Clause
 * Batches of arrow systems: their shapes, and where they come from and solutions go to.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Batches are ragged: each system has its own d, k and n, and nothing is padded. */
#ifndef MODEL_SYSTEMS_H
#define MODEL_SYSTEMS_H

#include "base/memory.h"
#include "model/arrow.h"

/* Where system a's entries begin in each array of the batch: [count + 1] prefix sums. */
struct systems_shape {
  gidx count;
  idx *d, *k;   /* [count] */
  gidx *row;    /* of n */
  gidx *h, *b;  /* of n d d, n d k */
  gidx *g, *c;  /* of n d, k k */
  gidx *border; /* of k */
};

/* Take the arrays of count systems from the arena, and, once d, k and row[count + 1] are filled,
 * work out the others.  ERR_INPUT names `name` and the first system whose d, k or n is out of
 * range, or with which a sum no longer fits. */
int systems_take(struct systems_shape *s, gidx count, struct arena *arena);
int systems_measure(struct systems_shape *s, const char *name);
/* The same for system a alone, those before it being worked out. */
int systems_measure_one(struct systems_shape *s, gidx a, const char *name);

/* Reals of system a, and of systems first .. end - 1. */
gidx systems_reals(const struct systems_shape *s, gidx first, gidx end);

/* Arrays of consecutive systems, each system's entries after those of the one before. */
struct systems_block {
  gidx first, count;
  real *h, *b, *g, *c, *hb;
  gidx *rows; /* global rows, or NULL */
};

/* Reads any consecutive systems; `rows` is left alone.  The io floor fills it for files. */
struct system_source {
  const struct systems_shape *shape; /* borrowed */
  const char *name;                  /* borrowed */
  void *self;                        /* borrowed */
  int (*read)(void *self, const struct systems_block *to);
};

/* Takes blocks in ascending order. */
struct system_sink {
  void *self; /* borrowed */
  int (*write)(void *self, const struct systems_block *block);
};

struct solution_block {
  gidx first, count;
  const real *step_t, *step_b; /* as g and hb of the systems */
  const struct arrow_outcome *outcomes;
};
struct solution_sink {
  void *self; /* borrowed */
  int (*write)(void *self, const struct solution_block *block);
};

#endif
