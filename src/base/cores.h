/* SPDX-License-Identifier: BSD-3-Clause
 * Which cores a process may use, and how the processes of a job share those of a machine.
 *
 * Floor: base.  The rules are arithmetic on masks; threads never change a bit of a result. */
#ifndef BASE_CORES_H
#define BASE_CORES_H

#include <pthread.h>
#include <sched.h>

#include "base/types.h"

/* text[capacity] <- the cores of a set, as "0-3,8". */
void cores_text(const cpu_set_t *set, char *text, size_t capacity);

/* What a process sees of its machine. */
struct cores {
  char host[64];
  cpu_set_t own;      /* it may run on these */
  cpu_set_t launcher; /* and the process that started it on these: more when it was bound */
  int is_placed;      /* OpenMP binds its threads, each to a part of these */
  double quota;       /* cores' worth of time that its group has; INFINITY: no limit */
};
/* Not collective; where something cannot be found out there is no limit. */
void cores_find(struct cores *c);

/* The share of one process among all those of a job. */
struct core_partition {
  idx processes; /* on its machine */
  idx own;       /* cores that it may run on */
  idx shared;    /* of these, that others may run on too */
  idx used;      /* cores that some process of the machine may run on, at most the quota */
  idx present;   /* cores that their launcher may run on, at most the quota */
  idx threads;   /* its part: a core goes in equal parts to the processes that may run on it */
};
struct core_partition cores_partition(const struct cores *all, int processes, int which);

/* Do so many threads on one machine fit its cores?  FEW: half of the cores or more have none. */
enum cores_verdict { CORES_FIT, CORES_MANY, CORES_FEW };
enum cores_verdict cores_evaluate(const struct core_partition *share, gidx threads);

/* pthread_create() of a thread that may run on all cores of the process, although OpenMP may have
 * bound the one that calls (OMP_PROC_BIND, OMP_PLACES).  The new one does not ask OpenMP: it may
 * begin when the process ends, and LLVM's then fails.  Returns 0 or an errno. */
int cores_thread_begin(pthread_t *thread, void *(*run)(void *argument), void *argument);

/* The number of threads that the environment asks for, and *name <- the variable; 0: none.
 * OMP_NUM_THREADS counts, and in a step of Slurm SLURM_CPUS_PER_TASK. */
idx cores_asked(const char **name);

#endif
