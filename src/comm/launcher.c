/* SPDX-License-Identifier: BSD-3-Clause
 * Launchers are recognised by environment variables.  If one launcher starts another, the processes
 * have the variables of both. */
#include "comm/launcher.h"

#include <stdlib.h>

#include "base/status.h"

/* Variables with the number of processes that a launcher started.  If one launcher started another,
 * the variable of the inner one comes first. */
static const struct {
  const char *variable, *who;
  const char *needed; /* counts only if this is set, too; NULL: always */
} sizes[] = {
    {"OMPI_COMM_WORLD_SIZE", "mpirun of Open MPI", NULL},
    {"MV2_COMM_WORLD_SIZE", "mpirun of MVAPICH2", NULL},
    {"JSM_NAMESPACE_SIZE", "jsrun", NULL},
    {"PMI_SIZE", "a launcher with PMI", NULL},
    {"SLURM_STEP_NUM_TASKS", "srun", "SLURM_STEP_ID"},
};

int launcher_is_none(void)
{
  static const char *const names[] = {
      "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_FD", "PMI_PORT", "SLURM_STEP_ID"};
  for (int i = 0; i < LENGTH(names); i++)
    if (getenv(names[i])) return 0;
  return 1;
}

int launcher_rank(void)
{
  static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                      "SLURM_PROCID"};
  for (int i = 0; i < LENGTH(names); i++)
    if (getenv(names[i])) return atoi(getenv(names[i]));
  return -1;
}

/* The number in variable i; -1: it is not set. */
static int size_said(int i)
{
  const char *value = getenv(sizes[i].variable), *needed = sizes[i].needed;
  return value && (!needed || getenv(needed)) ? atoi(value) : -1;
}

int launcher_size(void)
{
  for (int i = 0; i < LENGTH(sizes); i++)
    if (size_said(i) > 0) return size_said(i);
  return -1;
}

/* Check that MPI has the number of processes of some launcher, since mpirun inside srun may start
 * another number than srun.  If several launchers start a job together, MPI has more processes than
 * each of them started; this is no error. */
int launcher_check(int ranks, int has_mpi)
{
  int alone = -1;
  for (int i = LENGTH(sizes) - 1; i >= 0; i--) {
    if (size_said(i) == ranks) return OK;
    if (size_said(i) > ranks) alone = i;
  }
  CHECK(alone < 0 || has_mpi, ERR_USAGE,
        "%s started %d processes (%s), and this program has no MPI: each would do the whole job; "
        "start a sagitta that was built with MPI (doc/install.md), or this one without a launcher",
        sizes[alone].who, size_said(alone), sizes[alone].variable);
  CHECK(alone < 0, ERR_USAGE,
        "%s started %d processes (%s), and MPI knows of %d: each would do the whole job; start "
        "them with the mpirun that sagitta was built with, or srun --mpi=pmix; for separate jobs "
        "start each with mpirun -n 1",
        sizes[alone].who, size_said(alone), sizes[alone].variable, ranks);
  return OK;
}
