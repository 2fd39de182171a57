/* SPDX-License-Identifier: BSD-3-Clause
 * The lines of a training: what is shown and saved of each, and when a job that is asked to stop
 * leaves.
 *
 * Floor: cli. */
#ifndef CLI_TRAIN_POINTS_H
#define CLI_TRAIN_POINTS_H

#include "cli/train_job.h"

/* j->sink <- what train_run() calls. */
void train_points_sink(struct train_job *j);

#endif
