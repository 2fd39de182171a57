/* SPDX-License-Identifier: BSD-3-Clause
 * The thread repeats three things: it waits, sends all replies that are ready, and receives some
 * messages. */
#include "serve/front.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/status.h"
#include "serve/handle.h"
#include "serve/report.h"

enum { WAIT = 100, AT_ONCE = 64 };   /* ms per wait; most messages between sends of replies */
enum { QUIET = 100, LATEST = 1000 }; /* ms: see loop() */

/* *came <- 1 if there was a message. */
static int messages_receive(struct front *f, int *came)
{
  *came = 0;
  for (int i = 0; i < AT_ONCE; i++) {
    struct net_message message;
    int is_there;
    TRY(net_receive(f->net, &message, &is_there));
    if (!is_there) return OK;
    *came = 1;
    TRY(message_handle(f, &message));
  }
  return OK;
}

int front_send(struct front *f, const struct net_peer *peer, void *data, size_t bytes,
               struct unread *unread)
{
  int is_lost = 0;
  TRY(net_send(f->net, peer, data, bytes, unread, &is_lost));
  if (!is_lost) return OK;
  pthread_mutex_lock(&f->lock);
  f->counts.lost++;
  pthread_mutex_unlock(&f->lock);
  return OK;
}

/* Send all replies that are ready.  The queue is taken as a whole, so that the lock is not held
 * while replies are sent. */
static int replies_send(struct front *f)
{
  pthread_mutex_lock(&f->lock);
  struct request_queue done = f->done;
  f->done = (struct request_queue){0};
  pthread_mutex_unlock(&f->lock);
  while (done.first) {
    struct request *r = queue_take(&done, NULL);
    struct client *client = clients_known(&f->clients, &r->peer);
    size_t bytes;
    unsigned char *data = request_reply(r, r->header.step, &bytes);
    if (client) client->waiting--, client->owed -= r->reply_bytes;
    f->owed -= r->reply_bytes;
    front_count(f, r);
    if (data) TRY(front_send(f, &r->peer, data, bytes, client ? client->unread : NULL));
    request_free(r);
  }
  return OK;
}

/* Requests that were on their way when the server closed are refused, too: the thread ends when no
 * message came for QUIET ms, and at the latest LATEST ms after front_close(). */
static int loop(struct front *f)
{
  const uint64_t ms = 1000000;
  for (uint64_t over = 0, last = 0;;) { /* ns: when the end began, and when a message came last */
    uint64_t ignored, now = clock_ns();
    int came;
    pthread_mutex_lock(&f->lock);
    int is_over = f->is_over && !f->done.first;
    pthread_mutex_unlock(&f->lock);
    if (is_over && !over)
      over = last = now;
    else if (is_over && (now - last >= QUIET * ms || now - over >= LATEST * ms))
      return OK;
    TRY(net_wait(f->net, f->wake, WAIT));
    if (read(f->wake, &ignored, sizeof ignored) < 0) ignored = 0; /* no thread woke this one */
    TRY(replies_send(f));
    TRY(messages_receive(f, &came));
    if (came) last = clock_ns();
  }
}

static int thread_run(void *argument)
{
  struct front *f = argument;
  int status = loop(f);
  pthread_mutex_lock(&f->lock);
  f->failed = status;
  pthread_cond_signal(&f->changed);
  pthread_mutex_unlock(&f->lock);
  return status;
}

/* Wake the thread. */
static void front_wake(const struct front *f)
{
  const uint64_t one = 1;
  if (write(f->wake, &one, sizeof one) < 0) return; /* the count is full: the thread will wake */
}

int front_open(struct front *f)
{
  pthread_condattr_t even;
  pthread_condattr_init(&even);
  pthread_condattr_setclock(&even, CLOCK_MONOTONIC);
  pthread_cond_init(&f->changed, &even);
  pthread_condattr_destroy(&even);
  pthread_mutex_init(&f->lock, NULL);
  pthread_cond_init(&f->returned, NULL);
  f->begun = clock_ns();
  f->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  CHECK(f->wake >= 0, ERR_MEMORY, "cannot make an event");
  TRY(clients_init(&f->clients));
  TRY(net_open(&f->net, &f->net_options));
  TRY(worker_open(&f->worker));
  return worker_start(&f->worker, thread_run, f);
}

int front_close(struct front *f)
{
  pthread_mutex_lock(&f->lock);
  f->is_over = 1;
  pthread_mutex_unlock(&f->lock);
  front_wake(f);
  TRY(worker_wait(&f->worker));
  worker_close(&f->worker);
  net_close(f->net);
  close(f->wake);
  return OK;
}

void front_free(struct front *f)
{
  clients_free(&f->clients);
  streams_free(&f->streams);
  pthread_cond_destroy(&f->changed);
  pthread_cond_destroy(&f->returned);
  pthread_mutex_destroy(&f->lock);
}

int front_check(struct front *f)
{
  pthread_mutex_lock(&f->lock);
  int failed = f->failed;
  pthread_mutex_unlock(&f->lock);
  return failed ? worker_wait(&f->worker) : OK;
}

int front_wait(struct front *f, int milliseconds)
{
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += milliseconds * 1000000L;
  until.tv_sec += until.tv_nsec / 1000000000L;
  until.tv_nsec %= 1000000000L;
  pthread_mutex_lock(&f->lock);
  if (!f->live.first && !f->bulk.first && !f->held.first && !f->pieces && !f->failed)
    pthread_cond_timedwait(&f->changed, &f->lock, &until);
  pthread_mutex_unlock(&f->lock);
  return front_check(f);
}

void front_answer(struct front *f, struct request_queue *done, uint64_t step)
{
  pthread_mutex_lock(&f->lock);
  while (done->first) {
    struct request *r = queue_take(done, NULL);
    stream_answered(&f->streams, r);
    r->header.step = step;
    queue_add(&f->done, r);
  }
  pthread_mutex_unlock(&f->lock);
  front_wake(f);
}
