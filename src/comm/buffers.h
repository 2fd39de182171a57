/* SPDX-License-Identifier: BSD-3-Clause
 * Collective operations on buffers of a device: between GPUs if ranks have joined them, otherwise
 * through the host.
 *
 * Floor: comm. */
#ifndef COMM_BUFFERS_H
#define COMM_BUFFERS_H

#include "comm/comm.h"
#include "device/buffer.h"

/* Join the devices of all ranks.  If any rank has a GPU, a table of ranks, hosts and devices goes
 * to the log.  group: the part of c that exchanges arrays with this rank, or c.  The GPUs of a
 * group of several ranks are connected by NCCL if every rank of c has a GPU of its own.  If they
 * cannot be connected, the log says why, and exchanges go through the host.  message: bytes of the
 * largest exchange that is repeated.  Collective. */
int comm_devices_open(struct comm *c, struct comm *group, struct device *dev, gidx message);
/* Log the table only, for devices that exchange nothing.  Collective. */
int comm_devices_report(struct comm *c, const struct device *dev);
/* Called with the group, before the device is closed; safe if GPUs were not joined.  Every rank
 * calls it. */
void comm_devices_close(struct comm *c);

/* Like comm_allgather(), on the device side of a buffer.  Each rank's own items must already be at
 * their position in the buffer.  A failure on one rank alone is recorded (comm_record()), in
 * lockstep or not; but an error of NCCL is returned, and must end the job.  Both hold for the
 * functions below, too.  Collective. */
int comm_allgather_buffer(struct comm *c, struct device *dev, struct buffer *b, const idx *counts,
                          size_t unit);

/* The same, but each rank's items are the first items of another buffer.  Afterwards `all` has the
 * items on the device side; host sides are work space.  Collective. */
int comm_allgather_parts(struct comm *c, struct device *dev, const struct buffer *own,
                         struct buffer *all, const idx *counts, size_t unit);

/* Several exchanges of either kind at once.  Joined GPUs exchange while they compute; *turn is then
 * the number of the exchange for comm_allgather_end(), which is not collective.  At most
 * DEVICE_EXCHANGES may be in progress; they end in the order in which they began. */
struct comm_exchange {
  const struct buffer *own; /* NULL: as in comm_allgather_buffer() */
  struct buffer *all;
  const idx *counts;
  size_t unit;
};
int comm_allgather_begin(struct comm *c, struct device *dev, const struct comm_exchange *parts,
                         int count, gidx *turn);
/* The next comm_allgather_begin() waits for the work that the device was given before this call,
 * and not for later work.  Not collective. */
int comm_allgather_ready(struct comm *c, struct device *dev);
int comm_allgather_end(struct comm *c, struct device *dev, gidx turn);
/* Work that is given to the device from here on starts when exchange `turn` has ended.  Not
 * collective. */
int comm_allgather_follow(struct comm *c, struct device *dev, gidx turn);

/* Prepare the first `bytes` of a buffer for comm_alltoallv_buffer(): copy them to the host, unless
 * GPUs are joined.  Not collective. */
int comm_buffer_ready(const struct comm *c, struct device *dev, const struct buffer *b, gidx bytes);

/* Like comm_alltoallv(), from the device side of `mine`, after comm_buffer_ready(), to the device
 * side of `theirs`; with_host: also to the host side of `theirs`.  With one rank nothing is copied:
 * both must be one buffer.  Buffers without a host side (buffer_alloc_device()) need joined GPUs.
 * Collective. */
int comm_alltoallv_buffer(struct comm *c, struct device *dev, struct buffer *mine,
                          const idx *send_counts, struct buffer *theirs, const idx *recv_counts,
                          size_t unit, int with_host);

#endif
