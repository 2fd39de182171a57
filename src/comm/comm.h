/* SPDX-License-Identifier: BSD-3-Clause
 * The messages between ranks.
 *
 * Floor: comm, the only user of MPI and NCCL.
 *
 * A function is a collective operation unless its comment says otherwise: every rank calls it, in
 * the same order, with counts that agree.  It returns when this rank's part is done.  It waits for
 * the others without using a core, and polls only while bytes move.  It waits as long as the others
 * need: a helper thread sends signs of life of this rank, and the watchdog (base/watchdog.h) ends
 * the job if a peer sends none within the deadline.
 *
 * Arrays travel as items of `unit` < 2^31 bytes.  A rank sends fewer than 2^31 items to another
 * rank in a call; a broadcast or a sum may have any number.  A message of more items than MPI can
 * count is sent in parts.  No floating-point sum is ever made here (doc/determinism.md).
 *
 * comm/failure.h says what operations do when a rank has failed. */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include "base/types.h"
#include "comm/failure.h"

struct arena;
struct comm {
  int rank, size;
  int local_rank, local_size;  /* among the ranks of this node */
  double seconds;              /* spent waiting for other ranks */
  double bytes;                /* received from other ranks */
  gidx calls;                  /* number of collective operations of MPI and NCCL, and of gathers */
  struct comm_state *state;    /* owned */
  struct comm_gpus *gpus;      /* owned; NULL: GPUs are not joined */
  struct comm_failure failure; /* used by failure.c only */
};

/* text[capacity] <- the MPI library, as "Open MPI 4.1.4"; also before comm_open().  Not
 * collective. */
void comm_library(char *text, size_t capacity);
/* The same for NCCL, as "2.27.5"; "none" in a build without it. */
void comm_gpus_library(char *text, size_t capacity);

/* Start MPI and make a communicator of all ranks.  Only the thread that opens it may use it.  From
 * here on this rank sends signs of life and expects its peer's (comm/watch.h).  ERR_USAGE if there
 * are fewer ranks than the launcher started (comm/launcher.h).  Collective. */
int comm_open(struct comm *c);
/* Wait for all ranks, then end the signs of life and MPI.  Collective; does nothing before
 * comm_open(). */
int comm_close(struct comm *c);
/* *part <- a communicator of the ranks of c that give this number, in their order; local_rank and
 * local_size are the same as in c.  Collective; the same status on every rank, unless MPI fails.
 * comm_unite() ends it and adds its seconds, bytes and calls to c; it is safe on a zeroed
 * struct. */
int comm_split(struct comm *c, int number, struct comm *part);
int comm_unite(struct comm *c, struct comm *part);
/* *part <- a communicator of this rank alone, for work that every rank does in the same way.  Its
 * operations exchange no arrays with other ranks, except that rank 0 of c sends each broadcast.
 * They wait for all ranks of c, and every status and flag is agreed among all of them.  So all
 * ranks do the same if one fails or is asked to stop.  Collective; comm_unite() ends it. */
int comm_alone(struct comm *c, struct comm *part);
int comm_is_alone(const struct comm *c); /* not collective */
struct comm *comm_whole(struct comm *c); /* the c that comm_alone() was given; otherwise c itself;
                                          * not collective */
/* End the job on all ranks with this exit code.  Not collective; does not return. */
void comm_abort(struct comm *c, int code);

/* Divide n items into consecutive runs, as even as possible, one per rank: *first and *count <- the
 * run of `rank`.  Only arithmetic; not collective. */
void comm_partition(gidx n, int size, int rank, gidx *first, gidx *count);

/* *out <- n as MPI's int, for the counts of the functions below.  ERR_COMM beyond 2^31 - 1.  Not
 * collective. */
int comm_count(gidx n, idx *out);

/* all[sum of counts] <- mine[counts[rank]] of every rank, in rank order, on every rank.
 * counts[size] must be the same on all ranks; `mine` may point to its position in `all`.
 * Collective. */
int comm_allgather(struct comm *c, const void *mine, const idx *counts, size_t unit, void *all);

/* The same on rank 0 only; all may be NULL on the others.  Collective. */
int comm_gather(struct comm *c, const void *mine, const idx *counts, size_t unit, void *all);

/* The same for several arrays, in one message per rank.  Ranks never meet first, not even outside
 * of lockstep.  Collective. */
struct comm_part {
  const void *mine; /* [counts[rank]] */
  void *all;        /* [sum of counts] on rank 0 */
  const idx *counts;
  size_t unit;
};
int comm_gather_parts(struct comm *c, const struct comm_part *parts, int count);

/* Rank r gets send_counts[r] items of mine; the items for rank 0 come first.  theirs <-
 * recv_counts[r] items from each rank r, in rank order.  What r sends to q must be what q expects
 * from r.  Collective. */
int comm_alltoallv(struct comm *c, const void *mine, const idx *send_counts, void *theirs,
                   const idx *recv_counts, size_t unit);

/* The same with offsets.  Rank r gets the items of mine from item send[r] on; runs of several ranks
 * may overlap.  The items from rank r are written to theirs from item receive[r] on.  mine must not
 * be theirs.  Collective. */
struct comm_offsets {
  const gidx *send, *receive; /* [size] */
};
int comm_alltoallv_at(struct comm *c, const void *mine, const idx *send_counts, void *theirs,
                      const idx *recv_counts, size_t unit, const struct comm_offsets *offsets);

/* Send items[count] of rank 0 to every rank.  Collective; count must be the same everywhere. */
int comm_broadcast(struct comm *c, void *items, gidx count, size_t unit);

/* values[count] <- their sums over the ranks, modulo 2^64, on every rank.  Collective. */
int comm_sum(struct comm *c, gidx *values, gidx count);

/* words[count] <- the bits that are set on any rank, on every rank.  Collective. */
int comm_or(struct comm *c, uint64_t *words, gidx count);
/* Send an array [count] of rank 0.  `array` is the address of the pointer to it, in a struct that
 * was broadcast: so every rank knows whether the pointer is NULL.  If it is not, the other ranks
 * set it to a copy in the arena.  Collective. */
int comm_array_send(struct comm *c, struct arena *arena, void *array, gidx count, size_t size);
/* *same <- is the value the same on all ranks?  Collective. */
int comm_is_same(struct comm *c, uint64_t value, int *same);

/* values[size] <- the value of every rank, in rank order, on every rank.  Ranks never meet first,
 * not even outside of lockstep.  Collective. */
int comm_allgather_long(struct comm *c, gidx value, gidx *values);
int comm_allgather_real(struct comm *c, double value, double *values);

#endif
