/* SPDX-License-Identifier: BSD-3-Clause
 * Functions that are common to the two selections of codes on the CPU: per row (N.43) and per batch
 * (N.46).
 *
 * Floor: device, inside of the CPU backend. */
#ifndef DEVICE_CPU_TRAIN_IMPL_H
#define DEVICE_CPU_TRAIN_IMPL_H

#include "device/train.h"

/* scores[rows][k] <- the scores of rows first .. first + rows - 1. */
int cpu_train_product(struct device *dev, const struct train_codes_job *job, idx first, idx rows,
                      float *scores);

/* Store the codes of the dead atoms of a row from index row * most on, as if every row had `most`
 * entries.  Scores of other atoms become 0. */
void cpu_train_dead(const struct train_codes_job *job, float *scores, gidx row);

/* Close the gaps between the entries of rows that were stored in this way, and turn the numbers of
 * entries in e->start into starts. */
void cpu_train_pack(const struct train_entries *e, idx n);

#endif
