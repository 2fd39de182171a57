/* SPDX-License-Identifier: BSD-3-Clause
 * Which cores a process may use, and how the processes of a job share those of a machine.
 *
 * Floor: base.  The rules are arithmetic on masks; threads never change a bit of a result. */
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
  cpu_set_t own;      /* cores that it may run on */
  cpu_set_t launcher; /* cores that its launcher may run on: more if the launcher bound it */
  int is_placed;      /* OpenMP binds its threads, each to a part of `own` */
  double quota;       /* number of cores' time that its control group may use; INFINITY: no limit */
};
/* Not collective.  What cannot be found out counts as no limit. */
void cores_find(struct cores *c);

/* Write an array of all[processes], with threads[processes]; both may be NULL. */
void cores_json(const struct cores *all, const gidx *threads, int processes, struct json *j);

/* The part of one process among all those of a job. */
struct core_partition {
  idx processes; /* on its machine */
  idx own;       /* cores that it may run on */
  idx shared;    /* of these, cores that others may run on, too */
  idx used;      /* cores that any process of the machine may run on, at most the quota */
  idx present;   /* cores that their launcher may run on, at most the quota */
  idx threads;   /* its part: each core is divided equally among the processes that may run on it */
};
struct core_partition cores_partition(const struct cores *all, int processes, int which);

/* Do so many threads on one machine fit its cores?  MANY: more threads than cores.  FEW: half of
 * the cores or more have no thread. */
enum cores_verdict { CORES_FIT, CORES_MANY, CORES_FEW };
enum cores_verdict cores_evaluate(const struct core_partition *share, gidx threads);

/* pthread_create() of a thread that may run on all cores of the process, even if OpenMP has bound
 * the calling thread (OMP_PROC_BIND, OMP_PLACES).  The new thread does not call OpenMP: it may
 * begin while the process ends, and LLVM's OpenMP then fails.  Returns 0 or an errno. */
int cores_thread_begin(pthread_t *thread, void *(*run)(void *argument), void *argument);

/* The number of threads that the environment asks for, and *name <- the variable; 0: none.  The
 * variables are OMP_NUM_THREADS, and in a step of Slurm SLURM_CPUS_PER_TASK. */
idx cores_asked(const char **name);

#endif
