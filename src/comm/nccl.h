/* SPDX-License-Identifier: BSD-3-Clause
 * Operations between the GPUs of all ranks, by NCCL.
 *
 * Floor: comm; included by src/comm only.
 *
 * In a build without NCCL (nccl_none.c) gpus_open() returns ERR_DEVICE, and of the other functions
 * only gpus_close() is called. */
#ifndef COMM_NCCL_H
#define COMM_NCCL_H

#include "comm/comm.h"
#include "device/buffer.h"

/* Join the GPUs of all ranks; message: bytes of the largest exchange that is repeated.  Collective,
 * the same status on every rank; ERR_DEVICE says why they cannot be joined. */
int gpus_open(struct comm *c, struct device *dev, gidx message);
/* Safe if they were not joined.  Every rank calls it. */
void gpus_close(struct comm *c);

/* Like comm_allgather() and comm_alltoallv(), on device sides only, with counts[size] in bytes.
 * own NULL: this rank's bytes are at their position in all.  Calls between gpus_begin() and
 * gpus_end() are given to NCCL together, since NCCL starts a thread for each group, which takes
 * about 0.1 ms.  The bytes have arrived when gpus_wait() returns for the *turn that gpus_end()
 * gave; it must be one of the last DEVICE_EXCHANGES turns.  Work given to the device before that
 * return must not touch the bytes.  After gpus_ready() the next exchange starts when the work given
 * to the device before that call has ended, not later work.  Collective, except gpus_ready() and
 * gpus_wait(). */
int gpus_ready(struct comm *c, struct device *dev);
int gpus_begin(struct comm *c, struct device *dev);
int gpus_end(struct comm *c, struct device *dev, gidx *turn);
int gpus_allgather(struct comm *c, struct device *dev, const struct buffer *own,
                   const struct buffer *all, const gidx *counts);
int gpus_wait(struct comm *c, struct device *dev, gidx turn);
int gpus_alltoallv(struct comm *c, struct device *dev, const struct buffer *mine,
                   const gidx *send_counts, const struct buffer *theirs, const gidx *recv_counts);

#endif
