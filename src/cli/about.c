/* SPDX-License-Identifier: BSD-3-Clause
 * Each floor knows the version of the library that it alone uses; the tables of options say the
 * rest. */
#include "cli/about.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "cli/revision.h"
#include "comm/comm.h"
#include "config.h"
#include "device/device.h"
#include "io/h5/h5.h"
#include "base/options_write.h"
#include "job/facts.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* What is linked, by name; a build without CUDA or NCCL has "none" there. */
struct about {
  char compiler[96], mpi[96], hdf5[32], cuda[32], nccl[32];
};

static void about_find(struct about *a)
{
  snprintf(a->compiler, sizeof a->compiler, "%s", COMPILER);
  comm_library(a->mpi, sizeof a->mpi);
  h5_library(a->hdf5, sizeof a->hdf5);
  device_cuda_library(a->cuda, sizeof a->cuda);
  comm_gpus_library(a->nccl, sizeof a->nccl);
}

void about_print(const char *name, FILE *out)
{
  struct about a;
  about_find(&a);
  fprintf(out, "%s %s\n", name, PACKAGE_VERSION);
  fprintf(out, "revision  %s\ncompiler  %s\nMPI       %s\n", REVISION, a.compiler, a.mpi);
  fprintf(out, "HDF5      %s\nCUDA      %s\nNCCL      %s\n", a.hdf5, a.cuda, a.nccl);
}

/* The number of the job, of its task in an array and of its restart, "1234_7" or "1234 restart 1",
 * as Slurm says it, or as PBS or LSF do; NULL outside a job.  Valid until the next call. */
static const char *about_job(void)
{
  static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"};
  static char text[128];
  const char *job = NULL;
  for (int i = 0; i < LENGTH(names) && !job; i++) job = getenv(names[i]);
  if (!job || !*job) return NULL;
  const char *array = getenv("SLURM_ARRAY_JOB_ID"), *task = getenv("SLURM_ARRAY_TASK_ID");
  const char *restart = getenv("SLURM_RESTART_COUNT");
  int is_array = array && task;
  snprintf(text, sizeof text, "%.40s%s%.20s%s%.20s", is_array ? array : job, is_array ? "_" : "",
           is_array ? task : "", restart ? " restart " : "", restart ? restart : "");
  return text;
}

static void about_log(void)
{
  struct about a;
  const char *job = about_job();
  about_find(&a);
  log_info("version %s %s: %s, HDF5 %s, CUDA %s, NCCL %s%s%s", PACKAGE_VERSION, REVISION, a.mpi,
           a.hdf5, a.cuda, a.nccl, job ? "; job " : "", job ? job : "");
}

static void libraries_json(struct json *j)
{
  struct about a;
  about_find(&a);
  json_object(j, "libraries");
  json_text(j, "compiler", a.compiler);
  json_text(j, "mpi", a.mpi);
  json_text(j, "hdf5", a.hdf5);
  json_text(j, "cuda", a.cuda);
  json_text(j, "nccl", a.nccl);
  json_end(j);
}

const struct program about_program = {.version = PACKAGE_VERSION,
                                      .revision = REVISION,
                                      .log = about_log,
                                      .libraries = libraries_json,
                                      .job = about_job};

static void command_describe(const struct command *command, struct json *out)
{
  const struct option_set *set = command->options;
  json_object(out, NULL);
  json_text(out, "name", command->name);
  json_text(out, "summary", command->summary);
  json_text(out, "arguments", set->arguments);
  json_flag(out, "mpi", command->parallel);
  json_flag(out, "config_file", set->has_config || set->takes_files);
  json_flag(out, "resumable", options_has(set, "resume"));
  json_array(out, "options");
  options_describe(set, out);
  json_end(out);
  json_end(out);
}

void describe_print(const struct command *const *commands, int count, const char *name, FILE *out)
{
  struct json j = {.out = out};
  facts_head(&j, &about_program, "--describe");
  json_array(&j, "commands");
  for (int i = 0; i < count; i++)
    if (!name || strcmp(commands[i]->name, name) == 0) command_describe(commands[i], &j);
  json_end(&j);
  json_end(&j);
}
