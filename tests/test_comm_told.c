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
  ok(launcher_check(1, 1) == OK, "one process that nobody launched");
  launched("SLURM_NTASKS=4", "SLURM_PROCID=0");
  ok(launcher_check(1, 1) == OK && launcher_size() == -1, "one process in an allocation of four");
  launched("SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_ID=0");
  ok(launcher_check(4, 1) == OK, "four tasks of a step, which MPI knows");
  ok(refuses(1, "srun started 4", "SLURM_STEP_NUM_TASKS"), "four of which it knows one");
  ok(refuses(2, "MPI knows of 2", "srun --mpi=pmix"), "four of which it knows those of a node");
  ok(launcher_check(6, 1) == OK, "a job in several parts, of which one has four");
  launched("SLURM_STEP_NUM_TASKS=4", NULL);
  ok(launcher_check(1, 1) == OK, "a number without a step");
  launched("SLURM_STEP_NUM_TASKS=1", "SLURM_STEP_ID=0");
  ok(launcher_check(1, 1) == OK, "a step of one task");
  launched("PMI_SIZE=3", NULL);
  ok(refuses(1, "PMI", "PMI_SIZE") && launcher_check(3, 1) == OK, "a launcher with PMI");
  launched("OMPI_COMM_WORLD_SIZE=2", NULL);
  ok(refuses(1, "Open MPI", "OMPI_COMM_WORLD_SIZE"), "mpirun of another MPI");
  status_clear();
  ok(launcher_check(1, 0) == ERR_USAGE && strstr(status_message(), "has no MPI") &&
         strstr(status_message(), "built with MPI"),
     "a program without MPI");
  launched("OMPI_COMM_WORLD_SIZE=2", "PMI_SIZE=8");
  ok(launcher_check(2, 1) == OK && launcher_check(8, 1) == OK, "a launcher in a task of another");
}

int main(void)
{
  launched(NULL, NULL);
  ok(launcher_is_none() && launcher_rank() == -1, "a process that nobody launched has no rank");
  launched("OMPI_COMM_WORLD_RANK=5", "PMI_RANK=1");
  ok(!launcher_is_none() && launcher_rank() == 5, "the rank is that of mpirun");
  launched("PMIX_RANK=3", "SLURM_PROCID=0");
  ok(launcher_rank() == 3, "and not that of a job around it");
  launched("SLURM_STEP_ID=0", NULL);
  ok(!launcher_is_none() && launcher_rank() == -1, "a step of Slurm alone says no rank");
  check_sizes();
  return done_testing();
}
