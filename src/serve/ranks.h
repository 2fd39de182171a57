/* SPDX-License-Identifier: BSD-3-Clause
 * A lane on several ranks.  Each rank has the whole dictionary, and computes a share of the rows of
 * every step.
 *
 * Floor: serve.  Rank 0 plans, and makes the calls below, which do the same as those of
 * encode/lane.h.  Rank 0 broadcasts the calls that compute or move data, and the other ranks make
 * them too, until rank 0 ends. */
#ifndef SERVE_RANKS_H
#define SERVE_RANKS_H

#include "base/memory.h"
#include "encode/lane.h"

struct ranks {
  struct comm *c;
  struct comm alone; /* of this rank alone, for its lane */
  struct lane *lane;
  idx p, s, d, block;
  int has_codes;
  gidx rows[2];           /* rows of each of the two blocks, on all ranks together; 0: no block */
  int which;              /* block of the next pass */
  idx *counts, *received; /* [size] arguments of collective calls */
  idx *atoms;             /* rank 0: [block][s] */
  float *score;           /* rank 0: [block][s] */
  float *codes;           /* rank 0 of several: [block][s][d] */
  struct row_quality *quality; /* rank 0: [block] */
  struct arena arena;
};

/* Collective, as is ranks_close(). */
int ranks_open(struct ranks *r, const struct encode_task *task, struct comm *c);
int ranks_close(struct ranks *r);

/* All other ranks: make the calls that rank 0 makes, until it ends. */
int ranks_follow(struct ranks *r);

/* May lane_put_from() copy rows to the lane?  Only if there is one rank, and it has a GPU. */
int ranks_take_rows(const struct ranks *r);

/* Rank 0: each function does the same as the lane_ function of this name, but with the rows of all
 * ranks.  ranks_put() always begins at row 0 of the slot.  If there are several ranks, only the
 * main thread may make these calls. */
int ranks_put(struct ranks *r, int slot, idx n);
int ranks_advance(struct ranks *r, struct support_block *out);
int ranks_is_free(const struct ranks *r);
int ranks_pass(struct ranks *r, int slot, idx n);
int ranks_run(struct ranks *r, idx n, struct support_block *out);
struct row_quality *ranks_quality(struct ranks *r);
/* ranks_wait(): tell the other ranks that rank 0 still runs, although it has no call for them.
 * ranks_end(): tell them that it ends. */
int ranks_wait(struct ranks *r);
int ranks_end(struct ranks *r);

#endif
