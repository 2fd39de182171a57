/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of a whole batch on the CPU (N.46): operations of the table in backend.h.
 *
 * Floor: device, inside of the CPU backend. */
#ifndef DEVICE_CPU_TRAIN_BATCH_H
#define DEVICE_CPU_TRAIN_BATCH_H

#include "device/train.h"

/* device/train.h describes these. */
int cpu_train_scores(struct device *dev, const struct train_codes_job *job);
int cpu_train_count(struct device *dev, const struct train_codes_job *job,
                    const struct batch_cut *cut, gidx *counts);
int cpu_train_cut(struct device *dev, const struct train_codes_job *job,
                  const struct batch_cut *cut, gidx ties);
int cpu_train_raise(struct device *dev, const struct train_codes_job *job,
                    const struct train_raise *raise);
gidx cpu_train_batch_bytes(const struct train_codes_job *job);

#endif
