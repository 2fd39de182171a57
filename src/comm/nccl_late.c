/* SPDX-License-Identifier: BSD-3-Clause
 * The library is opened at the first call of any function; functions are looked up by name. */
#include "comm/nccl_late.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;

static void library_open(void)
{
  library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
}

static void *function(const char *name)
{
  pthread_once(&once, library_open);
  return library ? dlsym(library, name) : NULL;
}

#define FORWARD(name, parameters, arguments)                                                       \
  ncclResult_t name parameters                                                                     \
  {                                                                                                \
    ncclResult_t(*call) parameters;                                                                \
    void *found = function(#name);                                                                 \
    memcpy(&call, &found, sizeof call);                                                            \
    return call ? call arguments : ncclSystemError;                                                \
  }

FORWARD(ncclAllGather,
        (const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
         ncclComm_t comm, cudaStream_t stream),
        (sendbuff, recvbuff, sendcount, datatype, comm, stream))
FORWARD(ncclBroadcast,
        (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
         ncclComm_t comm, cudaStream_t stream),
        (sendbuff, recvbuff, count, datatype, root, comm, stream))
FORWARD(ncclCommAbort, (ncclComm_t comm), (comm))
FORWARD(ncclCommDestroy, (ncclComm_t comm), (comm))
FORWARD(ncclCommFinalize, (ncclComm_t comm), (comm))
FORWARD(ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *asyncError), (comm, asyncError))
FORWARD(ncclCommInitRankConfig,
        (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config),
        (comm, nranks, commId, rank, config))
FORWARD(ncclGetUniqueId, (ncclUniqueId * uniqueId), (uniqueId))
FORWARD(ncclGetVersion, (int *version), (version))
FORWARD(ncclGroupEnd, (void), ())
FORWARD(ncclGroupStart, (void), ())
FORWARD(ncclRecv,
        (void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
         cudaStream_t stream),
        (recvbuff, count, datatype, peer, comm, stream))
FORWARD(ncclSend,
        (const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
         cudaStream_t stream),
        (sendbuff, count, datatype, peer, comm, stream))

const char *ncclGetErrorString(ncclResult_t result)
{
  const char *(*call)(ncclResult_t);
  void *found = function("ncclGetErrorString");
  memcpy(&call, &found, sizeof call);
  return call ? call(result) : "there is no libnccl.so.2";
}
