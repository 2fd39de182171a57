/* SPDX-License-Identifier: BSD-3-Clause
 * Which cores a process may use, and how the processes of a job share the cores of a machine.
 *
 * Floor: base.  Sets of cores are bit masks.  The number of threads never changes a bit of a
 * result. */
#ifndef BASE_CORES_H
#define BASE_CORES_H

#include <pthread.h>
#include <sched.h>

#include "base/json.h"
#include "base/types.h"

/* text[capacity] <- the cores of a set, as "0-3,8". */
void cores_text(const cpu_set_t *set, char *text, size_t capacity);

/* What a process sees of its machine. */
struct cores {
  char host[64];
  cpu_set_t own; /* cores that it may run on */
  /* the cores that its launcher may run on, together with `own`; these are more than `own` if the
   * launcher bound the process to some of its cores */
  cpu_set_t launcher;
  int is_placed; /* OpenMP binds its threads, each to a part of `own` */
  /* limit of its control groups on CPU seconds per second; INFINITY: no limit */
  double quota;
};
/* Not collective.  A quota that cannot be read counts as no limit.  If the cores of the launcher
 * cannot be read, the cores of this process are taken for them. */
void cores_find(struct cores *c);

/* Write an array with the cores of all[processes] and with threads[processes]; either may be
 * NULL. */
void cores_json(const struct cores *all, const gidx *threads, int processes, struct json *j);

/* The part of the machine that one process of a job has. */
struct core_partition {
  idx processes; /* processes of the job on its machine */
  idx own;       /* cores that it may run on */
  idx shared;    /* of these, cores that other processes of the job may run on, too */
  idx used;      /* cores that the job's processes on the machine may run on, at most the quota */
  idx present;   /* cores that their launcher may run on, at most the quota */
  idx threads;   /* its part, at least 1: each core is divided equally among the job's processes
                  * that may run on it, and the quota among all these processes of the machine */
};
struct core_partition cores_partition(const struct cores *all, int processes, int which);

/* Does a number of threads fit the cores of a machine?  MANY: more threads than used cores.  FEW:
 * at least half of the present cores have no thread. */
enum cores_verdict { CORES_FIT, CORES_MANY, CORES_FEW };
enum cores_verdict cores_evaluate(const struct core_partition *share, gidx threads);

/* pthread_create() of a thread that may run on all cores of the process, even if OpenMP has bound
 * the calling thread (OMP_PROC_BIND, OMP_PLACES).  The new thread must not call OpenMP: it may
 * begin while the process ends, and LLVM's OpenMP then fails.  Returns 0 or an errno. */
int cores_thread_begin(pthread_t *thread, void *(*run)(void *argument), void *argument);

/* Returns the number of threads that an environment variable asks for; *name <- the variable; 0:
 * none does.  The variables are OMP_NUM_THREADS, and then, in a step of Slurm,
 * SLURM_CPUS_PER_TASK. */
idx cores_asked(const char **name);

#endif
