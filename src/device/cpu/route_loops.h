/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of routing of one instruction set, as a table.
 *
 * Floor: device.
 *
 * A *slot* is the number of an atom on this device, in the order in which atoms were put.  A
 * *panel* is `lanes` consecutive slots, stored [d][p][lanes], so that one column of all its atoms
 * is a few vector loads.  A *group* is `rows` rows, stored [p][rows].  Both are padded with zeros;
 * padding is never chosen. */
#ifndef DEVICE_CPU_ROUTE_LOOPS_H
#define DEVICE_CPU_ROUTE_LOOPS_H

#include "model/route.h"

/* The candidates of one row.  They are only appended; a full list is pruned to its best top_k at
 * once.  This costs less per candidate than a heap, above all if each atom beats all earlier
 * ones. */
struct row_list {
  float *value;        /* [capacity]; 0 from index count on */
  idx *atom;           /* [capacity]; INT32_MAX from index count on */
  idx count;           /* < capacity */
  int32_t floor;       /* bits of the smallest magnitude that the last pruning kept */
  float min;           /* candidates of smaller magnitude are not added */
  idx bad;             /* lowest atom whose value is not finite; -1: none */
  const idx *excluded; /* [excluded of the list_order] atoms that must not be chosen */
};

struct list_order {
  idx top_k, capacity; /* capacity: a multiple of LIST_STEP, >= 2 top_k */
  idx excluded;        /* number of excluded atoms of a row */
  int ascending;       /* 1: atoms come in ascending order, so an equal magnitude never wins */
};
enum { LIST_STEP = 16 };

struct route_loops {
  const char *name;
  idx rows, lanes;
  /* out[rows][lanes] <- exact scores of a group and one vector of a panel's frames (N.1) */
  void (*scores)(const float *panel, const float *group, idx p, float *out);
  /* gates[rows][lanes] <- gates + scores^2, two roundings; first: gates start from 0 */
  void (*square)(const float *scores, int first, float *gates);
  /* values[rows][lanes] <- route_positive() of each */
  void (*positive)(float *values);
  /* append the candidates among values[n][lanes] to n lists; only the lowest `valid` lanes count */
  void (*select)(const struct list_order *order, const float *values, idx valid, const idx *atom_of,
                 struct row_list *lists, idx n);
  /* out[top_k] <- the list in the order of (N.2), then ENTRY_NONE */
  void (*finish)(const struct list_order *order, struct row_list *list, struct entry *out);
  /* `turns` rounds of spin_terms multiply-adds each, in registers only */
  void (*spin)(gidx turns);
  gidx spin_terms;
};

#endif
