/* SPDX-License-Identifier: BSD-3-Clause
 * A thread, a mutex and a condition variable.  The message of a failed job is copied to the thread
 * that waits for it. */
#include "base/worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/status.h"
#include "base/thread.h"

struct worker_state {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t change;
  int (*job)(void *);
  void *argument;
  int busy, quit;
  int status;
  char message[2048];
};

static void *worker_main(void *argument)
{
  struct worker_state *s = argument;
  pthread_mutex_lock(&s->mutex);
  for (;;) {
    while (!s->quit && !(s->busy && s->job)) pthread_cond_wait(&s->change, &s->mutex);
    if (s->quit) break;
    int (*job)(void *) = s->job;
    s->job = NULL;
    pthread_mutex_unlock(&s->mutex);
    status_clear();
    int status = job(s->argument);
    pthread_mutex_lock(&s->mutex);
    s->status = status;
    strncpy(s->message, status_message(), sizeof s->message - 1);
    s->busy = 0;
    pthread_cond_broadcast(&s->change);
  }
  pthread_mutex_unlock(&s->mutex);
  return NULL;
}

int worker_open(struct worker *w)
{
  struct worker_state *s = w->state = calloc(1, sizeof *s);
  CHECK(s, ERR_MEMORY, "cannot allocate a worker");
  pthread_mutex_init(&s->mutex, NULL);
  pthread_cond_init(&s->change, NULL);
  int error = cores_thread_begin(&s->thread, worker_main, s);
  if (error) {
    free(s);
    w->state = NULL;
    return thread_fail("a thread that works beside the main one", error);
  }
  return OK;
}

int worker_start(struct worker *w, int (*job)(void *argument), void *argument)
{
  struct worker_state *s = w->state;
  pthread_mutex_lock(&s->mutex);
  int busy = s->busy;
  if (!busy) {
    s->job = job;
    s->argument = argument;
    s->busy = 1;
    pthread_cond_broadcast(&s->change);
  }
  pthread_mutex_unlock(&s->mutex);
  CHECK(!busy, ERR_INTERNAL, "the worker is busy");
  return OK;
}

int worker_is_busy(struct worker *w)
{
  struct worker_state *s = w->state;
  pthread_mutex_lock(&s->mutex);
  int busy = s->busy;
  pthread_mutex_unlock(&s->mutex);
  return busy;
}

int worker_wait(struct worker *w)
{
  struct worker_state *s = w->state;
  pthread_mutex_lock(&s->mutex);
  while (s->busy) pthread_cond_wait(&s->change, &s->mutex);
  int status = s->status;
  s->status = OK;
  pthread_mutex_unlock(&s->mutex);
  return status ? status_set(status, s->message) : OK;
}

int worker_run(struct worker *w, int (*job)(void *argument), void *argument)
{
  TRY(worker_start(w, job, argument));
  return worker_wait(w);
}

void worker_close(struct worker *w)
{
  struct worker_state *s = w->state;
  if (!s) return;
  pthread_mutex_lock(&s->mutex);
  while (s->busy) pthread_cond_wait(&s->change, &s->mutex);
  s->quit = 1;
  pthread_cond_broadcast(&s->change);
  pthread_mutex_unlock(&s->mutex);
  pthread_join(s->thread, NULL);
  pthread_mutex_destroy(&s->mutex);
  pthread_cond_destroy(&s->change);
  free(s);
  w->state = NULL;
}
