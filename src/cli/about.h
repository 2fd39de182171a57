/* SPDX-License-Identifier: BSD-3-Clause
 * What this program is made of, and the job of the batch system that it runs in.
 *
 * Floor: cli.  Not collective. */
#ifndef CLI_ABOUT_H
#define CLI_ABOUT_H

#include <stdio.h>

#include "job/run.h"

/* What is linked, by name; a build without CUDA or NCCL has "none" there. */
struct about {
  char compiler[96], mpi[96], hdf5[32], cuda[32], nccl[32];
};
void about_find(struct about *about);

/* sagitta --version: the version in the first line, then a line for each of the others. */
void about_print(FILE *out);

/* Its log() writes a line: version, revision, libraries, and the job. */
extern const struct program about_program;

/* sagitta --describe: print commands[count] and their options as one JSON object, for completion,
 * documents and tests, or the command of this name; NULL: all.  doc/json.md has its entries. */
void describe_print(const struct command *const *commands, int count, const char *name, FILE *out);

/* The number of the job, of its task in an array and of its restart, "1234_7" or "1234 restart 1",
 * as Slurm says it, or as PBS or LSF do; NULL outside a job.  Valid until the next call. */
const char *about_job(void);

#endif
