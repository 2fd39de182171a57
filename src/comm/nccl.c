/* SPDX-License-Identifier: BSD-3-Clause
 * Verbs between GPUs, by NCCL.  It has no deadline of its own: the communicator is non-blocking,
 * and whoever waits looks for errors of NCCL and for signs of life. */
#include <nccl.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "comm/inside.h"

/* Channels between two GPUs are opened at the first exchange: 32, NCCL's own choice for four H200,
 * took 1.4 s, and messages are too short to gain by more than these (doc/bench.md).  NCCL_MAX_CTAS
 * of the environment takes precedence. */
enum { CHANNELS = 4 };

struct comm_gpus {
  ncclComm_t joined;
};

static int nccl_fail(ncclResult_t result, const char *file, int line)
{
  return status_fail(ERR_COMM, file, line, "NCCL failed: %s", ncclGetErrorString(result));
}

/* A call that goes on behind is no failure. */
#define TRY_NCCL(call)                                                                             \
  do {                                                                                             \
    ncclResult_t nccl_ = (call);                                                                   \
    if (nccl_ != ncclSuccess && nccl_ != ncclInProgress)                                           \
      return nccl_fail(nccl_, __FILE__, __LINE__);                                                 \
  } while (0)

/* Wait until NCCL has done its part of the last call. */
static int started_wait(struct comm *c)
{
  for (int turn = 0;; turn++) {
    ncclResult_t state = ncclSuccess;
    TRY_NCCL(ncclCommGetAsyncError(c->gpus->joined, &state));
    TRY_NCCL(state);
    if (state == ncclSuccess) return OK;
    TRY(comm_pause(c, turn));
  }
}

/* Wait until the GPU has. */
static int ended_wait(struct comm *c, struct device *dev)
{
  double begun = log_seconds();
  TRY(started_wait(c));
  for (int turn = 0, idle = 0;; turn++) {
    ncclResult_t state = ncclSuccess;
    TRY(device_idle(dev, &idle));
    if (idle) break;
    TRY_NCCL(ncclCommGetAsyncError(c->gpus->joined, &state));
    TRY_NCCL(state);
    TRY(comm_pause(c, turn));
  }
  c->seconds += log_seconds() - begun;
  return OK;
}

static int join(struct comm *c)
{
  ncclUniqueId id = {{0}};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 17, 1)
  config.maxCTAs = CHANNELS;
#endif
  int status = OK;
  if (c->rank == 0) {
    ncclResult_t result = ncclGetUniqueId(&id);
    if (result) status = nccl_fail(result, __FILE__, __LINE__);
  }
  TRY(comm_agree(c, status));
  TRY(comm_broadcast(c, &id, 1, sizeof id));
  TRY_NCCL(ncclCommInitRankConfig(&c->gpus->joined, c->size, id, c->rank, &config));
  return started_wait(c);
}

int gpus_open(struct comm *c, struct device *dev)
{
  int version = 0;
  (void)dev;
  c->gpus = calloc(1, sizeof *c->gpus);
  TRY(comm_agree(c, c->gpus ? OK
                            : status_fail(ERR_MEMORY, __FILE__, __LINE__,
                                          "cannot allocate the communicator of the GPUs")));
  TRY(comm_agree(c, join(c)));
  ncclGetVersion(&version);
  log_info("GPUs exchange through NCCL %d.%d.%d", version / 10000, version / 100 % 100,
           version % 100);
  return OK;
}

void gpus_close(struct comm *c)
{
  if (!c->gpus) return;
  ncclResult_t result = ncclCommFinalize(c->gpus->joined);
  int ended = (result == ncclSuccess || result == ncclInProgress) && !started_wait(c);
  if (!ended)
    ncclCommAbort(c->gpus->joined);
  else
    ncclCommDestroy(c->gpus->joined);
  status_clear();
  free(c->gpus);
  c->gpus = NULL;
}

int gpus_gather(struct comm *c, struct device *dev, const struct buffer *b, const gidx *counts)
{
  char *at = b->device;
  TRY_NCCL(ncclGroupStart());
  for (int r = 0; r < c->size; at += counts[r++])
    if (counts[r] > 0)
      TRY_NCCL(
          ncclBroadcast(at, at, (size_t)counts[r], ncclChar, r, c->gpus->joined, dev->gpu.stream));
  TRY_NCCL(ncclGroupEnd());
  return ended_wait(c, dev);
}

int gpus_exchange(struct comm *c, struct device *dev, const struct buffer *mine,
                  const gidx *send_counts, const struct buffer *theirs, const gidx *recv_counts)
{
  const char *from = mine->device;
  char *to = theirs->device;
  ncclComm_t joined = c->gpus->joined;
  TRY_NCCL(ncclGroupStart());
  for (int r = 0; r < c->size; from += send_counts[r], to += recv_counts[r], r++) {
    if (send_counts[r] > 0)
      TRY_NCCL(ncclSend(from, (size_t)send_counts[r], ncclChar, r, joined, dev->gpu.stream));
    if (recv_counts[r] > 0)
      TRY_NCCL(ncclRecv(to, (size_t)recv_counts[r], ncclChar, r, joined, dev->gpu.stream));
  }
  TRY_NCCL(ncclGroupEnd());
  return ended_wait(c, dev);
}
