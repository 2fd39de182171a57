/* SPDX-License-Identifier: BSD-3-Clause
 * The CPU device from inside: its state, and the hot loops of one instruction set as a table.
 *
 * Floor: device.
 *
 * A *panel* is lanes consecutive slots (atoms in the order in which they were put), stored
 * [d][p][lanes] so that one column of all its atoms is a few vector loads.  A *group* is rows rows,
 * stored [p][rows].  Both are padded with zeros; padding is never chosen.
 *
 * The loops are compiled once per instruction set from one source each (route_body.h,
 * codes_body.h): files route_avx2.c and so on set the vector width and the compiler's flags. */
#ifndef DEVICE_CPU_H
#define DEVICE_CPU_H

#include "base/memory.h"
#include "device/backend.h"
#include "device/cpu_arrow.h"
#include "device/cpu_filter.h"

enum { CACHE_LINE = 64 };

/* Candidates of one row.  They are only appended; when the list is full it is cut to the best
 * `take` at once, which costs less per candidate than a heap, above all when each atom beats the
 * one before. */
struct row_list {
  float *value;        /* [capacity]; 0 from count on */
  idx *atom;           /* [capacity]; INT32_MAX from count on */
  idx count;           /* < capacity */
  int32_t floor;       /* bits of the smallest magnitude kept by the last cut */
  float least;         /* smaller magnitudes are not wanted any more */
  idx bad;             /* lowest atom whose value is not finite; -1: none */
  const idx *excluded; /* [order.excluded] */
};

struct list_order {
  idx take, capacity; /* capacity: a multiple of LIST_STEP, >= 2 take */
  idx excluded;
  int ascending; /* atoms come in ascending order, so an equal magnitude never wins */
};
enum { LIST_STEP = 16 };

struct route_loops {
  const char *name;
  idx rows, lanes;
  /* out[rows][lanes] <- exact scores of a group and one panel vector (N.1) */
  void (*scores)(const float *panel, const float *group, idx p, float *out);
  /* gates[rows][lanes] <- gates + scores^2, two roundings; first: gates were 0 */
  void (*square)(const float *scores, int first, float *gates);
  /* append what may be chosen of values[n][lanes] to n lists; only the lowest `valid` lanes
   * count */
  void (*select)(const struct list_order *order, const float *values, idx valid, const idx *atom_of,
                 struct row_list *lists, idx n);
  /* out[take] <- the list in the order of (N.2), then ENTRY_NONE */
  void (*finish)(const struct list_order *order, struct row_list *list, struct entry *out);
  /* turns rounds of spin_terms multiply-adds each, in registers only */
  void (*spin)(gidx turns);
  gidx spin_terms;
};
extern const struct route_loops route_baseline, route_avx2, route_avx512vl, route_avx512;

/* New rows of a factor are made CHUNK at a time, one row a lane. */
enum { CHUNK = 32, GRAM_BLOCK = 8, GRAM_COLUMNS = 64 };

/* Gram entries of a chunk.  vector[8 blocks] holds the vectors before the chunk, padded with a zero
 * vector to a multiple of GRAM_BLOCK, then the chunk's, from block `first` on, padded too. */
struct gram_job {
  const float *const *vector;
  const float *row;
  idx blocks, first, p;
  real *g;    /* [8 blocks][CHUNK]: g[k][i] of vector k and row i of the chunk (N.4) */
  real *b;    /* [CHUNK] */
  real *pack; /* [blocks + 4][GRAM_COLUMNS][8], work */
};

/* Rows old .. old + count - 1 of a factor, packed by rows (N.5). */
struct factor_job {
  idx old, count; /* count <= CHUNK */
  int test;       /* rank test, else all that are kept */
  real rho;
  real *a;   /* [..][CHUNK] gram_job's g; overwritten */
  real *b;   /* [CHUNK] overwritten */
  real *l;   /* row i begins at i (i + 1) / 2; rows before old are read */
  real *y;   /* [old + count]; NULL: not wanted */
  idx *kept; /* [old + count] written by the rank test */
};

struct codes_loops {
  void (*gram)(const struct gram_job *job);
  void (*factor)(const struct factor_job *job);
  /* codes[m] <- back substitution; work[m + 8] */
  void (*back)(const real *l, const real *y, const idx *kept, idx m, real *codes, real *work);
  void (*residual)(const float *row, const float *const *vector, idx m, idx p, const real *codes,
                   float *out);
  /* all of *q but nonzero; codes[m] as stored, widened; work[2 p] */
  void (*quality)(const float *row, const float *const *vector, idx m, idx p, const real *codes,
                  real *work, struct row_quality *q);
};
extern const struct codes_loops codes_avx2, codes_avx512;

/* Work arrays of the arrow systems, one set a thread, kept from job to job. */
struct arrow_worker;
struct arrow_room {
  struct arena arena;
  struct arrow_worker *workers; /* [threads] */
  gidx panel, tail, sums;       /* reals a thread */
};

struct cpu_state {
  struct arena arena; /* holds everything below and this struct */
  struct device_options options;
  const struct route_loops *route;
  const struct codes_loops *codes; /* NULL: no hardware fma */
  const struct arrow_loops *arrow; /* NULL: no hardware fma */
  struct arrow_room arrow_room;
  float *panels; /* [ceil(atoms_most / lanes)][d][p][lanes] */
  idx *atom_of;  /* [atoms_most] global number of each slot */
  idx count;     /* slots used */
  int ascending; /* atom_of rises */
  struct filter_state filter;
};

/* Operations of the table, of the same form. */
int cpu_route(struct device *dev, struct route_job *job);
int cpu_route_exact(struct device *dev, struct route_job *job); /* every score by its chain */
gidx cpu_codes_state(const struct device *dev, idx m_most, real rho);
int cpu_codes(struct device *dev, const struct codes_job *job);

static inline gidx panel_floats(const struct cpu_state *s)
{
  return (gidx)s->options.d * s->options.p * s->route->lanes;
}

#endif
