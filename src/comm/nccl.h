/* SPDX-License-Identifier: BSD-3-Clause
 * Verbs between the GPUs of all ranks, by NCCL.
 *
 * Floor: comm; included by src/comm only.
 *
 * In a build without NCCL (nccl_none.c) gpus_open() answers ERR_DEVICE, and no other function here
 * is reached. */
#ifndef COMM_NCCL_H
#define COMM_NCCL_H

#include "comm/comm.h"
#include "device/buffer.h"

/* Join the GPUs of all ranks, for messages of at most so many bytes that come again and again.
 * Collective, the same status on every rank; ERR_DEVICE says why they cannot be joined. */
int gpus_open(struct comm *c, struct device *dev, gidx message);
/* Safe where they were not joined.  Every rank calls it. */
void gpus_close(struct comm *c);

/* As comm_allgather() and comm_alltoallv(), on device sides alone, with counts[size] in bytes.
 * With own NULL this rank's bytes are at their place in all.  Those between gpus_begin() and
 * gpus_end() are handed to NCCL together, which takes it a thread and some 0.1 ms each time.  The
 * bytes are there when gpus_wait() returns, for the *turn that gpus_end() gives, of the last few;
 * what is computed meanwhile must not touch them.  Where gpus_ready() was called before, the next
 * begin when what was computed until then has ended, not until now.  Collective, but for
 * gpus_ready() and gpus_wait(). */
int gpus_ready(struct comm *c, struct device *dev);
int gpus_begin(struct comm *c, struct device *dev);
int gpus_end(struct comm *c, struct device *dev, gidx *turn);
int gpus_allgather(struct comm *c, struct device *dev, const struct buffer *own,
                   const struct buffer *all, const gidx *counts);
int gpus_wait(struct comm *c, struct device *dev, gidx turn);
int gpus_alltoallv(struct comm *c, struct device *dev, const struct buffer *mine,
                   const gidx *send_counts, const struct buffer *theirs, const gidx *recv_counts);

#endif
