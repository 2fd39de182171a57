/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: which process of a machine this is, and whether others may be at work while MPI starts, is
 * known before that from the launcher's variables, and where these do not tell, nothing is assumed.
 */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "tap.h"

static const char *const launchers[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "PMIX_RANK",
                                        "PMI_RANK",
                                        "PMI_FD",
                                        "PMI_PORT",
                                        "SLURM_STEP_ID",
                                        "SLURM_PROCID",
                                        "SLURM_LOCALID",
                                        "OMPI_MCA_pml"};

/* As if these, "NAME=value", were all that a launcher had set. */
static void launched(const char *first, const char *second)
{
  static char kept[2][64];
  const char *given[] = {first, second};
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) unsetenv(launchers[i]);
  for (int i = 0; i < 2; i++)
    if (given[i]) putenv(strcpy(kept[i], given[i]));
}

static int has_network(void)
{
  glob_t found;
  int has = !glob("/sys/class/infiniband/*", 0, NULL, &found);
  globfree(&found);
  has |= !glob("/sys/class/cxi/*", 0, NULL, &found);
  globfree(&found);
  return has;
}

int main(void)
{
  char library[64];
  comm_library(library, sizeof library);
  int quiet = strncmp(library, "Open MPI", 8) == 0 && !has_network();
  launched(NULL, NULL);
  ok(comm_local_rank_told() == 0, "a process that nobody launched is the first");
  ok(comm_start_is_quiet() == quiet, "others may be at work where there is no fast network");
  launched("OMPI_MCA_pml=ucx", NULL);
  ok(!comm_start_is_quiet(), "but not if one is asked for");
  launched("OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_LOCAL_RANK=1");
  ok(comm_local_rank_told() == 1 && comm_rank_told() == 5, "mpirun tells which it is");
  launched("OMPI_COMM_WORLD_RANK=5", "OMPI_MCA_pml=ob1");
  ok(comm_start_is_quiet() == quiet, "and may be told to do without fast networks");
  launched("OMPI_COMM_WORLD_RANK=5", "OMPI_MCA_pml=cm");
  ok(!comm_start_is_quiet(), "or to take one");
  launched("PMIX_RANK=3", "SLURM_LOCALID=0");
  ok(comm_local_rank_told() == -1, "a number that another launcher may have left is not taken");
  launched("SLURM_STEP_ID=0", NULL);
  ok(comm_local_rank_told() == -1, "nor is a step of Slurm the first by itself");
  return done_testing();
}
