/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: buffers of devices are gathered and exchanged like ordinary memory, in empty, even and
 * uneven shares, with short messages and long ones.  Devices are the CPU and, if there are any,
 * GPUs, each for one rank or for several.
 * RUN: np=1 2 4 */
#include <string.h>

#include "comm/buffers.h"
#include "device_how.h"

enum { ITEMS = 1000 };

/* The share of each rank.  In odd turns all shares are equal.  In even turns rank 1 has nothing,
 * and shares grow with the rank. */
static void shares(const struct comm *c, int turn, idx *counts)
{
  for (int r = 0; r < c->size; r++)
    counts[r] = turn % 2 ? 7 * turn : r == 1 ? 0 : (r + 1) * (turn + 1) * 7;
}

static void check_gather(struct comm *c, struct device *dev, int turn)
{
  struct buffer b = {0};
  idx counts[64], first = 0, all = 0;
  shares(c, turn, counts);
  for (int r = 0; r < c->size; r++) {
    if (r < c->rank) first += counts[r];
    all += counts[r];
  }
  int status = buffer_alloc(dev, &b, ITEMS * 8), good = !status;
  gidx *host = b.host;
  for (idx i = 0; good && i < counts[c->rank]; i++) host[first + i] = 100 * c->rank + i;
  if (good) status = device_put(dev, &b, first * 8, counts[c->rank] * 8);
  if (good && strcmp(dev->kind, "cpu")) memset(host, 0x55, ITEMS * 8);
  if (!status) status = comm_allgather_buffer(c, dev, &b, counts, 8);
  if (!status) status = device_get(dev, &b, 0, ITEMS * 8);
  good = !status;
  for (int r = 0, at = 0; good && r < c->size; r++)
    for (idx i = 0; i < counts[r]; i++) good &= host[at++] == 100 * r + i;
  if (status) printf("# %s\n", status_message());
  gidx bad = !good;
  status = comm_sum(c, &bad, 1);
  ok(!status && bad == 0, "%s: gather of %d items", dev->kind, all);
  buffer_free(dev, &b);
}

/* Gather from a separate buffer that has only this rank's items. */
static void check_parts(struct comm *c, struct device *dev, int turn)
{
  struct buffer own = {0}, b = {0};
  idx counts[64];
  shares(c, turn, counts);
  int status = buffer_alloc(dev, &own, ITEMS * 8);
  if (!status) status = buffer_alloc(dev, &b, ITEMS * 8);
  gidx *mine = own.host, *all = b.host;
  for (idx i = 0; !status && i < counts[c->rank]; i++) mine[i] = 100 * c->rank + i;
  if (!status) status = device_put(dev, &own, 0, counts[c->rank] * 8);
  if (!status) status = comm_allgather_parts(c, dev, &own, &b, counts, 8);
  if (!status) status = device_get(dev, &b, 0, ITEMS * 8);
  int good = !status;
  for (int r = 0, at = 0; good && r < c->size; r++)
    for (idx i = 0; i < counts[r]; i++) good &= all[at++] == 100 * r + i;
  if (status) printf("# %s\n", status_message());
  gidx bad = !good;
  status = comm_sum(c, &bad, 1);
  ok(!status && bad == 0, "%s: gather of parts, turn %d", dev->kind, turn);
  buffer_free(dev, &own);
  buffer_free(dev, &b);
}

/* A gather in place and a gather of parts begin together, with different shares; a third gather
 * begins after them. */
static void check_several(struct comm *c, struct device *dev, int turn)
{
  struct buffer own = {0}, b[3] = {0};
  idx counts[3][64], first[3] = {0};
  int status = buffer_alloc(dev, &own, ITEMS * 8);
  for (int k = 0; k < 3; k++) {
    shares(c, turn + k, counts[k]);
    for (int r = 0; r < c->rank; r++) first[k] += counts[k][r];
    if (!status) status = buffer_alloc(dev, &b[k], ITEMS * 8);
  }
  struct buffer *from[] = {&b[0], &own, &b[2]};
  for (int k = 0; k < 3 && !status; k++) {
    idx at = k == 1 ? 0 : first[k], n = counts[k][c->rank];
    gidx *items = from[k]->host;
    for (idx i = 0; i < n; i++) items[at + i] = 1000 * k + 100 * c->rank + i;
    status = device_put(dev, from[k], at * 8, n * 8);
  }
  const struct comm_exchange parts[] = {
      {NULL, &b[0], counts[0], 8}, {&own, &b[1], counts[1], 8}, {NULL, &b[2], counts[2], 8}};
  gidx turns[2] = {0};
  if (!status && turn % 2) status = comm_allgather_ready(c, dev);
  if (!status) status = comm_allgather_begin(c, dev, parts, 2, &turns[0]);
  if (!status) status = comm_allgather_begin(c, dev, parts + 2, 1, &turns[1]);
  for (int i = 0; i < 2; i++)
    if (!status) status = comm_allgather_end(c, dev, turns[i]);
  for (int k = 0; k < 3 && !status; k++) status = device_get(dev, &b[k], 0, ITEMS * 8);
  int good = !status;
  for (int k = 0; k < 3; k++)
    for (int r = 0, at = 0; good && r < c->size; r++)
      for (idx i = 0; i < counts[k][r]; i++)
        good &= ((gidx *)b[k].host)[at++] == 1000 * k + 100 * r + i;
  if (status) printf("# %s\n", status_message());
  gidx bad = !good;
  status = comm_sum(c, &bad, 1);
  ok(!status && bad == 0, "%s: three at once, turn %d", dev->kind, turn);
  buffer_free(dev, &own);
  for (int k = 0; k < 3; k++) buffer_free(dev, &b[k]);
}

static void check_exchange(struct comm *c, struct device *dev, int turn, int both)
{
  struct buffer mine = {0}, theirs = {0};
  idx out[64], in[64], all = 0;
  for (int r = 0; r < c->size; r++) {
    out[r] = (c->rank + 2 * r) % 3 * (turn + 1); /* from this rank to r */
    in[r] = (r + 2 * c->rank) % 3 * (turn + 1);
  }
  int status = buffer_alloc(dev, &mine, ITEMS * 8);
  if (!status) status = buffer_alloc(dev, &theirs, ITEMS * 8);
  gidx *from = mine.host, *to = theirs.host;
  for (int r = 0; !status && r < c->size; r++)
    for (idx i = 0; i < out[r]; i++) from[all++] = 10000 * c->rank + 100 * r + i;
  if (!status) status = device_put(dev, &mine, 0, ITEMS * 8);
  if (!status) status = comm_buffer_ready(c, dev, &mine, all * 8);
  if (!status)
    status = comm_alltoallv_buffer(c, dev, &mine, out, c->size > 1 ? &theirs : &mine, in, 8, both);
  if (!status && !both) status = device_get(dev, c->size > 1 ? &theirs : &mine, 0, ITEMS * 8);
  if (c->size == 1) to = from;
  int good = !status;
  for (int r = 0, at = 0; good && r < c->size; r++)
    for (idx i = 0; i < in[r]; i++) good &= to[at++] == 10000 * r + 100 * c->rank + i;
  if (status) printf("# %s\n", status_message());
  gidx bad = !good;
  status = comm_sum(c, &bad, 1);
  ok(!status && bad == 0, "%s: exchange, turn %d, both=%d", dev->kind, turn, both);
  buffer_free(dev, &mine);
  buffer_free(dev, &theirs);
}

static void check_device(struct comm *c, const struct how *how, gidx message)
{
  struct device dev = {0};
  struct device_options options = how_options(how, 1, 1, 0);
  options.local_rank = c->local_rank;
  int status = device_open(&dev, &options);
  if (!ok(!comm_agree(c, status) && !comm_devices_open(c, c, &dev, message),
          "%s: the devices of all ranks open for transfers", how->kind)) {
    printf("# %s\n", status_message());
    return;
  }
  claim_begin("%s: gather and exchange move buffers like memory, in messages of %lld bytes",
              how->kind, (long long)message);
  for (int turn = 0; turn < 4; turn++) {
    check_gather(c, &dev, turn);
    check_parts(c, &dev, turn);
    check_several(c, &dev, turn);
    check_exchange(c, &dev, turn, 0);
    check_exchange(c, &dev, turn, 1);
  }
  claim_end();
  comm_devices_close(c);
  device_close(&dev);
}

int main(void)
{
  static const struct how cpu = {.kind = "cpu", .variant = "baseline", .threads = 1};
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  check_device(&c, &cpu, 0);
  if (gpu_present()) check_device(&c, &how_cuda, 0);
  if (gpu_present()) check_device(&c, &how_cuda, 1 << 30);
  int status = done_testing();
  return comm_close(&c) || status;
}
