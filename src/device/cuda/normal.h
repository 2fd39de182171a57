/* SPDX-License-Identifier: BSD-3-Clause
 * Normal equations and their descent on a GPU.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_NORMAL_H
#define DEVICE_CUDA_NORMAL_H

#include "device/cuda/cuda.h"

/* Sort the entries of a->n rows by atom, then by row.  The caller sets slots, codes, n, s, k, the
 * chunks, and the arrays that are written. */
struct normal_args;
int cuda_entries_index(struct device *dev, struct normal_args *a);

/* Operations of the table. */
int cuda_normal_add(struct device *dev, const struct normal_job *job);
int cuda_normal_decay(struct device *dev, struct buffer *values, gidx at, gidx count, real beta);
int cuda_normal_descend(struct device *dev, const struct descend_job *job);
int cuda_normal_energies(struct device *dev, const struct energies_job *job);
int cuda_normal_clear(struct device *dev, const struct clear_job *job);
gidx cuda_normal_bytes(idx n, idx s, idx k, idx columns);

#endif
