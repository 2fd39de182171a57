/* SPDX-License-Identifier: BSD-3-Clause
 * The few things that ranks say to each other.
 *
 * Floor: comm; with main.c the only user of MPI.  Every verb is collective unless it says
 * otherwise, waits for other ranks without spinning a core (it polls while bytes move), and returns
 * ERR_COMM when a peer gave no sign of life for the deadline.  A helper thread gives this rank's
 * signs, so that a busy rank is not taken for a dead one.
 *
 * Arrays travel as items of `unit` bytes; no floating-point sum is ever made here
 * (doc/determinism.md). */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include "base/types.h"
#include "device/device.h"

struct comm {
  int rank, size;
  int local_rank, local_size; /* among the ranks of this node */
  double deadline;            /* seconds */
  int agreed;                 /* the present failure is known to every rank */
  double seconds;             /* spent waiting in verbs */
  double bytes;               /* received from other ranks */
  struct comm_state *state;   /* owned */
  struct comm_gpus *gpus;     /* owned; NULL: GPUs are not joined */
};

/* Start MPI.  The thread that opens is the one that may use the verbs. */
int comm_open(struct comm *c);
/* Watch the peers from here on; seconds > 0. */
int comm_watch(struct comm *c, double deadline);
/* Wait for all ranks and end MPI. */
int comm_close(struct comm *c);
/* End the job with this exit code; not collective, does not return. */
void comm_abort(struct comm *c, int code);

/* ERR_COMM when a peer gave no sign of life for the deadline: for long work between two verbs.  Not
 * collective. */
int comm_alive(struct comm *c);

/* The share of rank among n items dealt in consecutive runs; not collective. */
void comm_share(gidx n, int size, int rank, gidx *first, gidx *count);

/* all[sum counts] <- everyone's mine[counts[rank]], in rank order, on every rank.  mine may be its
 * place in all. */
int comm_gather_all(struct comm *c, const void *mine, const idx *counts, size_t unit, void *all);

/* The same on rank 0 alone; all may be NULL elsewhere. */
int comm_gather(struct comm *c, const void *mine, const idx *counts, size_t unit, void *all);

/* Rank r gets send_counts[r] items of mine, those of rank 0 first; theirs receives recv_counts[r]
 * items of rank r, in rank order. */
int comm_exchange(struct comm *c, const void *mine, const idx *send_counts, void *theirs,
                  const idx *recv_counts, size_t unit);

/* Join the devices of all ranks: a table of rank, host and GPU in the log, and NCCL between the
 * GPUs where every rank has one of its own.  comm_devices_close() comes before the device is
 * closed. */
int comm_devices(struct comm *c, struct device *dev);
void comm_devices_close(struct comm *c);

/* As comm_gather_all, on the device side of a buffer: own items stand in their place there.  With
 * `both` they stand on the host side too, and so do all of them then. */
int comm_gather_buffer(struct comm *c, struct device *dev, struct buffer *b, const idx *counts,
                       size_t unit, int both);

/* As comm_exchange, from the device side of mine to that of theirs, with `both` to its host side
 * too; theirs may be mine where there is one rank.  Buffers without a host side (device_hold) are
 * for joined GPUs alone. */
int comm_exchange_buffer(struct comm *c, struct device *dev, struct buffer *mine,
                         const idx *send_counts, struct buffer *theirs, const idx *recv_counts,
                         size_t unit, int both);

/* Rank 0's items to every rank. */
int comm_broadcast(struct comm *c, void *items, gidx count, size_t unit);

/* Sums of integers, modulo 2^64, on every rank. */
int comm_sum(struct comm *c, gidx *values, gidx count);

/* Everyone's value[size], in rank order, on every rank. */
int comm_collect(struct comm *c, gidx value, gidx *values);
int comm_collect_real(struct comm *c, double value, double *values);

/* Make a status common: OK if all are OK, else the failure with the smallest key (ties: lowest
 * rank), code and message, on every rank.  Must be reached by all before any branches on its
 * status. */
int comm_agree_at(struct comm *c, int status, gidx key);
int comm_agree(struct comm *c, int status);

#endif
