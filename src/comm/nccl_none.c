/* SPDX-License-Identifier: BSD-3-Clause
 * A build without NCCL: GPUs are not joined, and exchanges go through the host. */
#include <stdio.h>

#include "base/status.h"
#include "comm/nccl.h"

void comm_gpus_library(char *text, size_t capacity)
{
  snprintf(text, capacity, "none");
}

int gpus_open(struct comm *c, struct device *dev, gidx message)
{
  (void)c, (void)dev, (void)message;
  FAIL(ERR_DEVICE, "this program was built without NCCL: configure it again with --with-nccl=DIR");
}

void gpus_close(struct comm *c)
{
  (void)c;
}

int gpus_allgather(struct comm *c, struct device *dev, const struct buffer *own,
                   const struct buffer *all, const gidx *counts)
{
  (void)own, (void)all, (void)counts;
  return gpus_open(c, dev, 0);
}

int gpus_ready(struct comm *c, struct device *dev)
{
  return gpus_open(c, dev, 0);
}

int gpus_begin(struct comm *c, struct device *dev)
{
  return gpus_open(c, dev, 0);
}

int gpus_end(struct comm *c, struct device *dev, gidx *turn)
{
  (void)turn;
  return gpus_open(c, dev, 0);
}

int gpus_wait(struct comm *c, struct device *dev, gidx turn)
{
  (void)turn;
  return gpus_open(c, dev, 0);
}

int gpus_alltoallv(struct comm *c, struct device *dev, const struct buffer *mine,
                   const gidx *send_counts, const struct buffer *theirs, const gidx *recv_counts)
{
  (void)mine, (void)send_counts, (void)theirs, (void)recv_counts;
  return gpus_open(c, dev, 0);
}
