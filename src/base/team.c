/* SPDX-License-Identifier: BSD-3-Clause
 * A free thread takes the next task of a loop.  Spare threads (helpers) are started when a loop
 * first needs them.  They help all loops, and end with the process. */
#include "base/team.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/cores.h"

static atomic_int spare = 1;

int team_spare(void)
{
  return spare;
}

void team_spare_set(int threads)
{
  spare = threads;
}

int team_beside(int threads)
{
  enum { FEW = 4 };
  if (threads <= FEW) return threads > 2 ? threads - 1 : threads;
  return spare < threads ? threads - spare : 1;
}

void team_run(int threads, gidx count, void (*task)(void *self, gidx i), void *self)
{
  if (threads > count) threads = count > 1 ? (int)count : 1; /* waking others takes time */
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (gidx i = 0; i < count; i++) task(self, i);
}

static struct {
  pthread_mutex_t mutex;
  pthread_cond_t come;      /* a loop wants a helper */
  struct spare_loop *first; /* of the loops in progress */
  /* number of helper threads; number of helpers that the loops in progress want */
  int threads, asked;
} helpers = {.mutex = PTHREAD_MUTEX_INITIALIZER, .come = PTHREAD_COND_INITIALIZER};

static void loop_help(struct spare_loop *l)
{
  for (gidx i; (i = l->next++) < l->count;) l->task(l->self, i);
}

static void *helper_main(void *unused)
{
  pthread_mutex_lock(&helpers.mutex);
  for (;;) {
    struct spare_loop *l = helpers.first;
    while (l && l->wanted == 0) l = l->after;
    if (!l) {
      pthread_cond_wait(&helpers.come, &helpers.mutex);
      continue;
    }
    l->wanted--;
    l->inside++;
    pthread_mutex_unlock(&helpers.mutex);
    loop_help(l);
    pthread_mutex_lock(&helpers.mutex);
    if (--l->inside == 0) pthread_cond_signal(&l->left);
  }
  return unused;
}

/* With the mutex held: let helpers join a loop.  Helper threads are started until there are as many
 * as all loops in progress want together, but at most twice as many as this loop wants.  If there
 * are no helpers, the caller does the whole loop. */
static void loop_begin(struct spare_loop *l)
{
  helpers.asked += l->most;
  for (; helpers.threads < helpers.asked && helpers.threads < 2 * l->most; helpers.threads++) {
    pthread_t thread;
    if (cores_thread_begin(&thread, helper_main, NULL)) break;
    pthread_detach(thread);
  }
  l->after = helpers.first;
  helpers.first = l;
  for (int i = 0; i < l->wanted; i++) pthread_cond_signal(&helpers.come);
}

/* With the mutex held: let no further helper join, and wait for the helpers that are at work. */
static void loop_end(struct spare_loop *l)
{
  struct spare_loop **at = &helpers.first;
  while (*at != l) at = &(*at)->after;
  *at = l->after;
  helpers.asked -= l->most;
  while (l->inside > 0) pthread_cond_wait(&l->left, &helpers.mutex);
}

/* Start a loop with at most `most` helpers, and wake them. */
static void loop_start(struct spare_loop *l, gidx most)
{
  l->wanted = l->most = most > 0 ? (int)most : 0;
  if (l->most == 0) return;
  pthread_cond_init(&l->left, NULL);
  pthread_mutex_lock(&helpers.mutex);
  loop_begin(l);
  pthread_mutex_unlock(&helpers.mutex);
}

void spare_begin(struct spare_loop *l, gidx count, void (*task)(void *self, gidx i), void *self)
{
  *l = (struct spare_loop){.task = task, .self = self, .count = count};
  loop_start(l, spare - 1 < count ? spare - 1 : count);
}

void spare_end(struct spare_loop *l)
{
  loop_help(l);
  if (l->most == 0) return;
  pthread_mutex_lock(&helpers.mutex);
  loop_end(l);
  pthread_mutex_unlock(&helpers.mutex);
  pthread_cond_destroy(&l->left);
}

void spare_run(gidx count, void (*task)(void *self, gidx i), void *self)
{
  struct spare_loop l = {.task = task, .self = self, .count = count};
  loop_start(&l, (spare < count ? spare : count) - 1);
  spare_end(&l);
}
