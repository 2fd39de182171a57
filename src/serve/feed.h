/* SPDX-License-Identifier: BSD-3-Clause
 * Rows of files for the steps of a server.  A thread reads files, puts pieces of rows into a queue,
 * and takes them back with their codes.
 *
 * Floor: serve.  The queue is in struct front, under its lock. */
#ifndef SERVE_FEED_H
#define SERVE_FEED_H

#include "base/memory.h"
#include "model/codes.h"
#include "serve/front.h"

/* Rows first .. first + n - 1 of a file.  Row `first` begins a sum block (4,096 rows, N.0). */
struct piece {
  struct piece *next; /* of the queue */
  gidx first;
  int line;    /* line of the file in the list; 0: it is in none */
  idx n;       /* rows */
  idx taken;   /* rows that steps have taken */
  idx done;    /* rows that have codes */
  int is_back; /* it has left the queue */
  int is_pinned;
  uint64_t terms; /* terms of the hash of the rows, as they were read */
  float *x;       /* [n][p] less the mean; owned, as are all arrays */
  idx *atoms;
  float *score, *codes;
  struct row_quality *quality;
  struct arena arena;
};

/* Allocate arrays for up to n rows, for the lane of f.  ERR_MEMORY.  Call piece_free() after a
 * failure, too. */
int piece_alloc(struct piece *piece, const struct front *f, gidx n);
void piece_free(struct piece *piece, const struct front *f);

/* Put a piece with rows into the queue.  If the server is closing, it comes back at once. */
void feed_put(struct front *f, struct piece *piece);
/* Wait until the piece is back.  All its rows have codes; if the server is closing, perhaps only
 * the first ones, up to the end of a sum block. */
void feed_wait(struct front *f, struct piece *piece);
/* Is the server closing? */
int feed_is_closing(struct front *f);

/* Main thread, with the lock held: rows that wait.  If the server is closing, only those that
 * complete the open sum block. */
gidx feed_rows(const struct front *f, int is_closing);
/* Give back the pieces whose rows all have codes.  If the server is closing, also those whose codes
 * end with a sum block; with is_late (its time is over), all of them. */
void feed_return(struct front *f, int is_closing, int is_late);
/* Without the lock: rows first .. first + n - 1 of the piece get their codes, from rows `at` and on
 * of the block. */
void piece_fill(struct piece *piece, const struct message_limits *limits,
                const struct support_block *block, const struct row_quality *quality, gidx at,
                gidx first, gidx n);

#endif
