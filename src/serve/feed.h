/* SPDX-License-Identifier: BSD-3-Clause
 * Rows of files on their way through steps: a thread that reads files puts pieces of them in a
 * queue, and takes them back with their codes.
 *
 * Floor: serve.  The queue is the front's, under its lock. */
#ifndef SERVE_FEED_H
#define SERVE_FEED_H

#include "base/memory.h"
#include "model/codes.h"
#include "serve/front.h"

/* Rows first .. first + n - 1 of a file, the first of which begins a sum block. */
struct piece {
  struct piece *next; /* of the queue */
  gidx first;
  int line;    /* that the file has in the list; 0: it is in none */
  idx n;       /* rows */
  idx taken;   /* that steps have taken */
  idx done;    /* that have codes */
  int is_back; /* it has left the queue */
  int is_pinned;
  uint64_t terms; /* of the rows as they were read */
  float *x;       /* [n][p] less the mean; owned, as are all arrays */
  idx *atoms;
  float *score, *codes;
  struct row_quality *quality;
  struct arena arena;
};

/* Arrays for up to n rows, from which the lane of f takes rows.  ERR_MEMORY; freed after failure,
 * too. */
int piece_alloc(struct piece *piece, const struct front *f, gidx n);
void piece_free(struct piece *piece, const struct front *f);

/* Queue a piece whose rows are there; it is back at once where the server ends. */
void feed_put(struct front *f, struct piece *piece);
/* Wait until it is back: with codes of all rows, or where the server ends of fewer, up to the end
 * of a sum block. */
void feed_wait(struct front *f, struct piece *piece);
/* Does the server end? */
int feed_is_closing(struct front *f);

/* Of the main thread, under the lock: rows that wait; where the server ends, those of the open sum
 * block alone. */
gidx feed_rows(const struct front *f, int is_closing);
/* Pieces that have all codes go back, and where the server ends all that are at the end of a sum
 * block; at its latest, `is_late`, all of them. */
void feed_return(struct front *f, int is_closing, int is_late);
/* Under no lock: n rows from the first on have codes, those of a block from row `at` on. */
void piece_fill(struct piece *piece, const struct message_limits *limits,
                const struct support_block *block, const struct row_quality *quality, gidx at,
                gidx first, gidx n);

#endif
