/* SPDX-License-Identifier: BSD-3-Clause
 * What the files of this floor share.
 *
 * Floor: comm. */
#ifndef COMM_INSIDE_H
#define COMM_INSIDE_H

#include "comm/comm.h"

/* ERR_COMM when a peer gave no sign of life for the deadline, else wait a little, longer with each
 * turn from 0 on. */
int comm_pause(struct comm *c, int turn);

/* NCCL, in nccl.c; in a build without it none of these is reached but the first (nccl_none.c).
 *
 * Join the GPUs of all ranks.  Collective, the same status on every rank; ERR_DEVICE says why they
 * cannot be joined. */
int gpus_open(struct comm *c, struct device *dev);
void gpus_close(struct comm *c);

/* On device sides alone, with counts and starts in bytes; they have ended on return. */
int gpus_gather(struct comm *c, struct device *dev, const struct buffer *b, const gidx *counts);
int gpus_exchange(struct comm *c, struct device *dev, const struct buffer *mine,
                  const gidx *send_counts, const struct buffer *theirs, const gidx *recv_counts);

#endif
