/* SPDX-License-Identifier: BSD-3-Clause
 * Batches of arrow systems: their sizes, their sources, and the sinks of systems and solutions.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Each system has its own d, k and n; nothing is padded. */
#ifndef MODEL_SYSTEMS_H
#define MODEL_SYSTEMS_H

#include "base/memory.h"
#include "model/arrow.h"

/* The sizes of the systems, and where the entries of each system begin in the arrays of the batch.
 * Each array after d and k has [count + 1] prefix sums; its comment names what is summed. */
struct systems_shape {
  gidx count;
  idx *d, *k;   /* [count] */
  gidx *row;    /* of n */
  gidx *h, *b;  /* of n d d, n d k */
  gidx *g, *c;  /* of n d, k k */
  gidx *border; /* of k */
};

/* systems_alloc() allocates the arrays for count systems in the arena.  When d, k and row[count +
 * 1] are filled in, systems_measure() computes the others.  ERR_INPUT names `name` and the first
 * system whose d, k or n is out of range, or with which a sum overflows. */
int systems_alloc(struct systems_shape *s, gidx count, struct arena *arena);
int systems_measure(struct systems_shape *s, const char *name);
/* Compute the sums for system a alone; the systems before it have been measured. */
int systems_measure_one(struct systems_shape *s, gidx a, const char *name);

/* Number of reals in the arrays of systems first .. end - 1. */
gidx systems_reals(const struct systems_shape *s, gidx first, gidx end);

/* Systems are copied in pieces.  Returns the end of the piece that begins with system `first`, at
 * most `end`.  A piece has at most SYSTEMS_PIECE systems, and about a million numbers or a single
 * system. */
enum { SYSTEMS_PIECE = 1 << 14 };
gidx systems_piece(const struct systems_shape *s, gidx first, gidx end);

/* The arrays of consecutive systems, one system after another. */
struct systems_block {
  gidx first, count;
  real *h, *b, *g, *c, *g_b;
  gidx *rows; /* global rows, or NULL */
};
/* Pointers to the arrays of systems first .. end - 1, stored one array after another from `at`
 * on. */
struct systems_block systems_block_at(const struct systems_shape *s, gidx first, gidx end,
                                      real *at);

/* A source of systems.  read() fills the arrays of any consecutive systems, except `rows`.  The io
 * floor makes sources for files. */
struct system_source {
  const struct systems_shape *shape; /* borrowed */
  const char *name;                  /* borrowed */
  void *self;                        /* borrowed */
  int (*read)(void *self, const struct systems_block *to);
};

/* Takes systems in ascending order. */
struct system_sink {
  void *self; /* borrowed */
  int (*write)(void *self, const struct systems_block *block);
};

/* The solutions of consecutive systems, and their sink. */
struct solution_block {
  gidx first, count;
  const real *step_t, *step_b; /* laid out as g and g_b of the systems */
  const struct arrow_outcome *outcomes;
};
struct solution_sink {
  void *self; /* borrowed */
  int (*write)(void *self, const struct solution_block *block);
};

#endif
