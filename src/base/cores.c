/* SPDX-License-Identifier: BSD-3-Clause
 * Masks come from the scheduler, quotas from control groups. */
#include "base/cores.h"

#include <errno.h>
#include <math.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/proc.h"

/* *own <- all cores of OpenMP's places, which are the cores that the process began with.  Returns 0
 * if there are no places. */
static int binding_find(cpu_set_t *own)
{
  CPU_ZERO(own);
#ifdef _OPENMP
  for (int p = 0; p < omp_get_num_places(); p++) {
    int count = omp_get_place_num_procs(p), cores[CPU_SETSIZE];
    if (count > CPU_SETSIZE) continue;
    omp_get_place_proc_ids(p, cores);
    for (int i = 0; i < count; i++)
      if (cores[i] >= 0 && cores[i] < CPU_SETSIZE) CPU_SET(cores[i], own);
  }
#endif
  return CPU_COUNT(own) > 0;
}

int cores_thread_begin(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
  cpu_set_t own;
  pthread_attr_t attributes;
  int error = EINVAL;
  /* If one of these calls fails, the thread is started with the calling thread's cores. */
  if (binding_find(&own) && pthread_attr_init(&attributes) == 0) {
    error = pthread_attr_setaffinity_np(&attributes, sizeof own, &own);
    if (!error) error = pthread_create(thread, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
  }
  return error ? pthread_create(thread, NULL, run, argument) : 0;
}

void cores_text(const cpu_set_t *set, char *text, size_t capacity)
{
  size_t used = 0;
  *text = '\0';
  for (int i = 0; i < CPU_SETSIZE; i++) {
    int first = i;
    if (!CPU_ISSET(i, set)) continue;
    while (i + 1 < CPU_SETSIZE && CPU_ISSET(i + 1, set)) i++;
    if (used + 24 > capacity) return;
    used += (size_t)snprintf(text + used, capacity - used, i > first ? "%s%d-%d" : "%s%d",
                             used ? "," : "", first, i);
  }
}

void cores_find(struct cores *c)
{
  *c = (struct cores){.quota = proc_quota("")};
  gethostname(c->host, sizeof c->host - 1);
  /* if there are places, OpenMP bound this thread to one before main() */
  c->is_placed = binding_find(&c->own);
  if (!c->is_placed && sched_getaffinity(0, sizeof c->own, &c->own)) CPU_SET(0, &c->own);
  if (sched_getaffinity(getppid(), sizeof c->launcher, &c->launcher)) c->launcher = c->own;
  CPU_OR(&c->launcher, &c->launcher, &c->own);
}

/* min(cores, quota), rounded up. */
static idx cores_limit(int cores, double quota)
{
  return (idx)fmin(cores, ceil(quota));
}

struct core_partition cores_partition(const struct cores *all, int processes, int which)
{
  const struct cores *own = &all[which];
  cpu_set_t used, present;
  int sharers[CPU_SETSIZE] = {0};
  double part = 0;
  struct core_partition s = {.own = CPU_COUNT(&own->own)};
  CPU_ZERO(&used);
  CPU_ZERO(&present);
  for (int r = 0; r < processes; r++) {
    if (strcmp(all[r].host, own->host) != 0) continue;
    s.processes++;
    CPU_OR(&used, &used, &all[r].own);
    CPU_OR(&present, &present, &all[r].launcher);
    for (int i = 0; i < CPU_SETSIZE; i++) sharers[i] += CPU_ISSET(i, &all[r].own) != 0;
  }
  for (int i = 0; i < CPU_SETSIZE; i++)
    if (CPU_ISSET(i, &own->own)) {
      part += 1.0 / sharers[i];
      s.shared += sharers[i] > 1;
    }
  s.used = cores_limit(CPU_COUNT(&used), own->quota);
  s.present = cores_limit(CPU_COUNT(&present), own->quota);
  part = fmin(part, own->quota / s.processes);
  /* + 1e-6: three thirds of a core must add up to one core */
  s.threads = (idx)imax(1, (gidx)(part + 1e-6));
  return s;
}

enum cores_verdict cores_evaluate(const struct core_partition *share, gidx threads)
{
  if (threads > share->used) return CORES_MANY;
  return 2 * threads <= share->present ? CORES_FEW : CORES_FIT;
}

idx cores_asked(const char **name)
{
  static const char *const names[] = {"OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK"};
  enum { MAX_THREADS = 4096 };
  for (int i = 0; i < 2; i++) {
    const char *text = getenv(names[i]);
    long count = text ? strtol(text, NULL, 10) : 0;
    *name = names[i];
    if (i == 1 && !getenv("SLURM_STEP_ID")) break;
    if (count > 0 && count <= MAX_THREADS) return (idx)count;
  }
  return 0;
}

void cores_json(const struct cores *all, const gidx *threads, int processes, struct json *j)
{
  char cores[1024];
  json_array(j, "seats");
  for (int r = 0; r < processes && all; r++) {
    cores_text(&all[r].own, cores, sizeof cores);
    json_object(j, NULL);
    json_long(j, "rank", r);
    json_text(j, "host", all[r].host);
    json_text(j, "cores", cores);
    if (threads) json_long(j, "threads", threads[r]);
    json_end(j);
  }
  json_end(j);
}
