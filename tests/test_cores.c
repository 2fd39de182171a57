/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: processes share the cores of their machine by their masks and quotas.  cores_evaluate()
 * reports if there are more threads than cores, or so few threads that half of the cores or more
 * have none. */
#include "base/cores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

enum { MAX = 80 };
static struct cores all[MAX];

/* Process i may run on cores first .. first + own - 1.  Its launcher may run on cores 0 ..
 * launcher - 1. */
static void process_set(int i, const char *host, int first, int own, int launcher, double quota)
{
  all[i] = (struct cores){.quota = quota};
  strcpy(all[i].host, host);
  for (int c = 0; c < own; c++) CPU_SET(first + c, &all[i].own);
  for (int c = 0; c < launcher; c++) CPU_SET(c, &all[i].launcher);
}

static void share_check(const char *what, int processes, int which, idx threads, idx used,
                        idx present)
{
  struct core_partition s = cores_partition(all, processes, which);
  ok(s.threads == threads && s.used == used && s.present == present,
     "%s: process %d has %d threads, %d of %d cores are used", what, which, s.threads, s.used,
     s.present);
}

static void masks_check(void)
{
  claim_begin("processes with the same mask divide its cores");
  for (int r = 0; r < 4; r++) process_set(r, "a", 8, 16, 24, INFINITY);
  for (int r = 0; r < 4; r++) share_check("four processes in a group of 16 cores", 4, r, 4, 16, 24);
  share_check("three processes in a group of 16 cores", 3, 2, 5, 16, 24);
  for (int r = 0; r < 40; r++) process_set(r, "a", 0, 16, 16, INFINITY);
  share_check("forty processes on 16 cores", 40, 39, 1, 16, 16);
  claim_end();
  claim_begin("processes with other masks, on other machines or with quotas have their share");
  process_set(0, "a", 0, 1, 64, INFINITY);
  process_set(1, "a", 1, 1, 64, INFINITY);
  share_check("two processes, each bound to one core of 64", 2, 0, 1, 2, 64);
  for (int r = 0; r < 2; r++) process_set(r, r ? "b" : "a", 0, 8, 8, INFINITY);
  share_check("a process on each of two machines", 2, 1, 8, 8, 8);
  process_set(0, "a", 0, 8, 8, INFINITY);
  process_set(1, "a", 4, 4, 8, INFINITY);
  share_check("a process with 8 cores, of which another may use 4", 2, 0, 6, 8, 8);
  share_check("that other process, with 4 cores", 2, 1, 2, 8, 8);
  for (int r = 0; r < 3; r++) process_set(r, "a", 0, 9, 64, INFINITY);
  share_check("three processes with nine cores", 3, 0, 3, 9, 64);
  for (int r = 0; r < 2; r++) process_set(r, "a", 0, 64, 64, 6.5);
  share_check("two processes with a quota of 6.5 of 64 cores", 2, 0, 3, 7, 7);
  for (int r = 0; r < 2; r++) process_set(r, "a", 0, 64, 64, 0.5);
  share_check("a quota of half a core", 2, 0, 1, 1, 1);
  claim_end();
}

static void verdict_check(void)
{
  const struct {
    idx used, present;
    gidx threads;
    enum cores_verdict want;
  } cases[] = {{16, 16, 16, CORES_FIT}, {16, 16, 17, CORES_MANY}, {2, 64, 2, CORES_FEW},
               {2, 3, 2, CORES_FIT},    {16, 16, 15, CORES_FIT},  {1, 2, 1, CORES_FEW},
               {1, 1, 1, CORES_FIT},    {8, 64, 9, CORES_MANY}};
  claim_begin("too many threads, and too few, are found");
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
    struct core_partition s = {.processes = 1, .used = cases[i].used, .present = cases[i].present};
    ok(cores_evaluate(&s, cases[i].threads) == cases[i].want, "%lld threads on %d of %d cores",
       (long long)cases[i].threads, s.used, s.present);
  }
  claim_end();
}

static void asked_check(void)
{
  const struct {
    const char *omp, *slurm, *step;
    idx want;
  } cases[] = {{NULL, NULL, NULL, 0}, {"3", "5", "0", 3},   {"4,2", NULL, NULL, 4},
               {NULL, "5", "0", 5},   {NULL, "5", NULL, 0}, {"0", "5", "0", 5},
               {"x", NULL, NULL, 0},  {"-2", "6", "0", 6},  {"99999999999", NULL, NULL, 0}};
  claim_begin("the environment: OMP_NUM_THREADS first, Slurm's number only in a step");
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
    const char *name, *names[] = {"OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK", "SLURM_STEP_ID"};
    const char *values[] = {cases[i].omp, cases[i].slurm, cases[i].step};
    for (int v = 0; v < 3; v++) {
      unsetenv(names[v]);
      if (values[v]) setenv(names[v], values[v], 1);
    }
    idx asked = cores_asked(&name);
    ok(asked == cases[i].want, "case %d asks for %d threads", i, asked);
  }
  claim_end();
}

int main(void)
{
  struct cores own;
  cores_find(&own);
  struct core_partition s = cores_partition(&own, 1, 0);
  ok(s.processes == 1 && s.threads >= 1 && s.threads <= s.own && s.own <= s.present,
     "this machine has %d cores, %d of them for this process", s.present, s.own);
  masks_check();
  verdict_check();
  asked_check();
  return done_testing();
}
