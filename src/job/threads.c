/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank gathers what all ranks see of their machines when the job begins.  Rank 0 reports and
 * warns. */
#include "job/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"

int threads_open(struct comm *c, struct cores **all)
{
  struct cores own;
  cores_find(&own);
  idx *counts = malloc((size_t)c->size * sizeof *counts);
  *all = calloc((size_t)c->size, sizeof **all);
  int status = OK;
  if (!counts || !*all)
    status = status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate the cores of %d ranks",
                         c->size);
  TRY(comm_agree(c, status));
  for (int r = 0; r < c->size; r++) counts[r] = 1;
  TRY(comm_allgather(c, &own, counts, sizeof own, *all));
  free(counts);
  return OK;
}

/* *by <- what determines the number: an option, a variable, or the cores. */
static int threads_choose(const struct run *run, idx option, const char **by)
{
  *by = "--threads";
  if (option > 0) return option;
  idx asked = cores_asked(by);
  if (asked > 0) return asked;
  *by = "cores";
  return cores_partition(run->cores, run->comm.size, run->comm.rank).threads;
}

int threads_default(const struct run *run, idx option)
{
  const char *by;
  return threads_choose(run, option, &by);
}

/* Is this rank the first of its machine?  *sum <- the threads of the machine's ranks. */
static int machine_begins(const struct run *run, int rank, const gidx *threads, gidx *sum)
{
  *sum = 0;
  for (int r = 0; r < run->comm.size; r++) {
    if (strcmp(run->cores[r].host, run->cores[rank].host) != 0) continue;
    if (r < rank) return 0;
    *sum += threads[r];
  }
  return 1;
}

static void machine_warn(const struct cores *machine, const struct core_partition *s, gidx threads,
                         int is_asked)
{
  const char *host = machine->host;
  enum cores_verdict verdict = cores_evaluate(s, threads);
  idx each = s->used / s->processes;
  if (verdict == CORES_MANY && each > 0)
    log_warn("%lld threads take turns on the %d cores of '%s': give --threads %d",
             (long long)threads, s->used, host, each);
  else if (verdict == CORES_MANY)
    log_warn("%d ranks take turns on the %d cores of '%s': start at most %d there", s->processes,
             s->used, host, s->used);
  if (machine->is_placed && s->shared > 0)
    log_warn("OpenMP binds the threads of each of the %d ranks on '%s' to the same cores: unset "
             "OMP_PROC_BIND and OMP_PLACES, or start them with `mpirun --map-by slot:PE=%d`",
             s->processes, host, (idx)imax(1, s->used / s->processes));
  /* Nothing is said to a user who chose the cores: by a number, or by starting one process by
   * hand. */
  if (verdict == CORES_FEW && !is_asked && getenv("OMPI_COMM_WORLD_SIZE"))
    log_warn("the ranks are bound to %d of the %d cores of '%s': start them with `mpirun --bind-to "
             "none` or `mpirun --map-by slot:PE=%d`",
             s->used, s->present, host, s->present / s->processes);
}

/* If there are several machines, log which ranks are on each; if that does not fit a line, only the
 * first machines. */
static void seats_log(const struct run *run)
{
  int size = run->comm.size, first = 0;
  char line[400] = "";
  size_t used = 0;
  while (first < size && used < sizeof line - 100) {
    int end = first + 1;
    while (end < size && !strcmp(run->cores[end].host, run->cores[first].host)) end++;
    if (end - first == size) return;
    char last[24] = "";
    if (end - first > 1) snprintf(last, sizeof last, " to %d", end - 1);
    used += (size_t)snprintf(line + used, sizeof line - used, "%s%d%s on %s", used ? ", " : "",
                             first, last, run->cores[first].host);
    first = end;
  }
  log_info("seats   ranks %s%s", line, first < size ? ", ..." : "");
}

static void cores_report(const struct run *run, const gidx *threads, const char *by)
{
  const struct cores *first = &run->cores[0];
  struct core_partition s = cores_partition(run->cores, run->comm.size, 0);
  char bound[32] = "no";
  if (!CPU_EQUAL(&first->own, &first->launcher))
    snprintf(bound, sizeof bound, "%d core%s", s.own, s.own == 1 ? "" : "s");
  log_info("threads %lld by=%s bound=%s node=%s ranks=%d cores=%d of=%d", (long long)threads[0], by,
           bound, first->host, s.processes, s.used, s.present);
  seats_log(run);
  for (int r = 0; r < run->comm.size; r++) {
    gidx sum;
    if (!machine_begins(run, r, threads, &sum)) continue;
    s = cores_partition(run->cores, run->comm.size, r);
    machine_warn(&run->cores[r], &s, sum, strcmp(by, "cores") != 0);
  }
}

int threads_report(struct run *run, idx option)
{
  struct comm *c = &run->comm;
  const char *by;
  gidx *threads;
  TRY(comm_agree(c, struct_alloc(&threads, (size_t)c->size * sizeof *threads)));
  TRY(comm_allgather_long(c, threads_choose(run, option, &by), threads));
  if (c->rank == 0) cores_report(run, threads, by);
  free(run->threads);
  run->threads = threads;
  return OK;
}
