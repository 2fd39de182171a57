/* SPDX-License-Identifier: BSD-3-Clause
 * The data that a rank needs to update all atoms at once (update.h, conjugate.h): the supports and
 * codes of the rows of all ranks, and those columns of these rows that belong to this rank.
 *
 * Floor: fit.
 *
 * All ranks send at the same time, each to all others.  Columns are sent when the rows are new.
 * Lists of atoms and codes are sent before each update; if the ranks of a node share memory, once
 * to each node. */
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
  const struct buffer *x;     /* [n][p] float; with several ranks the host's side is read */
};

struct all_rows {
  const struct refit_state *f; /* borrowed, like the next */
  struct device *device;
  idx columns;                /* of this rank */
  struct buffer x;            /* [rows][columns] float */
  struct buffer slots, codes; /* [rows][s] idx, float */
  struct buffer packed;       /* to send: a sum block, cut into the columns of each rank */
  struct buffer came;         /* received: the columns of this rank, of a sum block of each rank */
  idx *send, *receive;        /* [size] */
  gidx *first, *here;         /* [size] first: zeros; here: the first row of each rank; used if
                               * lists are shared */
  gidx *leader, *place;       /* [size] of each rank: first rank of its node, number in the node */
  int has_others;             /* 1: there are several nodes */
  struct comm_shared shared;  /* memory of a node: slots, codes, number of its first rank */
  struct arena arena;
};

/* Open for at most `most` rows of all ranks.  is_shared: a node has the lists once; only for CPUs.
 * A dry device and arena only count bytes.  Collective.  all_rows_close() is safe on a zeroed
 * struct, and collective if lists are shared. */
int all_rows_open(struct all_rows *a, const struct refit_state *f, struct device *device, gidx most,
                  int is_shared);
/* Allocate only the arrays; the struct has its state and device. */
int all_rows_alloc(struct all_rows *a, gidx most, int is_shared);
void all_rows_close(struct all_rows *a);

/* Bytes of the lists of `rows` rows with s atoms each. */
gidx all_rows_list_bytes(gidx rows, idx s);

/* Does rank `to` receive the lists of rank `from` for all ranks of its node?  0 if both are on one
 * node.  Not collective. */
int all_rows_goes(const struct all_rows *a, int from, int to);

/* all_rows_columns(): exchange the columns of new rows.  all_rows_lists(): exchange their lists,
 * each time they have changed.  Collective. */
int all_rows_columns(struct all_rows *a, const struct update_rows *rows);
int all_rows_lists(struct all_rows *a, const struct update_rows *rows);

#endif
