/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of rows on a GPU, and the functions that codes of whole batches use too.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_TRAIN_CODES_H
#define DEVICE_CUDA_TRAIN_CODES_H

#include "device/cuda/kernels.h"
#include "device/train.h"
#include "train_types.h"

/* device/train.h describes these. */
int cuda_train_codes(struct device *dev, const struct train_codes_job *job);
gidx cuda_train_codes_bytes(const struct train_codes_job *job);

/* The arrays of a piece.  A piece is some rows.  `rows` and `encoder` are the operands, transposed
 * or narrowed. */
struct train_piece {
  float *scores, *maxima, *value;
  int *index, *count;
  void *rows, *encoder;
};

/* *w <- arrays for `rows` rows with up to `most` entries each, laid out from `work` on.  Returns
 * their bytes. */
gidx cuda_train_lay(const struct train_codes_job *job, gidx rows, gidx most, char *work,
                    struct train_piece *w);
struct train_select_args cuda_train_select(const struct train_codes_job *job,
                                           const struct train_piece *w);

/* Compute the scores of a->n rows from row `first` on, and the maxima of groups of scores.  A score
 * that is not positive is written as 0.  If w has no maxima, all scores are written as they are. */
int cuda_train_score(struct device *dev, const struct train_codes_job *job, idx first,
                     const struct train_piece *w, struct train_select_args *a);
/* Zero the scores of atoms that are not dead.  The maxima of groups are invalid afterwards. */
int cuda_train_mask(struct device *dev, const struct train_codes_job *job, float *scores,
                    struct train_select_args *a);
/* Take the largest scores of a->n rows, the first of which is row `row`, and append them to the
 * first *taken entries of `to`; *taken grows. */
int cuda_train_take(struct device *dev, struct train_select_args *a, const struct train_entries *to,
                    idx row, gidx *taken);
/* ERR_INPUT if all rows together may have more entries than a 32-bit number counts. */
int cuda_train_entries_check(const struct train_codes_job *job, idx most);

/* Launch a kernel with one thread per item, up to a limit of threads. */
int cuda_train_along(struct device *dev, enum kernel_name name, gidx items, void *arguments);
/* counts[k + 1]: replace the lengths of k lists by the positions where the lists begin.  The last
 * number becomes the end of the last list. */
int cuda_train_starts(struct device *dev, int *counts, idx k);

#endif
