/* SPDX-License-Identifier: BSD-3-Clause
 * Operations between GPUs, by NCCL.  The communicator is non-blocking; a rank that waits checks for
 * errors of NCCL. */
#include "comm/nccl.h"

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "comm/comm_impl.h"
#include "device/device.h"

/* Number of channels that NCCL opens between two GPUs at the first exchange.  On four H200, NCCL
 * itself chose 32 channels, and took 1.4 s to open them.  Short messages never gain that time back;
 * long repeated ones do (lessons in doc/kernel-tutorial.md).  NCCL_MAX_CTAS in the environment
 * takes precedence. */
enum { CHANNELS = 4, LONG_CHANNELS = 16, LONG_MESSAGE = 16 << 20 };

struct comm_gpus {
  ncclComm_t nccl;
  gidx turns;   /* number of gpus_end() calls */
  int is_ready; /* gpus_ready() has set the work that the next exchange waits for */
};

static int nccl_fail(ncclResult_t result, const char *file, int line)
{
  return status_fail(ERR_COMM, file, line, "NCCL failed: %s", ncclGetErrorString(result));
}

/* A call that continues in the background is no failure. */
#define TRY_NCCL(call)                                                                             \
  do {                                                                                             \
    ncclResult_t nccl_ = (call);                                                                   \
    if (nccl_ != ncclSuccess && nccl_ != ncclInProgress)                                           \
      return nccl_fail(nccl_, __FILE__, __LINE__);                                                 \
  } while (0)

/* 0: the wheel's program, which opens NCCL at run time, found none. */
static int library_version(void)
{
  int version = 0;
  return ncclGetVersion(&version) ? 0 : version;
}

void comm_gpus_library(char *text, size_t capacity)
{
  int version = library_version();
  if (version)
    snprintf(text, capacity, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
  else
    snprintf(text, capacity, "none");
}

/* Wait until NCCL has put the last call on the stream. */
static int enqueued_wait(struct comm *c)
{
  for (int turn = 0;; turn++) {
    ncclResult_t state = ncclSuccess;
    TRY_NCCL(ncclCommGetAsyncError(c->gpus->nccl, &state));
    TRY_NCCL(state);
    if (state == ncclSuccess) return OK;
    comm_pause(turn);
  }
}

int gpus_wait(struct comm *c, struct device *dev, gidx turn)
{
  double begun = log_seconds();
  for (int i = 0, is_done = 0;; i++) {
    ncclResult_t state = ncclSuccess;
    TRY(device_exchanged(dev, turn, &is_done));
    if (is_done) break;
    TRY_NCCL(ncclCommGetAsyncError(c->gpus->nccl, &state));
    TRY_NCCL(state);
    comm_pause(i);
  }
  c->seconds += log_seconds() - begun;
  return OK;
}

/* Rank 0's id makes one communicator of all ranks.  Collective; its status is not agreed. */
static int communicator_open(struct comm *c, gidx message)
{
  ncclUniqueId id = {{0}};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 17, 1)
  config.maxCTAs = message < LONG_MESSAGE ? CHANNELS : LONG_CHANNELS;
#else
  (void)message;
#endif
  int status = OK;
  if (c->rank == 0) {
    ncclResult_t result = ncclGetUniqueId(&id);
    if (result) status = nccl_fail(result, __FILE__, __LINE__);
  }
  TRY(comm_agree(c, status));
  TRY(comm_broadcast(c, &id, 1, sizeof id));
  TRY_NCCL(ncclCommInitRankConfig(&c->gpus->nccl, c->size, id, c->rank, &config));
  return enqueued_wait(c);
}

int gpus_open(struct comm *c, struct device *dev, gidx message)
{
  char version[32];
  (void)dev;
  TRY(comm_agree(c, library_version() ? OK
                                      : status_fail(ERR_DEVICE, __FILE__, __LINE__,
                                                    "there is no libnccl.so.2: pip install "
                                                    "'sagitta-dictionaries[cuda-multi]'")));
  c->gpus = calloc(1, sizeof *c->gpus);
  TRY(comm_agree(c, c->gpus ? OK
                            : status_fail(ERR_MEMORY, __FILE__, __LINE__,
                                          "cannot allocate the communicator of the GPUs")));
  TRY(comm_agree(c, communicator_open(c, message)));
  comm_gpus_library(version, sizeof version);
  log_info("GPUs exchange through NCCL %s", version);
  return OK;
}

void gpus_close(struct comm *c)
{
  if (!c->gpus) return;
  ncclResult_t result = ncclCommFinalize(c->gpus->nccl);
  int ended = (result == ncclSuccess || result == ncclInProgress) && !enqueued_wait(c);
  if (!ended)
    ncclCommAbort(c->gpus->nccl);
  else
    ncclCommDestroy(c->gpus->nccl);
  status_clear();
  free(c->gpus);
  c->gpus = NULL;
}

static int are_equal(const gidx *counts, int size)
{
  int r = 1;
  while (r < size && counts[r] == counts[0]) r++;
  return r == size;
}

int gpus_ready(struct comm *c, struct device *dev)
{
  c->gpus->is_ready = 1;
  return device_exchange(dev);
}

int gpus_begin(struct comm *c, struct device *dev)
{
  if (!c->gpus->is_ready) TRY(device_exchange(dev));
  c->gpus->is_ready = 0;
  TRY_NCCL(ncclGroupStart());
  return OK;
}

int gpus_end(struct comm *c, struct device *dev, gidx *turn)
{
  TRY_NCCL(ncclGroupEnd());
  TRY(enqueued_wait(c));
  *turn = c->gpus->turns++;
  return device_exchange_mark(dev, *turn);
}

int gpus_allgather(struct comm *c, struct device *dev, const struct buffer *own,
                   const struct buffer *all, const gidx *counts)
{
  ncclComm_t nccl = c->gpus->nccl;
  void *stream = dev->gpu.exchanges;
  char *at = all->device;
  gidx first = 0;
  for (int r = 0; r < c->rank; r++) first += counts[r];
  const void *from = own ? own->device : at + first;
  c->calls++;
  if (are_equal(counts, c->size)) {
    TRY_NCCL(ncclAllGather(from, at, (size_t)counts[0], ncclChar, nccl, stream));
    return OK;
  }
  for (int r = 0; r < c->size; at += counts[r++])
    if (counts[r] > 0)
      TRY_NCCL(ncclBroadcast(r == c->rank ? from : at, at, (size_t)counts[r], ncclChar, r, nccl,
                             stream));
  return OK;
}

int gpus_alltoallv(struct comm *c, struct device *dev, const struct buffer *mine,
                   const gidx *send_counts, const struct buffer *theirs, const gidx *recv_counts)
{
  const char *from = mine->device;
  char *to = theirs->device;
  ncclComm_t nccl = c->gpus->nccl;
  void *stream = dev->gpu.exchanges;
  c->calls++;
  for (int r = 0; r < c->size; from += send_counts[r], to += recv_counts[r], r++) {
    if (send_counts[r] > 0)
      TRY_NCCL(ncclSend(from, (size_t)send_counts[r], ncclChar, r, nccl, stream));
    if (recv_counts[r] > 0)
      TRY_NCCL(ncclRecv(to, (size_t)recv_counts[r], ncclChar, r, nccl, stream));
  }
  return OK;
}
