/* SPDX-License-Identifier: BSD-3-Clause
 * The files of a training: where they are, what a resumed run finds, and when they are written.
 *
 * Floor: cli.
 *
 * state.h5 has a dictionary with its encoder, and everything else that a resumed training needs.
 * dictionary.h5 is written at the end, and state.h5 is then removed. */
#ifndef CLI_TRAIN_FILES_H
#define CLI_TRAIN_FILES_H

#include "io/dictionary.h"
#include "io/training.h"
#include "job/checkpoint.h"
#include "train/train.h"

struct train_files {
  struct job job;                  /* of dictionary.h5; more[0] is state.h5 */
  const struct train_sizes *sizes; /* borrowed */
  idx p, top_s;
  struct train_point start; /* the point where a resumed run starts; on every rank */
  struct train_state state_read;
  float *bias, *threshold;   /* [k] of the encoder in a file, for rows that are not scaled */
  struct train_point point;  /* being published */
  struct matrix_output file; /* being written, on rank 0 */
  struct arena arena;
};

/* Open the job; the caller has set it, sizes, p and top_s.  With resume read the files.  ERR_INPUT:
 * they are of another job than files->job.run->identity.  Collective. */
int train_files_open(struct train_files *files, const struct run_inputs *inputs);
void train_files_free(struct train_files *files);

/* job->sink <- the callbacks of train_run(): log lines; publish state.h5, or at the end
 * dictionary.h5; ask whether to stop.  Not collective. */
struct train_job;
void train_files_sink(struct train_job *job);

#endif
