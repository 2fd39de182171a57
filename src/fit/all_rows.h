/* SPDX-License-Identifier: BSD-3-Clause
 * What a rank needs of the rows of all ranks for the joint update (N.20): its own columns of each
 * row, and the support and codes of each.
 *
 * Floor: fit.
 *
 * All ranks send at once, each to all others.  Columns travel when rows are new, and stay; lists of
 * atoms and codes travel before each update, once to each node where its ranks share memory. */
#ifndef FIT_ALL_ROWS_H
#define FIT_ALL_ROWS_H

#include "base/memory.h"
#include "comm/shared.h"
#include "device/buffer.h"
#include "refit/refit.h"

/* A rank's own rows, in their order. */
struct update_rows {
  const struct buffer *slots; /* [n][s] idx */
  const struct buffer *codes; /* [n][s] float */
  const struct buffer *x;     /* [n][p] float; the host's side is read where there are several
                               * ranks */
};

struct all_rows {
  const struct refit_state *f; /* borrowed, as is the next */
  struct device *device;
  idx columns;                /* own */
  struct buffer x;            /* [rows][columns] float */
  struct buffer slots, codes; /* [rows][s] idx, float */
  struct buffer packed;       /* a sum block, for each rank its columns */
  struct buffer came;         /* own columns of a sum block of each rank */
  idx *send, *receive;        /* [size] */
  gidx *first, *here;         /* [size] 0, or the first row of each rank */
  gidx *leader, *place;       /* [size] the first rank of the node of each, its number there */
  int has_others;             /* there is another node */
  struct comm_shared shared;  /* slots, codes, the number of the node's first rank */
  struct arena arena;
};

/* For at most so many rows of all ranks of a state; is_shared: lists are once a node, on CPUs
 * alone.  A dry device and arena count.  all_rows_close() is safe on a zeroed struct; both are
 * collective where lists are shared. */
int all_rows_open(struct all_rows *a, const struct refit_state *f, struct device *device, gidx most,
                  int is_shared);
/* The arrays alone, of a struct that has its state and device. */
int all_rows_alloc(struct all_rows *a, gidx most, int is_shared);
void all_rows_close(struct all_rows *a);

/* Bytes of the lists of so many rows of s atoms. */
gidx all_rows_list_bytes(gidx rows, idx s);

/* Does what `from` sends go to rank `to`, which takes it for its node, another one?  Not
 * collective. */
int all_rows_goes(const struct all_rows *a, int from, int to);

/* Rows are new: bring their columns; then, as often as they change, their lists.  Collective. */
int all_rows_columns(struct all_rows *a, const struct update_rows *rows);
int all_rows_lists(struct all_rows *a, const struct update_rows *rows);

#endif
