/* SPDX-License-Identifier: BSD-3-Clause
 * Rows of files for the steps of a server.  A thread reads files, and puts pieces of their rows
 * into a queue.  Later it takes each piece back with codes.
 *
 * Floor: serve.  The queue is a member of struct front, and is used with its lock held. */
#ifndef SERVE_FEED_H
#define SERVE_FEED_H

#include "base/memory.h"
#include "model/codes.h"
#include "serve/front.h"

/* Rows first .. first + n - 1 of a file.  Row `first` begins a sum block (4,096 rows, N.0). */
struct piece {
  struct piece *next; /* next piece in the queue */
  gidx first;
  int line;       /* line of the file in the list of files; 0: there is no list */
  idx n;          /* rows */
  idx taken;      /* rows that steps have taken */
  idx done;       /* rows that have codes */
  int is_back;    /* the queue has given it back */
  int is_pinned;  /* x is page-locked */
  uint64_t terms; /* sum of the hash terms of the rows as read (model/identity.h) */
  float *x;       /* [n][p] minus the mean; owned, as are all arrays */
  idx *atoms;
  float *score, *codes;
  struct row_quality *quality;
  struct arena arena;
};

/* Allocate arrays for up to n rows, and pin x for copies by the lane of f.  ERR_MEMORY.  Call
 * piece_free() also after a failure. */
int piece_alloc(struct piece *piece, const struct front *f, gidx n);
void piece_free(struct piece *piece, const struct front *f);

/* Put a piece with rows into the queue.  If the server is closing, the piece comes back at once,
 * without codes. */
void feed_put(struct front *f, struct piece *piece);
/* Wait until the piece is back.  Its first piece->done rows have codes.  These are all n rows,
 * unless the server is closing; then they may be fewer, but whole sum blocks. */
void feed_wait(struct front *f, struct piece *piece);
/* Is the server closing? */
int feed_is_closing(struct front *f);

/* The number of rows that no step has taken yet.  If the server is closing, only rows are counted
 * that complete a sum block from which steps have taken rows.  Main thread, with the lock held. */
gidx feed_rows(const struct front *f, int is_closing);
/* Give back pieces from the head of the queue, up to the first piece that must stay.  A piece with
 * rows in a step stays.  So does a piece in which some rows have no codes.  Exceptions: if the
 * server is closing, it is enough that the rows with codes are whole sum blocks.  is_late: the time
 * for closing is over; then the piece goes back, and codes after the last whole sum block do not
 * count.  Main thread, with the lock held. */
void feed_return(struct front *f, int is_closing, int is_late);
/* Copy the results of rows at .. at + n - 1 of the block to rows first .. first + n - 1 of the
 * piece.  The lock need not be held. */
void piece_fill(struct piece *piece, const struct message_limits *limits,
                const struct support_block *block, const struct row_quality *quality, gidx at,
                gidx first, gidx n);

#endif
