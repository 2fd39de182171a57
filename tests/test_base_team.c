/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: loops on spare threads do each task once, and have done all tasks when they return, even
 * if several run at a time or one runs inside another.  They never take more threads than are
 * spare.  Spare threads run on all cores of the process, although OpenMP has bound the main thread
 * to one. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/team.h"
#include "tap.h"

enum { CALLERS = 4, TURNS = 300, TASKS = 97 };

struct loop_test {
  int done[TASKS]; /* not atomic, because tasks have written them when the loop returns */
  atomic_int inside, most;
  int inner, expected;      /* tasks of an inner loop; threads for which a task waits */
  struct loop_test *within; /* [TASKS] of inner loops */
};

static void task(void *self, gidx i)
{
  struct loop_test *t = self;
  int inside = ++t->inside, most = t->most;
  while (inside > most && !atomic_compare_exchange_weak(&t->most, &most, inside)) continue;
  for (int turn = 0; turn < 5000 && t->most < t->expected; turn++) usleep(1000);
  if (t->expected) usleep(2000); /* so that one thread too many would be counted */
  if (t->within && i % 16 == 0) spare_run(t->inner, task, &t->within[i]);
  t->done[i]++;
  t->inside--;
}

static int is_done(const struct loop_test *t, int count, int times)
{
  for (int i = 0; i < TASKS; i++)
    if (t->done[i] != (i < count ? times : 0)) return 0;
  return t->inside == 0;
}

/* One of several threads that run loops at the same time. */
static void *caller(void *wrong)
{
  struct loop_test *t = malloc((TASKS + 1) * sizeof *t);
  for (int turn = 0; turn < TURNS; turn++) {
    int count = turn % (TASKS + 1), inner = turn % 5;
    for (int i = 0; i <= TASKS; i++) t[i] = (struct loop_test){.most = 0};
    t[0].within = t + 1;
    t[0].inner = inner;
    spare_run(count, task, t);
    int right = is_done(t, count, 1);
    for (int i = 0; i < TASKS; i++)
      right &= is_done(t + 1 + i, i % 16 == 0 && i < count ? inner : 0, 1);
    if (!right) ++*(atomic_int *)wrong;
  }
  free(t);
  return NULL;
}

static void callers_test(int spare)
{
  pthread_t threads[CALLERS];
  atomic_int wrong = 0;
  team_spare_set(spare);
  for (int i = 0; i < CALLERS; i++) pthread_create(&threads[i], NULL, caller, &wrong);
  for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
  ok(wrong == 0, "%d spare: %d of %d loops in %d threads did not do each task once", spare, wrong,
     CALLERS * TURNS, CALLERS);
}

/* A loop whose tasks wait until the expected number of threads is there. */
static void most_test(int spare, int count, int expected)
{
  struct loop_test t = {.expected = expected};
  team_spare_set(spare);
  spare_run(count, task, &t);
  ok(is_done(&t, count, 1) && t.most == expected, "%d spare: %d tasks by %d threads, %d expected",
     spare, count, t.most, expected);
}

/* A loop that was begun is run by spare threads; if there are none, by the thread that ends it. */
static void begin_test(int spare, int count)
{
  struct loop_test t = {.most = 0};
  struct spare_loop loop;
  int early = 0;
  team_spare_set(spare);
  spare_begin(&loop, count, task, &t);
  for (int turn = 0; turn < 5000 && spare > 1 && loop.next < count; turn++) usleep(1000);
  early = (int)loop.next;
  spare_end(&loop);
  ok(is_done(&t, count, 1) && (spare > 1 ? early >= count : early == 0),
     "%d spare: %d of %d tasks were begun before the end", spare, early, count);
}

static int begun; /* number of cores of the process when it started */

static void mask_look(void *same, gidx i)
{
  cpu_set_t own;
  sched_getaffinity(0, sizeof own, &own);
  ((int *)same)[i] = CPU_COUNT(&own) == begun;
  usleep(2000);
}

static void *mask_caller(void *same)
{
  spare_run(20, mask_look, same);
  return NULL;
}

/* This runs before any other loop, because helper threads stay.  A bound thread starts them. */
static void mask_test(void)
{
  int same[20] = {0}, unbound = 0;
  pthread_t thread;
  struct cores cores;
  cores_find(&cores);
  ok(CPU_COUNT(&cores.own) == begun && cores.is_placed,
     "a bound process still sees %d cores, of %d", CPU_COUNT(&cores.own), begun);
  team_spare_set(4);
  pthread_create(&thread, NULL, mask_caller, same);
  pthread_join(thread, NULL);
  for (int i = 0; i < 20; i++) unbound += same[i];
  ok(unbound > 0, "%d of 20 tasks may run on all %d cores", unbound, begun);
}

static void beside_test(int spare, int threads, int expected)
{
  team_spare_set(spare);
  int found = team_beside(threads);
  ok(found == expected, "%d spare of %d threads leave a team of %d", spare, threads, found);
}

/* OpenMP reads its variables, and binds this thread, before main(). */
static void begin_bound(void)
{
  cpu_set_t own;
  char count[24];
  if (!getenv("TEST_CORES")) {
    sched_getaffinity(0, sizeof own, &own);
    snprintf(count, sizeof count, "%d", CPU_COUNT(&own));
    setenv("TEST_CORES", count, 1);
    setenv("OMP_PROC_BIND", "true", 1);
    execl("/proc/self/exe", "test_base_team", (char *)NULL);
  }
  begun = atoi(getenv("TEST_CORES"));
}

int main(void)
{
  static const int spares[] = {1, 2, 3, 16, 5};
  begin_bound();
  mask_test();
  claim_begin("loops that run at a time do each of their tasks once");
  for (int i = 0; i < (int)(sizeof spares / sizeof *spares); i++) callers_test(spares[i]);
  claim_end();
  claim_begin("all spare threads are used, but no more than there are tasks");
  most_test(1, 20, 1);
  most_test(4, 40, 4);
  most_test(16, 5, 5);
  most_test(3, 60, 3);
  most_test(3, 0, 0);
  claim_end();
  claim_begin("a loop that was begun runs while its caller continues");
  begin_test(1, 20);
  begin_test(2, 1);
  begin_test(4, 60);
  begin_test(4, 0);
  claim_end();
  claim_begin("a team leaves cores to spare threads");
  beside_test(1, 1, 1);
  beside_test(1, 2, 2);
  beside_test(2, 3, 2);
  beside_test(2, 4, 3);
  beside_test(3, 5, 2);
  beside_test(8, 16, 8);
  beside_test(9, 8, 1);
  claim_end();
  return done_testing();
}
