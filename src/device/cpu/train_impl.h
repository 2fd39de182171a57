/* SPDX-License-Identifier: BSD-3-Clause
 * What the two ways to choose codes on a CPU share (N.43, N.46).
 *
 * Floor: device, inside of the CPU backend. */
#ifndef DEVICE_CPU_TRAIN_IMPL_H
#define DEVICE_CPU_TRAIN_IMPL_H

#include "device/train.h"

/* scores[rows][k] <- those of rows first .. first + rows - 1. */
int cpu_train_product(struct device *dev, const struct train_codes_job *job, idx first, idx rows,
                      float *scores);

/* The codes of dead latents of a row, at their place if all rows had the most; other scores become
 * 0. */
void cpu_train_dead(const struct train_codes_job *job, float *scores, gidx row);

/* Put the entries of rows one after another. */
void cpu_train_pack(const struct train_entries *e, idx n);

#endif
