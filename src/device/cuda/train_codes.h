/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of rows on a GPU, and the steps of it that codes of whole batches take too.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_TRAIN_CODES_H
#define DEVICE_CUDA_TRAIN_CODES_H

#include "device/cuda/kernels.h"
#include "device/train.h"
#include "train_types.h"

/* device/train.h says what they do. */
int cuda_train_codes(struct device *dev, const struct train_codes_job *job);
gidx cuda_train_codes_bytes(const struct train_codes_job *job);

/* Where rows have their arrays; the last two are operands, turned or narrowed. */
struct train_piece {
  float *scores, *maxima, *value;
  int *index, *count;
  void *rows, *encoder;
};

/* *w <- arrays of so many rows, with up to `most` entries each, from `work` on; returns their
 * bytes. */
gidx cuda_train_lay(const struct train_codes_job *job, gidx rows, gidx most, char *work,
                    struct train_piece *w);
struct train_select_args cuda_train_select(const struct train_codes_job *job,
                                           const struct train_piece *w);

/* Scores of a->n rows from `first` on, those that are no code 0, and the maxima of their groups;
 * without room for maxima scores as they are. */
int cuda_train_score(struct device *dev, const struct train_codes_job *job, idx first,
                     const struct train_piece *w, struct train_select_args *a);
/* The scores of the dead alone are left, and what was known of groups is not true any more. */
int cuda_train_mask(struct device *dev, const struct train_codes_job *job, float *scores,
                    struct train_select_args *a);
/* The largest scores of the a->n rows, of which `row` is the first of all, behind the first
 * `*taken` entries; *taken goes on. */
int cuda_train_take(struct device *dev, struct train_select_args *a, const struct train_entries *to,
                    idx row, gidx *taken);
/* ERR_INPUT: rows have more entries than a GPU sorts. */
int cuda_train_entries_check(const struct train_codes_job *job, idx most);

/* One launch along `items`, a thread each up to a number. */
int cuda_train_along(struct device *dev, enum kernel_name name, gidx items, void *arguments);
/* counts become where lists begin; counts[k] is there too. */
int cuda_train_starts(struct device *dev, int *counts, idx k);

#endif
