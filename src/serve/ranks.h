/* SPDX-License-Identifier: BSD-3-Clause
 * A lane on several ranks: each has the whole dictionary, and a part of the rows of every step.
 *
 * Floor: serve.  Rank 0 plans, and tells the others each of the calls below, which are those of
 * encode/lane.h; they follow until rank 0 ends. */
#ifndef SERVE_RANKS_H
#define SERVE_RANKS_H

#include "base/memory.h"
#include "encode/lane.h"

struct ranks {
  struct comm *c;
  struct comm alone; /* the lane's */
  struct lane *lane;
  idx p, s, d, block;
  int has_codes;
  gidx rows[2];           /* of all ranks, of the blocks in work */
  int which;              /* of the next pass */
  idx *counts, *received; /* [size] */
  idx *atoms;             /* rank 0: [block][s], as are the next two */
  float *score, *codes;
  struct row_quality *quality; /* rank 0: [block] */
  struct arena arena;
};

/* Collective, as is ranks_close(). */
int ranks_open(struct ranks *r, const struct encode_task *task, struct comm *c);
int ranks_close(struct ranks *r);

/* Do as rank 0 says, until it says that it ends.  Of all other ranks. */
int ranks_follow(struct ranks *r);

/* Do rows go to a GPU from any memory, by lane_put_from()?  Of one rank alone. */
int ranks_take_rows(const struct ranks *r);

/* Rank 0: what lane_put() from row 0 on, lane_advance(), lane_is_free(), lane_pass() and lane_run()
 * are for one rank.  With several only the main thread may call them. */
int ranks_put(struct ranks *r, int slot, idx n);
int ranks_advance(struct ranks *r, struct support_block *out);
int ranks_is_free(const struct ranks *r);
int ranks_pass(struct ranks *r, int slot, idx n);
int ranks_run(struct ranks *r, idx n, struct support_block *out);
struct row_quality *ranks_quality(struct ranks *r);
/* The others know that it is there, though it has nothing for them; then that it ends. */
int ranks_wait(struct ranks *r);
int ranks_end(struct ranks *r);

#endif
