/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device for a step of training an autoencoder (N.43).  triad.h has the products,
 * their sparse forms, and Adam.
 *
 * Floor: device.  Results have the bits of model/train.c for any backend, thread count and variant.
 *
 * On a GPU, all operations may return before they have ended, except device_train_codes(),
 * device_train_count() and device_train_idle().  Later operations, device_get() included, wait for
 * them.
 *
 * Pointers are to the device's side unless the comment says host.  Not collective.  ERR_DEVICE: the
 * backend lacks the operation; ERR_INTERNAL: a dimension is wrong, such as a negative number of
 * rows. */
#ifndef DEVICE_TRAIN_H
#define DEVICE_TRAIN_H

#include "device/device.h"
#include "model/batch_cut.h"
#include "model/nested.h"
#include "model/precision.h"

/* The codes of some rows, row after row, in ascending order of atoms. */
struct train_entries {
  idx most;     /* limit for the entries of a row; 0: no entries and no arrays */
  gidx *start;  /* [n + 1] */
  idx *index;   /* [n most] atoms */
  float *value; /* [n most] codes */
};

/* live <- the live.most largest positive scores of each row x[n][p]; dead <- the dead.most largest
 * positive scores of the dead atoms. */
struct train_codes_job {
  const float *x;               /* [n][p] */
  const float *encoder, *bias;  /* [k][p], [k] */
  const unsigned char *is_dead; /* [k]; NULL: no atom is dead */
  idx n, p, k;
  enum precision
      precision; /* of the scores; all but f32 need the matrix unit of a GPU (tensor.h) */
  struct train_entries live, dead;
  gidx room;  /* for device_train_cut(): the entries that fit in `live`; 0: n most */
  void *work; /* device_train_codes_bytes() */
  gidx work_bytes;
};
int device_train_codes(struct device *dev, const struct train_codes_job *job);

/* Bytes of `work` for a job of these sizes, precision and numbers of entries, or for a smaller
 * one. */
gidx device_train_codes_bytes(const struct device *dev, const struct train_codes_job *job);

/* The codes of a batch whose rows may be spread over several devices (N.46).  Codes are the largest
 * scores of the batch; the cut is the smallest of these (model/batch_cut.h).  A batch takes three
 * steps with one job.  `work` has device_train_batch_bytes() and must not change between them.
 *   scores: compute the scores of the rows.
 *   count: counts[BATCH_BINS], host memory, <- the number of scores for each value of the next
 *     digit of the cut.  It is called until all digits are known.
 *   cut: live <- the scores above the cut and the first `ties` scores that equal it; dead <- as
 *     above.  live.index and live.value have room for job.room entries, or for n most if job.room
 *     is 0.  If there are more entries, only live.start is valid. */
int device_train_scores(struct device *dev, const struct train_codes_job *job);
int device_train_count(struct device *dev, const struct train_codes_job *job,
                       const struct batch_cut *cut, gidx *counts);
int device_train_cut(struct device *dev, const struct train_codes_job *job,
                     const struct batch_cut *cut, gidx ties);
/* An optional step between scores and count.  job.x are residual rows.  The score of each atom
 * becomes the score that the atom would have without its own code, by find_raise() of model/find.h
 * (N.51). */
struct train_raise {
  const struct train_entries *entries; /* the codes of these rows; NULL: none */
  int relative;                        /* 1: scores are relative to the norm of the residual */
  real floor;                          /* as in struct find_raise */
  const float *left;                   /* [n][p] rows whose norms are taken; NULL: job.x */
};
int device_train_raise(struct device *dev, const struct train_codes_job *job,
                       const struct train_raise *raise);
gidx device_train_batch_bytes(const struct device *dev, const struct train_codes_job *job);

/* Nested widths (N.47), in at least 2 blocks of atoms.  start <- the first entry of each block of
 * each row, then the number of all entries. */
struct train_blocks_job {
  const struct train_entries *entries; /* of rows 0 .. n - 1 */
  const struct nested *nested;
  idx n, k;
  gidx *start; /* [n blocks + 1] */
};
int device_train_blocks(struct device *dev, const struct train_blocks_job *job);
/* suffix: errors[n][blocks][p] <- nested_suffix() of each row.  block_get: to[n][p] <- the errors
 * of one block. */
int device_train_suffix(struct device *dev, float *errors, gidx n, int blocks, idx p);
int device_train_block_get(struct device *dev, const float *errors, gidx n, int blocks, int block,
                           idx p, float *to);

/* For the bias of (N.48).  offset: x[n][p] <- x - offset[p] in each row.  sums: to[p] <- the column
 * sums of n rows, which are `stride` apart, in the order of (N.41). */
int device_train_offset(struct device *dev, float *x, gidx n, idx p, const float *offset);
int device_train_sums(struct device *dev, const float *rows, gidx n, gidx stride, idx p, float *to);

/* error <- error - x; with several blocks, error <- nested_errors().  squares <- the sums of
 * squares of the error of all codes, which is the last block, and of x; each is a chain in f64.
 * left <- left + the error of all codes. */
struct train_errors_job {
  float *error;   /* [n][blocks][p] on entry: the reconstruction by each block */
  const float *x; /* [n][p] */
  float *left;    /* [n][p] on entry: the reconstruction by the dead atoms; NULL: none */
  real *squares;  /* [n][2] of error and of x */
  idx n, p;
  int blocks; /* 0: one */
};
int device_train_errors(struct device *dev, const struct train_errors_job *job);

/* values[count] <- factor * values, rounded once. */
int device_train_scale(struct device *dev, float *values, gidx count, float factor);

/* Transpose the entries of atoms first .. first + atoms - 1: start, row, code and slope <- these
 * entries atom by atom, in ascending order of rows.  The last element of `start` is work space and
 * is undefined afterwards. */
struct train_transpose_job {
  const struct train_entries *entries; /* of rows 0 .. n - 1 */
  const float *slopes;                 /* one for each entry */
  idx n, k;
  gidx first, atoms;
  gidx *start;         /* [atoms + 2] */
  idx *row;            /* [n most] */
  float *code, *slope; /* [n most] */
  void *work;          /* device_train_transpose_bytes() */
};
int device_train_transpose(struct device *dev, const struct train_transpose_job *job);
gidx device_train_transpose_bytes(const struct device *dev, idx n, idx k);

/* idle <- 0 if the atom is among the entries of the n rows, otherwise idle + n.  is_dead <- idle >=
 * dead_rows. */
struct train_idle_job {
  const struct train_entries *entries; /* NULL: no entries */
  idx n, k;
  gidx *idle; /* [k] */
  gidx dead_rows;
  unsigned char *is_dead; /* [k] */
  unsigned char *used;    /* workspace of k + 2 sizeof(int) bytes */
  int *any;               /* host memory, written: 1 if some atom is dead, otherwise 0 */
};
int device_train_idle(struct device *dev, const struct train_idle_job *job);

/* tangent: gradient[count][p] <- its part that is orthogonal to the unit atom, atom_gradient() of
 * each.  normalize: atoms[count][p] <- atoms of length 1, atoms_normalize(). */
int device_train_tangent(struct device *dev, const float *atoms, gidx count, idx p,
                         float *gradient);
int device_train_normalize(struct device *dev, float *atoms, gidx count, idx p);

#endif
