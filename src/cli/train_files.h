/* SPDX-License-Identifier: BSD-3-Clause
 * The files of a training: where they are, what a resumed one finds, and when they are written.
 *
 * Floor: cli.
 *
 * state.h5 is a dictionary with its encoder, and holds all that training goes on from;
 * dictionary.h5 is written at the end, and state.h5 is then removed. */
#ifndef CLI_TRAIN_FILES_H
#define CLI_TRAIN_FILES_H

#include "io/dictionary.h"
#include "io/training.h"
#include "job/checkpoint.h"
#include "train/train.h"

struct train_files {
  struct job job; /* of dictionary.h5 and more[0], state.h5 */
  idx k, p, top_s;
  int learns_offset; /* the state has more than the mean */
  real l0;           /* codes a row on average, of an encoder with a threshold; 0: top_s in each */
  struct train_point start; /* where it is resumed; on every rank */
  struct train_state state_read;
  float *bias, *threshold;   /* [k] for rows as they are */
  struct train_point point;  /* that is being published */
  struct matrix_output file; /* being written, on rank 0 */
  struct arena arena;
};

/* Open the job, which the caller has set, as are k, p, top_s.  With resume read what is there:
 * ERR_INPUT when it is of another job than run->identity.  Collective. */
int train_files_open(struct train_files *files, const struct run_inputs *inputs);
void train_files_free(struct train_files *files);

/* job->sink <- what train_run() calls: lines are shown; what was reached is published, as state.h5,
 * or at the end dictionary.h5; and a job that is asked to stop leaves.  Not collective. */
struct train_job;
void train_files_sink(struct train_job *job);

#endif
