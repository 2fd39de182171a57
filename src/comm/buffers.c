/* SPDX-License-Identifier: BSD-3-Clause
 * Verbs on buffers of a device: staged through the host and MPI. */
#include "base/status.h"
#include "comm/comm.h"

/* first, count <- bytes of this rank's items; returns those of all. */
static gidx bytes_of(const struct comm *c, const idx *counts, size_t unit, gidx *first, gidx *count)
{
  gidx sum = 0;
  for (int r = 0; r < c->size; r++) {
    if (r == c->rank) *first = sum;
    sum += counts[r] * (gidx)unit;
  }
  *count = counts[c->rank] * (gidx)unit;
  return sum;
}

int comm_gather_buffer(struct comm *c, struct device *dev, struct buffer *b, const idx *counts,
                       size_t unit, int both)
{
  gidx first = 0, count = 0, all = bytes_of(c, counts, unit, &first, &count), end = first + count;
  if (c->size == 1) return OK;
  int status = both ? OK : device_get(dev, b, first, count);
  TRY(comm_agree(c, status));
  TRY(comm_gather_all(c, (char *)b->host + first, counts, unit, b->host));
  status = device_put(dev, b, 0, first);
  if (!status) status = device_put(dev, b, end, all - end);
  return comm_agree(c, status);
}

int comm_exchange_buffer(struct comm *c, struct device *dev, struct buffer *mine,
                         const idx *send_counts, struct buffer *theirs, const idx *recv_counts,
                         size_t unit)
{
  gidx first, count, all = bytes_of(c, send_counts, unit, &first, &count);
  int status = device_get(dev, mine, 0, all);
  if (c->size == 1) return status;
  TRY(comm_agree(c, status));
  TRY(comm_exchange(c, mine->host, send_counts, theirs->host, recv_counts, unit));
  all = bytes_of(c, recv_counts, unit, &first, &count);
  return comm_agree(c, device_put(dev, theirs, 0, all));
}
