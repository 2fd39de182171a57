/* SPDX-License-Identifier: BSD-3-Clause
 * A lane on several ranks.  Each rank has the whole dictionary, and computes a share of the rows of
 * every step.
 *
 * Floor: serve.  Rank 0 plans, and makes the calls below, which are those of encode/lane.h.  Each
 * call is broadcast; the other ranks follow until rank 0 ends. */
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
  gidx rows[2];           /* rows of the two blocks in work, of all ranks */
  int which;              /* block of the next pass */
  idx *counts, *received; /* [size] */
  idx *atoms;             /* rank 0: [block][s], as are the next two */
  float *score, *codes;
  struct row_quality *quality; /* rank 0: [block] */
  struct arena arena;
};

/* Collective, as is ranks_close(). */
int ranks_open(struct ranks *r, const struct encode_task *task, struct comm *c);
int ranks_close(struct ranks *r);

/* All other ranks: make the calls that rank 0 makes, until it ends. */
int ranks_follow(struct ranks *r);

/* Can lane_put_from() copy rows to a GPU from any memory?  Only with one rank. */
int ranks_take_rows(const struct ranks *r);

/* Rank 0: the same as lane_put() from row 0 on, lane_advance(), lane_is_free(), lane_pass() and
 * lane_run(), on all ranks.  With several ranks only the main thread may call them. */
int ranks_put(struct ranks *r, int slot, idx n);
int ranks_advance(struct ranks *r, struct support_block *out);
int ranks_is_free(const struct ranks *r);
int ranks_pass(struct ranks *r, int slot, idx n);
int ranks_run(struct ranks *r, idx n, struct support_block *out);
struct row_quality *ranks_quality(struct ranks *r);
/* ranks_wait(): tell the other ranks that rank 0 is there, though it has no call for them.
 * ranks_end(): tell them that it ends. */
int ranks_wait(struct ranks *r);
int ranks_end(struct ranks *r);

#endif
