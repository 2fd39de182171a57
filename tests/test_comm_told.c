/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: before MPI starts the rank is known from the launcher's variables; without them nothing is
 * assumed.  If MPI knows of fewer processes than the launcher started, the job is refused. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "comm/launcher.h"
#include "tap.h"

static const char *const launchers[] = {"OMPI_COMM_WORLD_RANK",
                                        "PMIX_RANK",
                                        "PMI_RANK",
                                        "PMI_FD",
                                        "PMI_PORT",
                                        "SLURM_STEP_ID",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_NTASKS",
                                        "PMI_SIZE",
                                        "OMPI_COMM_WORLD_SIZE"};

/* Set these variables, "NAME=value", and no other variable of a launcher. */
static void launched(const char *first, const char *second)
{
  static char kept[2][64];
  const char *given[] = {first, second};
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) unsetenv(launchers[i]);
  for (int i = 0; i < 2; i++)
    if (given[i]) putenv(strcpy(kept[i], given[i]));
}

/* Does launcher_check() refuse `ranks` ranks, with these words in its message? */
static int refuses(int ranks, const char *who, const char *variable)
{
  status_clear();
  return launcher_check(ranks, 1) == ERR_USAGE && strstr(status_message(), who) &&
         strstr(status_message(), variable);
}

static void check_sizes(void)
{
  launched(NULL, NULL);
  ok(launcher_check(1, 1) == OK, "one process that nobody launched is accepted");
  launched("SLURM_NTASKS=4", "SLURM_PROCID=0");
  ok(launcher_check(1, 1) == OK && launcher_size() == -1,
     "one process in an allocation of four tasks is accepted");
  launched("SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_ID=0");
  ok(launcher_check(4, 1) == OK, "a step of four tasks, all of which MPI knows, is accepted");
  ok(refuses(1, "srun started 4", "SLURM_STEP_NUM_TASKS"),
     "a step of four tasks, of which MPI knows one, is refused");
  ok(refuses(2, "MPI knows of 2", "srun --mpi=pmix"),
     "a step of four tasks, of which MPI knows two, is refused");
  ok(launcher_check(6, 1) == OK,
     "more ranks than tasks of the step are accepted: a job has several parts");
  launched("SLURM_STEP_NUM_TASKS=4", NULL);
  ok(launcher_check(1, 1) == OK, "a number of tasks without a step is ignored");
  launched("SLURM_STEP_NUM_TASKS=1", "SLURM_STEP_ID=0");
  ok(launcher_check(1, 1) == OK, "a step of one task is accepted");
  launched("PMI_SIZE=3", NULL);
  ok(refuses(1, "PMI", "PMI_SIZE") && launcher_check(3, 1) == OK,
     "a launcher with PMI is refused if MPI knows one rank of three, else accepted");
  launched("OMPI_COMM_WORLD_SIZE=2", NULL);
  ok(refuses(1, "Open MPI", "OMPI_COMM_WORLD_SIZE"), "mpirun of another MPI is refused");
  status_clear();
  ok(launcher_check(1, 0) == ERR_USAGE && strstr(status_message(), "has no MPI") &&
         strstr(status_message(), "built with MPI"),
     "a launched program without MPI is refused");
  launched("OMPI_COMM_WORLD_SIZE=2", "PMI_SIZE=8");
  ok(launcher_check(2, 1) == OK && launcher_check(8, 1) == OK,
     "mpirun in a task of another launcher: the size of either is accepted");
}

int main(void)
{
  launched(NULL, NULL);
  ok(launcher_is_none() && launcher_rank() == -1, "a process that nobody launched has no rank");
  launched("OMPI_COMM_WORLD_RANK=5", "PMI_RANK=1");
  ok(!launcher_is_none() && launcher_rank() == 5, "mpirun tells the rank");
  launched("PMIX_RANK=3", "SLURM_PROCID=0");
  ok(launcher_rank() == 3, "the rank is that of PMIx, not of the job of Slurm around it");
  launched("SLURM_STEP_ID=0", NULL);
  ok(!launcher_is_none() && launcher_rank() == -1, "a step of Slurm alone tells no rank");
  check_sizes();
  return done_testing();
}
