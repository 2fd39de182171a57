/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device for a step of training an autoencoder (N.43), beside the products, the
 * sparse side and Adam of triad.h.
 *
 * Floor: device.  They have the bits of model/train.c for any backend, number of threads and
 * variant.
 *
 * On a GPU what says nothing to the host (all but codes, count and idle) may return before it has
 * ended: what is asked of the device later waits for it, device_get() too.
 *
 * Pointers are to the device's side, but for those that are said to be the host's.  Not collective.
 * ERR_DEVICE where the backend lacks them; ERR_INTERNAL: a dimension that is not positive. */
#ifndef DEVICE_TRAIN_H
#define DEVICE_TRAIN_H

#include "device/device.h"
#include "model/batch_cut.h"
#include "model/nested.h"
#include "model/precision.h"

/* Codes of some rows, one row after another, by ascending atoms. */
struct train_entries {
  idx most;     /* in a row; 0: there are none, and no arrays */
  gidx *start;  /* [n + 1] */
  idx *index;   /* [n most] an atom */
  float *value; /* [n most] */
};

/* live, dead <- the most positive scores of each row x[n][p], of all atoms and of the dead. */
struct train_codes_job {
  const float *x;               /* [n][p] */
  const float *encoder, *bias;  /* [k][p], [k] */
  const unsigned char *is_dead; /* [k]; NULL: none is */
  idx n, p, k;
  enum precision precision; /* of the scores: but for f32 those of tensor.h, on a GPU alone */
  struct train_entries live, dead;
  gidx room;  /* of device_train_cut(): entries for which `live` has room; 0: for all */
  void *work; /* device_train_codes_bytes() */
  gidx work_bytes;
};
int device_train_codes(struct device *dev, const struct train_codes_job *job);

/* Bytes of work for a job of such sizes, precision and numbers of entries, or a smaller one. */
gidx device_train_codes_bytes(const struct device *dev, const struct train_codes_job *job);

/* Codes of a batch, whose rows several devices may have (N.46), in three steps of one job whose
 * work, of device_train_batch_bytes(), stays as it is in between: scores of the rows; how many of
 * them have each next digit of the cut, counts[BATCH_BINS] of the host, until all digits are known;
 * and then live <- the scores above the cut and the first `ties` that equal it, dead <- as above.
 * live.index and live.value have room for all of them, or for job.room: if there are more, only
 * live.start is right. */
int device_train_scores(struct device *dev, const struct train_codes_job *job);
int device_train_count(struct device *dev, const struct train_codes_job *job,
                       const struct batch_cut *cut, gidx *counts);
int device_train_cut(struct device *dev, const struct train_codes_job *job,
                     const struct batch_cut *cut, gidx ties);
/* Between the first and the second: the scores h of what is left of the rows, job.x, become what
 * each atom would have without its own code: find_raise() of model/find.h (N.51). */
struct train_raise {
  const struct train_entries *entries; /* the codes of these rows; NULL: they have none */
  int relative;                        /* scores count by the size of what is left, */
  real floor;
  const float *left; /* [n][p] or, where it is not NULL, of these rows */
};
int device_train_raise(struct device *dev, const struct train_codes_job *job,
                       const struct train_raise *raise);
gidx device_train_batch_bytes(const struct device *dev, const struct train_codes_job *job);

/* Nested widths (N.47).  start <- where the entries of each block of a row begin, of 2 blocks or
 * more. */
struct train_blocks_job {
  const struct train_entries *entries; /* of rows 0 .. n - 1 */
  const struct nested *nested;
  idx n, k;
  gidx *start; /* [n blocks + 1] */
};
int device_train_blocks(struct device *dev, const struct train_blocks_job *job);
/* errors[n][blocks][p] <- nested_suffix() of each row; to[n][p] <- those of a block. */
int device_train_suffix(struct device *dev, float *errors, gidx n, int blocks, idx p);
int device_train_block_get(struct device *dev, const float *errors, gidx n, int blocks, int block,
                           idx p, float *to);

/* x[n][p] <- x less the offset[p] in each row; to[p] <- 1'rows by (N.41), of n rows at a stride
 * (N.48). */
int device_train_offset(struct device *dev, float *x, gidx n, idx p, const float *offset);
int device_train_sums(struct device *dev, const float *rows, gidx n, gidx stride, idx p, float *to);

/* error <- error - x, of several blocks nested_errors(); squares <- of that of all codes and of x,
 * chains in f64; left <- left + that error. */
struct train_errors_job {
  float *error;   /* [n][blocks][p] what the codes give, on entry */
  const float *x; /* [n][p] */
  float *left;    /* [n][p] what the codes of the dead give; NULL: there are none */
  real *squares;  /* [n][2] of error and of x */
  idx n, p;
  int blocks; /* 0: one */
};
int device_train_errors(struct device *dev, const struct train_errors_job *job);

/* values[count] <- factor values, rounded once. */
int device_train_scale(struct device *dev, float *values, gidx count, float factor);

/* start, row, code and slope <- the entries of atoms first .. first + atoms - 1, atom by atom, by
 * ascending row.  `start` has room for one more, which is undefined afterwards. */
struct train_transpose_job {
  const struct train_entries *entries; /* of rows 0 .. n - 1 */
  const float *slopes;                 /* of the entries */
  idx n, k;
  gidx first, atoms;
  gidx *start;         /* [atoms + 2] */
  idx *row;            /* [n most] */
  float *code, *slope; /* [n most] */
  void *work;          /* device_train_transpose_bytes() */
};
int device_train_transpose(struct device *dev, const struct train_transpose_job *job);
gidx device_train_transpose_bytes(const struct device *dev, idx n, idx k);

/* idle <- 0 where an atom is among the entries of n rows, else idle + n; is_dead <- are these
 * dead_rows or more? */
struct train_idle_job {
  const struct train_entries *entries; /* NULL: of no rows */
  idx n, k;
  gidx *idle; /* [k] */
  gidx dead_rows;
  unsigned char *is_dead; /* [k] */
  unsigned char *used;    /* [k] work */
  int *any;               /* the host's: is one dead?  Written */
};
int device_train_idle(struct device *dev, const struct train_idle_job *job);

/* gradient[count][p] <- what is left of it beside the unit atoms[count][p]: atom_gradient() of
 * each; atoms <- atoms of length 1: atoms_normalize(). */
int device_train_tangent(struct device *dev, const float *atoms, gidx count, idx p,
                         float *gradient);
int device_train_normalize(struct device *dev, float *atoms, gidx count, idx p);

#endif
