/* SPDX-License-Identifier: BSD-3-Clause
 * Verbs on buffers of a device: between GPUs where every rank has its own, else staged through the
 * host and MPI. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "comm/inside.h"

/* A rank's line of the table in the log. */
struct seat {
  char host[64], kind[8], name[80];
  int number;
  unsigned char id[16];
};

static int seats_shared(const struct seat *seats, int count)
{
  for (int r = 0; r < count; r++) {
    if (strcmp(seats[r].kind, "cuda")) return 1;
    for (int q = 0; q < r; q++)
      if (!memcmp(seats[q].id, seats[r].id, sizeof seats[r].id)) return 1;
  }
  return 0;
}

static void seats_log(const struct seat *seats, int count)
{
  int any = 0;
  for (int r = 0; r < count; r++) any |= !strcmp(seats[r].kind, "cuda");
  if (!any) return;
  for (int r = 0; r < count; r++) {
    if (strcmp(seats[r].kind, "cuda"))
      log_info("rank %d on %s: %s %s", r, seats[r].host, seats[r].kind, seats[r].name);
    else
      log_info("rank %d on %s: GPU %d %s", r, seats[r].host, seats[r].number, seats[r].name);
  }
}

int comm_devices(struct comm *c, struct device *dev)
{
  struct seat mine = {.number = dev->gpu.number}, *seats = calloc((size_t)c->size, sizeof *seats);
  idx *ones = calloc((size_t)c->size, sizeof *ones);
  int status = seats && ones ? OK
                             : status_fail(ERR_MEMORY, __FILE__, __LINE__,
                                           "cannot allocate a table of %d ranks", c->size);
  TRY(comm_agree(c, status));
  gethostname(mine.host, sizeof mine.host - 1);
  strncpy(mine.kind, dev->kind, sizeof mine.kind - 1);
  strncpy(mine.name, dev->variant, sizeof mine.name - 1);
  memcpy(mine.id, dev->gpu.id, sizeof mine.id);
  for (int r = 0; r < c->size; r++) ones[r] = 1;
  TRY(comm_gather_all(c, &mine, ones, sizeof mine, seats));
  seats_log(seats, c->size);
  int shared = seats_shared(seats, c->size), any = 0;
  for (int r = 0; r < c->size; r++) any |= !strcmp(seats[r].kind, "cuda");
  free(seats);
  free(ones);
  if (c->size == 1 || !any) return OK;
  status = shared ? ERR_DEVICE : gpus_open(c, dev);
  if (status == ERR_DEVICE) {
    log_info("GPUs exchange through the host: %s",
             shared ? "not every rank has one of its own" : status_message());
    status_clear();
    status = OK;
  }
  return status;
}

void comm_devices_close(struct comm *c)
{
  gpus_close(c);
}

/* bytes[size] <- items in bytes; first <- where this rank's begin; returns the sum. */
static gidx bytes_of(const struct comm *c, const idx *counts, size_t unit, gidx *bytes, gidx *first)
{
  gidx sum = 0;
  for (int r = 0; r < c->size; r++) {
    if (r == c->rank) *first = sum;
    bytes[r] = counts[r] * (gidx)unit;
    sum += bytes[r];
  }
  return sum;
}

/* Copy all but this rank's own part in the given direction. */
static int others_copy(struct device *dev, const struct buffer *b, gidx first, gidx count, gidx all,
                       int (*copy)(struct device *, const struct buffer *, gidx, gidx))
{
  TRY(copy(dev, b, 0, first));
  return copy(dev, b, first + count, all - first - count);
}

int comm_gather_buffer(struct comm *c, struct device *dev, struct buffer *b, const idx *counts,
                       size_t unit, int both)
{
  gidx first = 0;
  if (c->size == 1) return OK;
  gidx *bytes = malloc((size_t)c->size * sizeof *bytes);
  CHECK(bytes, ERR_MEMORY, "cannot allocate %d counts", c->size);
  gidx all = bytes_of(c, counts, unit, bytes, &first), count = bytes[c->rank];
  if (c->gpus) {
    int status = gpus_gather(c, dev, b, bytes);
    free(bytes);
    TRY(status); /* not agreed: the others may be waiting inside NCCL, and the job has to end */
    c->bytes += (double)(all - count);
    if (both) status = others_copy(dev, b, first, count, all, device_get);
    return comm_agree(c, status);
  }
  free(bytes);
  TRY(comm_agree(c, both ? OK : device_get(dev, b, first, count)));
  TRY(comm_gather_all(c, (char *)b->host + first, counts, unit, b->host));
  return comm_agree(c, others_copy(dev, b, first, count, all, device_put));
}

/* bytes[2 size]: what goes out, what comes in. */
static int gpus_move(struct comm *c, struct device *dev, struct buffer *mine,
                     const idx *send_counts, struct buffer *theirs, const idx *recv_counts,
                     size_t unit, gidx *bytes, gidx *in)
{
  gidx first;
  bytes_of(c, send_counts, unit, bytes, &first);
  gidx all = bytes_of(c, recv_counts, unit, bytes + c->size, &first);
  TRY(gpus_exchange(c, dev, mine, bytes, theirs, bytes + c->size));
  c->bytes += (double)(all - bytes[c->size + c->rank]);
  *in = all;
  return OK;
}

int comm_exchange_buffer(struct comm *c, struct device *dev, struct buffer *mine,
                         const idx *send_counts, struct buffer *theirs, const idx *recv_counts,
                         size_t unit, int both)
{
  gidx first, *bytes = malloc(2 * (size_t)c->size * sizeof *bytes);
  CHECK(bytes, ERR_MEMORY, "cannot allocate %d counts", c->size);
  if (c->gpus) {
    gidx all = 0;
    int status = gpus_move(c, dev, mine, send_counts, theirs, recv_counts, unit, bytes, &all);
    free(bytes);
    TRY(status); /* not agreed, as above */
    return comm_agree(c, both ? device_get(dev, theirs, 0, all) : OK);
  }
  gidx out = bytes_of(c, send_counts, unit, bytes, &first);
  gidx in = bytes_of(c, recv_counts, unit, bytes, &first);
  free(bytes);
  int status = device_get(dev, mine, 0, out);
  if (c->size == 1) return status;
  TRY(comm_agree(c, status));
  TRY(comm_exchange(c, mine->host, send_counts, theirs->host, recv_counts, unit));
  return comm_agree(c, device_put(dev, theirs, 0, in));
}
