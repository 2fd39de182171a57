/* SPDX-License-Identifier: BSD-3-Clause
 * A sign is one byte, sent and received by non-blocking calls, which are tested once per period of
 * the watchdog.  Waiting for the next sign is a step of the watchdog.  So the watchdog also finds a
 * library that hangs, or a thread that hangs while it holds the mutex. */
#include "comm/watch.h"

#include <stdio.h>
#include <time.h>

#include "base/status.h"
#include "base/thread.h"
#include "base/types.h"
#include "base/watchdog.h"

static void sign_expect(struct watch *w, char *sign, MPI_Request *expected)
{
  MPI_Irecv(sign, 1, MPI_CHAR, (w->rank + w->size - 1) % w->size, 0, w->ring, expected);
}

/* Send a sign, unless the last one is still being sent.  Receive all signs that have come; returns
 * 1 if any has come.  mail[2]: the sign to send, and the received sign. */
static int signs_exchange(struct watch *w, char *mail, MPI_Request *sent, MPI_Request *expected)
{
  int done = 0, heard = 0;
  pthread_mutex_lock(w->mpi);
  MPI_Test(sent, &done, MPI_STATUS_IGNORE);
  if (done) MPI_Isend(&mail[0], 1, MPI_CHAR, (w->rank + 1) % w->size, 0, w->ring, sent);
  for (;;) {
    MPI_Test(expected, &done, MPI_STATUS_IGNORE);
    if (!done) break;
    heard = 1;
    sign_expect(w, &mail[1], expected);
  }
  pthread_mutex_unlock(w->mpi);
  return heard;
}

/* Sleep for a period, or until watch_end().  The caller holds w->lock. */
static void period_wait(struct watch *w)
{
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  gidx ns = until.tv_nsec + (gidx)(watchdog_period() * 1e9);
  until.tv_sec += (time_t)(ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  pthread_cond_timedwait(&w->wake, &w->lock, &until);
}

/* Free both requests: the sign sent last may never be received, and the expected one may never
 * come. */
static void requests_free(struct watch *w, MPI_Request *sent, MPI_Request *expected)
{
  pthread_mutex_lock(w->mpi);
  MPI_Cancel(expected);
  MPI_Request_free(expected);
  if (*sent != MPI_REQUEST_NULL) MPI_Request_free(sent);
  pthread_mutex_unlock(w->mpi);
}

static void *watch_main(void *argument)
{
  struct watch *w = argument;
  char mail[2] = {0};
  MPI_Request sent = MPI_REQUEST_NULL, expected;
  pthread_mutex_lock(w->mpi);
  sign_expect(w, &mail[1], &expected);
  pthread_mutex_unlock(w->mpi);
  int step = watchdog_begin(ERR_COMM, w->sign, NULL);
  pthread_mutex_lock(&w->lock);
  while (!w->quit) {
    pthread_mutex_unlock(&w->lock);
    if (signs_exchange(w, mail, &sent, &expected)) {
      watchdog_end(step);
      step = watchdog_begin(ERR_COMM, w->sign, NULL);
    }
    pthread_mutex_lock(&w->lock);
    if (!w->quit) period_wait(w);
  }
  pthread_mutex_unlock(&w->lock);
  watchdog_end(step);
  requests_free(w, &sent, &expected);
  return NULL;
}

int watch_start(struct watch *w)
{
  pthread_condattr_t monotonic;
  snprintf(w->sign, sizeof w->sign, "a sign of life of rank %d", (w->rank + w->size - 1) % w->size);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->wake, &monotonic);
  pthread_condattr_destroy(&monotonic);
  int error = pthread_create(&w->thread, NULL, watch_main, w);
  if (error) return thread_fail("the thread that watches the peers", error);
  w->is_running = 1;
  return OK;
}

void watch_end(struct watch *w)
{
  if (!w->is_running) return;
  pthread_mutex_lock(&w->lock);
  w->quit = 1;
  pthread_cond_signal(&w->wake);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
  w->is_running = 0;
}
