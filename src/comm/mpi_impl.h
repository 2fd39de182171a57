/* SPDX-License-Identifier: BSD-3-Clause
 * The state of a communicator, and how collective operations call MPI.
 *
 * Floor: comm; included by src/comm only, where MPI is used.
 *
 * The thread that computes and the thread of watch.h both call MPI (MPI_THREAD_SERIALIZED), so a
 * mutex is held around every call that communicates, except MPI_Abort.  An operation does not block
 * in a call: it posts a non-blocking collective with the mutex held, then tests it repeatedly, and
 * releases the mutex in between.  The calls that block are MPI_Init_thread, MPI_Finalize, and those
 * that make or free communicators or shared memory. */
#ifndef COMM_MPI_IMPL_H
#define COMM_MPI_IMPL_H

#include <mpi.h>
#include <pthread.h>

#include "base/log.h"
#include "base/status.h"
#include "comm/comm_impl.h"
#include "comm/watch.h"

/* Work space of operations for `ranks` ranks, allocated when the communicator is made. */
struct comm_scratch {
  gidx *numbers;         /* [3 ranks] */
  int *ints;             /* [4 ranks] */
  MPI_Datatype *types;   /* [2 ranks] */
  MPI_Request *requests; /* [ranks] */
  double *bytes;         /* [ranks] */
};
int comm_scratch_alloc(struct comm_scratch *s, int ranks);
void comm_scratch_free(struct comm_scratch *s);

struct comm_state {
  MPI_Comm world;       /* for collectives of these ranks: a duplicate of MPI_COMM_WORLD, or a part
                         * of it */
  MPI_Comm ring;        /* a second duplicate of MPI_COMM_WORLD, for signs of life; only in the
                         * communicator of all ranks */
  pthread_mutex_t *mpi; /* held around MPI calls; `own` of the communicator of all ranks */
  pthread_mutex_t own;  /* used only in the communicator of all ranks */
  struct watch watch;
  struct comm_scratch scratch;
};

/* The largest number of items in one call of MPI, INT_MAX; tests make it small. */
extern gidx comm_most;

/* Record MPI's text for an error as the failure's message; returns ERR_COMM. */
int mpi_fail(int error, const char *file, int line);

#define TRY_MPI(call)                                                                              \
  do {                                                                                             \
    int mpi_ = (call);                                                                             \
    if (mpi_) return mpi_fail(mpi_, __FILE__, __LINE__);                                           \
  } while (0)

/* Wait until a posted operation is done, and add the time since `begun` to c->seconds.  `bytes` is
 * how much it moves through this rank.  The wait polls for as long as moving these bytes may take,
 * because a long message travels in pieces, and each piece waits for a call of the library.  After
 * that time, or with bytes 0, the wait sleeps between tests. */
int mpi_wait(struct comm *c, MPI_Request *request, double begun, double bytes);

/* Post a non-blocking operation, whose request is called request_, and wait for it. */
#define POST_BYTES(bytes, call)                                                                    \
  do {                                                                                             \
    double begun_ = log_seconds();                                                                 \
    MPI_Request request_;                                                                          \
    c->calls++;                                                                                    \
    pthread_mutex_lock(c->state->mpi);                                                             \
    int error_ = (call);                                                                           \
    pthread_mutex_unlock(c->state->mpi);                                                           \
    if (error_) return comm_lose(c, mpi_fail(error_, __FILE__, __LINE__));                         \
    TRY(mpi_wait(c, &request_, begun_, bytes));                                                    \
  } while (0)
#define POST(call) POST_BYTES(0, call)

#endif
