/* SPDX-License-Identifier: BSD-3-Clause
 * Collective operations on buffers of a device: between GPUs where ranks have joined theirs, else
 * through the host.
 *
 * Floor: comm. */
#ifndef COMM_BUFFERS_H
#define COMM_BUFFERS_H

#include "comm/comm.h"
#include "device/buffer.h"

/* Join the devices of all ranks: write a table of rank, host and GPU to the log, and connect the
 * GPUs of `group`, the part of c that this rank exchanges arrays with, or c itself, by NCCL where
 * every rank has one of its own; where that cannot be, the log says why and they exchange through
 * the host.  message: bytes of the longest exchange among those that come again and again.
 * Collective. */
int comm_devices_open(struct comm *c, struct comm *group, struct device *dev, gidx message);
/* The table alone, for devices that exchange nothing.  Collective. */
int comm_devices_report(struct comm *c, const struct device *dev);
/* Of the group, before the device is closed; safe where GPUs were not joined.  Every rank calls
 * it. */
void comm_devices_close(struct comm *c);

/* As comm_allgather(), on the device side of a buffer.  Each rank's own items must already be at
 * their place in the buffer.  What fails here on one rank alone is recorded (comm_record()),
 * whether ranks wait for each other or not; so too below.  Collective. */
int comm_allgather_buffer(struct comm *c, struct device *dev, struct buffer *b, const idx *counts,
                          size_t unit);

/* The same from the first items of another buffer, in which each rank has its own.  Afterwards all
 * has them on the device's side; host sides are work.  Collective. */
int comm_allgather_parts(struct comm *c, struct device *dev, const struct buffer *own,
                         struct buffer *all, const idx *counts, size_t unit);

/* Several of either kind at once, which joined GPUs go on with beside what they compute: then *turn
 * is what comm_allgather_end() waits for, which is not collective.  A few such may be begun, and
 * end in the order in which they were. */
struct comm_exchange {
  const struct buffer *own; /* NULL: the first kind */
  struct buffer *all;
  const idx *counts;
  size_t unit;
};
int comm_allgather_begin(struct comm *c, struct device *dev, const struct comm_exchange *parts,
                         int count, gidx *turn);
/* What the next comm_allgather_begin() sends is what the device was told to compute so far, and
 * does not wait for what it is told from here on.  Not collective. */
int comm_allgather_ready(struct comm *c, struct device *dev);
int comm_allgather_end(struct comm *c, struct device *dev, gidx turn);
/* What the device is told to compute from here on begins when exchange `turn` has ended.  Not
 * collective. */
int comm_allgather_follow(struct comm *c, struct device *dev, gidx turn);

/* Bring what is to be sent, the first `bytes` of a buffer, to where comm_alltoallv_buffer() takes
 * it: the host, where GPUs are not joined.  Not collective. */
int comm_buffer_ready(const struct comm *c, struct device *dev, const struct buffer *b, gidx bytes);

/* As comm_alltoallv(), from the device side of mine to that of theirs, and with `with_host` to its
 * host side too; theirs may be mine where there is one rank.  Buffers without a host side
 * (buffer_alloc_device()) are for joined GPUs alone.  Collective. */
int comm_alltoallv_buffer(struct comm *c, struct device *dev, struct buffer *mine,
                          const idx *send_counts, struct buffer *theirs, const idx *recv_counts,
                          size_t unit, int with_host);

#endif
