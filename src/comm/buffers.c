/* SPDX-License-Identifier: BSD-3-Clause
 * Buffers are exchanged by NCCL if the GPUs of the group are joined, otherwise by MPI through host
 * memory. */
#include "comm/buffers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "comm/comm_impl.h"
#include "comm/nccl.h"
#include "device/device.h"

/* The device of a rank: its line of the table in the log. */
struct rank_device {
  char host[64], kind[8], name[80];
  int number;
  unsigned char id[16];
};

static int is_gpu(const struct rank_device *one)
{
  return strcmp(one->kind, "cuda") == 0;
}

static int any_gpu(const struct rank_device *all, int count)
{
  for (int r = 0; r < count; r++)
    if (is_gpu(&all[r])) return 1;
  return 0;
}

/* Does every rank have a GPU, and no two ranks the same? */
static int has_each_its_gpu(const struct rank_device *all, int count)
{
  for (int r = 0; r < count; r++) {
    if (!is_gpu(&all[r])) return 0;
    for (int q = 0; q < r; q++)
      if (!memcmp(all[q].id, all[r].id, sizeof all[r].id)) return 0;
  }
  return 1;
}

/* b is the rank after a.  Is it on the same host, with the next GPU of the same name, or also with
 * the CPU? */
static int follows(const struct rank_device *a, const struct rank_device *b)
{
  return !strcmp(a->host, b->host) && !strcmp(a->kind, b->kind) && !strcmp(a->name, b->name) &&
         b->number == a->number + is_gpu(a);
}

/* Log one line for ranks that follow each other. */
static void ranks_log(const struct rank_device *all, int first, int last)
{
  const struct rank_device *one = &all[first];
  char ranks[48], gpus[64];
  int many = last > first;
  snprintf(ranks, sizeof ranks, many ? "ranks %d to %d" : "rank %d", first, last);
  snprintf(gpus, sizeof gpus, many ? "GPUs %d to %d, each" : "GPU %d", one->number,
           all[last].number);
  log_info("%s on %s: %s %s", ranks, one->host, is_gpu(one) ? gpus : one->kind, one->name);
}

static void table_log(const struct rank_device *all, int count)
{
  if (!any_gpu(all, count)) return;
  for (int first = 0, last = 0; first < count; first = ++last) {
    while (last + 1 < count && follows(&all[last], &all[last + 1])) last++;
    ranks_log(all, first, last);
  }
}

/* Log every rank's device if any rank has a GPU; *has_gpus <- whether any rank has a GPU; *can_join
 * <- whether every rank has a GPU of its own. */
static int devices_log(struct comm *c, const struct device *dev, int *has_gpus, int *can_join)
{
  struct rank_device mine = {.number = dev->gpu.number};
  struct rank_device *all = calloc((size_t)c->size, sizeof *all);
  idx *ones = calloc((size_t)c->size, sizeof *ones);
  int status = all && ones ? OK
                           : status_fail(ERR_MEMORY, __FILE__, __LINE__,
                                         "cannot allocate a table of %d ranks", c->size);
  TRY(comm_agree(c, status));
  gethostname(mine.host, sizeof mine.host - 1);
  strncpy(mine.kind, dev->kind, sizeof mine.kind - 1);
  strncpy(mine.name, dev->variant, sizeof mine.name - 1);
  memcpy(mine.id, dev->gpu.id, sizeof mine.id);
  for (int r = 0; r < c->size; r++) ones[r] = 1;
  TRY(comm_allgather(c, &mine, ones, sizeof mine, all));
  table_log(all, c->size);
  *can_join = has_each_its_gpu(all, c->size);
  *has_gpus = any_gpu(all, c->size);
  free(all);
  free(ones);
  return OK;
}

int comm_devices_report(struct comm *c, const struct device *dev)
{
  int has_gpus, can_join;
  return devices_log(c, dev, &has_gpus, &can_join);
}

int comm_devices_open(struct comm *c, struct comm *group, struct device *dev, gidx message)
{
  int has_gpus, can_join;
  TRY(devices_log(c, dev, &has_gpus, &can_join));
  if (group->size == 1 || !has_gpus) return OK; /* all groups have the same size */
  int status = can_join ? gpus_open(group, dev, message) : ERR_DEVICE;
  if (status == ERR_DEVICE) {
    log_info("GPUs exchange through the host: %s",
             can_join ? status_message() : "not every rank has a GPU of its own");
    status_clear();
    comm_recover(group);
    status = OK;
  }
  return group == c ? status : comm_agree(c, status);
}

void comm_devices_close(struct comm *c)
{
  gpus_close(c);
}

/* bytes[size] <- the counts in bytes; *first <- where this rank's bytes begin; returns the sum. */
static gidx counts_to_bytes(const struct comm *c, const idx *counts, size_t unit, gidx *bytes,
                            gidx *first)
{
  gidx sum = 0;
  for (int r = 0; r < c->size; r++) {
    if (r == c->rank) *first = sum;
    bytes[r] = counts[r] * (gidx)unit;
    sum += bytes[r];
  }
  return sum;
}

/* All-gather by MPI, in place: at the start *b has this rank's items at their position, at the end
 * the items of all ranks. */
static int buffer_allgather(struct comm *c, struct device *dev, struct buffer *b, const idx *counts,
                            size_t unit, gidx first, gidx all)
{
  gidx count = counts[c->rank] * (gidx)unit;
  if (!comm_failure(c)) comm_record(c, device_get(dev, b, first, count));
  TRY(comm_allgather(c, (char *)b->host + first, counts, unit, b->host));
  if (!comm_failure(c)) comm_record(c, device_put(dev, b, 0, first));
  if (!comm_failure(c)) comm_record(c, device_put(dev, b, first + count, all - first - count));
  return OK;
}

/* All-gather by MPI; this rank's items are the first ones of part->own. */
static int parts_allgather(struct comm *c, struct device *dev, const struct comm_exchange *part,
                           gidx count, gidx sum)
{
  if (!comm_failure(c)) comm_record(c, device_get(dev, part->own, 0, count));
  TRY(comm_allgather(c, part->own->host, part->counts, part->unit, part->all->host));
  if (!comm_failure(c)) comm_record(c, device_put(dev, part->all, 0, sum));
  return OK;
}

/* Begin one of several exchanges.  With NCCL this is between gpus_begin() and gpus_end(). */
static int exchange_begin(struct comm *c, struct device *dev, const struct comm_exchange *part)
{
  if (c->size == 1 && !part->own) return OK;
  gidx first = 0, *bytes = comm_work(c);
  gidx sum = counts_to_bytes(c, part->counts, part->unit, bytes, &first), count = bytes[c->rank];
  if (c->gpus) {
    c->bytes += (double)(sum - count);
    return gpus_allgather(c, dev, part->own, part->all, bytes);
  }
  return part->own ? parts_allgather(c, dev, part, count, sum)
                   : buffer_allgather(c, dev, part->all, part->counts, part->unit, first, sum);
}

int comm_allgather_begin(struct comm *c, struct device *dev, const struct comm_exchange *parts,
                         int count, gidx *turn)
{
  /* The status is not agreed: the others may be waiting inside NCCL, so a failure must end the
   * job. */
  if (c->gpus) TRY(gpus_begin(c, dev));
  for (int i = 0; i < count; i++) TRY(exchange_begin(c, dev, &parts[i]));
  return c->gpus ? gpus_end(c, dev, turn) : OK;
}

int comm_allgather_ready(struct comm *c, struct device *dev)
{
  return c->gpus ? gpus_ready(c, dev) : OK;
}

int comm_allgather_end(struct comm *c, struct device *dev, gidx turn)
{
  return c->gpus ? gpus_wait(c, dev, turn) : OK;
}

int comm_allgather_follow(struct comm *c, struct device *dev, gidx turn)
{
  return c->gpus ? device_exchange_follow(dev, turn) : OK;
}

int comm_allgather_buffer(struct comm *c, struct device *dev, struct buffer *b, const idx *counts,
                          size_t unit)
{
  const struct comm_exchange one = {NULL, b, counts, unit};
  gidx turn = 0;
  TRY(comm_allgather_begin(c, dev, &one, 1, &turn));
  return comm_allgather_end(c, dev, turn);
}

int comm_allgather_parts(struct comm *c, struct device *dev, const struct buffer *own,
                         struct buffer *all, const idx *counts, size_t unit)
{
  const struct comm_exchange one = {own, all, counts, unit};
  gidx turn = 0;
  TRY(comm_allgather_begin(c, dev, &one, 1, &turn));
  return comm_allgather_end(c, dev, turn);
}

/* *in <- the bytes that this rank receives; bytes[2 size] is work space. */
static int gpus_move(struct comm *c, struct device *dev, struct buffer *mine,
                     const idx *send_counts, struct buffer *theirs, const idx *recv_counts,
                     size_t unit, gidx *bytes, gidx *in)
{
  gidx first, turn;
  counts_to_bytes(c, send_counts, unit, bytes, &first);
  gidx all = counts_to_bytes(c, recv_counts, unit, bytes + c->size, &first);
  TRY(gpus_begin(c, dev));
  TRY(gpus_alltoallv(c, dev, mine, bytes, theirs, bytes + c->size));
  TRY(gpus_end(c, dev, &turn));
  TRY(gpus_wait(c, dev, turn));
  c->bytes += (double)(all - bytes[c->size + c->rank]);
  *in = all;
  return OK;
}

int comm_buffer_ready(const struct comm *c, struct device *dev, const struct buffer *b, gidx bytes)
{
  return c->gpus ? OK : device_get(dev, b, 0, bytes);
}

int comm_alltoallv_buffer(struct comm *c, struct device *dev, struct buffer *mine,
                          const idx *send_counts, struct buffer *theirs, const idx *recv_counts,
                          size_t unit, int with_host)
{
  gidx first, all = 0;
  if (c->size == 1) return OK;
  gidx *bytes = comm_work(c);
  if (c->gpus) {
    TRY(gpus_move(c, dev, mine, send_counts, theirs, recv_counts, unit, bytes,
                  &all)); /* not agreed */
    if (with_host)
      if (!comm_failure(c)) comm_record(c, device_get(dev, theirs, 0, all));
    return OK;
  }
  all = counts_to_bytes(c, recv_counts, unit, bytes, &first);
  TRY(comm_alltoallv(c, mine->host, send_counts, theirs->host, recv_counts, unit));
  if (!comm_failure(c)) comm_record(c, device_put(dev, theirs, 0, all));
  return OK;
}
