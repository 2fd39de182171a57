/* SPDX-License-Identifier: BSD-3-Clause
 * The few things that ranks say to each other.
 *
 * Floor: comm, the only user of MPI and NCCL.
 *
 * A function is a collective operation unless its comment says otherwise: every rank calls it, in
 * the same order, with counts that agree.  It returns when this rank's part is done, waits for the
 * others without spinning a core, and polls only while bytes move.  It waits for as long as the
 * others need: a helper thread gives this rank's signs of life, and the watchdog
 * (base/watchdog.h) ends the job when a peer gave none for the deadline.
 *
 * Arrays travel as items of `unit` < 2^31 bytes, of which a rank sends fewer than 2^31 to another
 * in a call, and a broadcast or a sum any number: what is more than MPI counts goes in parts.
 * No floating-point sum is ever made here (doc/determinism.md).
 *
 * What operations do where a rank has failed is in comm/failure.h. */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include "base/types.h"
#include "comm/failure.h"

struct comm {
  int rank, size;
  int local_rank, local_size;  /* among the ranks of this node */
  double seconds;              /* spent waiting for other ranks */
  double bytes;                /* received from other ranks */
  gidx calls;                  /* of MPI's and NCCL's collective operations, and gathers below */
  struct comm_state *state;    /* owned */
  struct comm_gpus *gpus;      /* owned; NULL: GPUs are not joined */
  struct comm_failure failure; /* of failure.c alone */
};

/* text[capacity] <- which MPI this is, as "Open MPI 4.1.4"; also before comm_open().  Not
 * collective. */
void comm_library(char *text, size_t capacity);
/* The same of NCCL, as "2.27.5"; "none" in a build without. */
void comm_gpus_library(char *text, size_t capacity);

/* Start MPI and make a communicator of all ranks.  Only the thread that opens it may use it.  From
 * here on, this rank gives signs of life and expects the peer's.  ERR_USAGE where these are fewer
 * ranks than the launcher started (comm/launcher.h).  Collective. */
int comm_open(struct comm *c);
/* Wait for all ranks, then end the signs and MPI.  Collective; does nothing before comm_open(). */
int comm_close(struct comm *c);
/* *part <- the ranks of c that give this number, in their order, among which the collective
 * operations below then go; their local_rank and local_size are those of c.  Collective; the same
 * status on every rank.  comm_unite() ends it and adds its seconds, bytes and calls to those of c;
 * it is safe on a zeroed struct. */
int comm_split(struct comm *c, int number, struct comm *part);
int comm_unite(struct comm *c, struct comm *part);
/* *part <- this rank alone, for work that every rank does in the same way: its operations go among
 * one rank, but wait for all ranks of c, which agree on every status and on flags, and get what is
 * broadcast from rank 0 of c.  So ranks do not part ways where one fails, or is asked to stop.  As
 * comm_split(). */
int comm_alone(struct comm *c, struct comm *part);
int comm_is_alone(const struct comm *c); /* not collective */
struct comm *comm_whole(struct comm *c); /* of comm_alone() all ranks, else c; not collective */
/* End the job on all ranks with this exit code.  Not collective; does not return. */
void comm_abort(struct comm *c, int code);

/* Partition n items into consecutive runs, as even as can be, one for each of `size` ranks: *first
 * and *count <- the run of `rank`.  Arithmetic alone; not collective. */
void comm_partition(gidx n, int size, int rank, gidx *first, gidx *count);

/* *out <- n, the one way to the counts below, which are MPI's int; ERR_COMM beyond 2^31 - 1.  Not
 * collective. */
int comm_count(gidx n, idx *out);

/* all[sum of counts] <- mine[counts[rank]] of every rank, in rank order, on every rank.
 * counts[size] is the same everywhere; mine may be its own place in all.  Collective. */
int comm_allgather(struct comm *c, const void *mine, const idx *counts, size_t unit, void *all);

/* The same on rank 0 alone; all may be NULL elsewhere.  Collective. */
int comm_gather(struct comm *c, const void *mine, const idx *counts, size_t unit, void *all);

/* Several such arrays in one message a rank, as in lockstep.  Collective. */
struct comm_part {
  const void *mine; /* [counts[rank]] */
  void *all;        /* [sum of counts] on rank 0 */
  const idx *counts;
  size_t unit;
};
int comm_gather_parts(struct comm *c, const struct comm_part *parts, int count);

/* Rank r gets send_counts[r] items of mine, which holds those of rank 0 first; theirs receives
 * recv_counts[r] items from rank r, in rank order.  What r sends to q is what q expects from r.
 * Collective. */
int comm_alltoallv(struct comm *c, const void *mine, const idx *send_counts, void *theirs,
                   const idx *recv_counts, size_t unit);

/* The same where rank r gets the items of mine from send[r] on, which others may get too, and its
 * own are those of theirs from receive[r] on; mine is not theirs.  Collective. */
struct comm_offsets {
  const gidx *send, *receive; /* [size] */
};
int comm_alltoallv_at(struct comm *c, const void *mine, const idx *send_counts, void *theirs,
                      const idx *recv_counts, size_t unit, const struct comm_offsets *offsets);

/* items[count] of rank 0 to every rank.  Collective; count is the same everywhere. */
int comm_broadcast(struct comm *c, void *items, gidx count, size_t unit);

/* values[count] <- their sums over the ranks, modulo 2^64, on every rank.  Collective. */
int comm_sum(struct comm *c, gidx *values, gidx count);

/* words[count] <- the bits that some rank has, on every rank.  Collective. */
int comm_or(struct comm *c, uint64_t *words, gidx count);

/* values[size] <- the value of every rank, in rank order, on every rank; as in lockstep.
 * Collective. */
int comm_allgather_long(struct comm *c, gidx value, gidx *values);
int comm_allgather_real(struct comm *c, double value, double *values);

#endif
