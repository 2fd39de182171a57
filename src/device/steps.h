/* SPDX-License-Identifier: BSD-3-Clause
 * Operation of a GPU: the steps of all atoms, class after class, for rows that are all on it
 * (N.16).
 *
 * Floor: device.  The bits of step_reference() in model/step.h.  On the CPU a sweep is made of the
 * operations of refit.h: the table's row is NULL there. */
#ifndef DEVICE_STEPS_H
#define DEVICE_STEPS_H

#include "base/det_pair.h"
#include "device/device.h"
#include "model/classes.h"

/* What became of an atom. */
struct step_result {
  real ridge;           /* of the rows in the last solve; the border's is in proportion (N.15) */
  struct det_pair pair; /* of the determinant of the last solve; of no meaning where that failed */
  int accepted;
  int status; /* of the last solve, enum arrow_status */
  idx retries;
  int unused;
};

/* How ranks that all have the same job share the atoms of classes that are too large for one GPU at
 * a time: each takes steps of some, and all others follow.  exchange() is called for each such
 * class, in the same order on every rank: messages[size][bytes] <- what each rank has at its own
 * place, behind what the device was told to compute so far, and ahead of what it is told next. */
struct steps_peers {
  int rank, size;
  const struct buffer *messages; /* steps_message_bytes() on the device side */
  int (*exchange)(void *self, gidx bytes);
  void *self;
};

struct steps_job {
  idx n, s, d, p, k;
  idx directions;
  gidx row; /* the global number of the first row */
  real rho;
  int nonnegative;            /* codes are at least 0; d = 1 */
  const struct buffer *x;     /* [n][p] float */
  const struct buffer *slots; /* [n][s] idx, whose atoms differ */
  const struct buffer *codes; /* [n][s][d] float, where the sweep begins */
  /* On the host: */
  const gidx *start; /* [k + 1] where the entries of each atom begin in entry */
  const gidx *entry; /* [n s] of an atom by ascending row: row s + place */
  int has_entry; /* device_steps_index() or device_steps_conflicts() left them on the device side */
  const struct classes *classes;   /* atoms of a class share no row */
  real *frames;                    /* [k][d][p], read and written */
  struct step_result *results;     /* [k], written; zeros for an atom of no class */
  struct buffer *work;             /* device_steps_bytes() on the device side */
  const struct steps_peers *share; /* NULL: no other rank has this job */
};
/* ERR_DEVICE where the device has no such operation.  After a failure of one rank that shares the
 * others may wait for it. */
int device_steps(struct device *dev, const struct steps_job *job);

/* List the entries of `slots` by atom on the device side, as `entry` has them, which is not read;
 * start[k + 1], on the host, as `start`.  At most so many entries.  Of `work` the residuals and
 * frames of the last sweep are lost. */
enum { STEPS_INDEX_ENTRIES = INT32_MAX };
int device_steps_index(struct device *dev, const struct steps_job *job, gidx *start);

/* Before the classes of a sweep are known: what some atoms meet in their rows.  Each atom has a
 * mark. */
enum { STEPS_LOOK_MOST = 512, STEPS_LOOK_ATOMS = 1 << 20 }; /* `count` and k, at most */
struct steps_conflicts {
  int begins; /* this is the first of the sweep: `start` is new, and `entry`, unless it is there */
  idx count;
  const idx *atoms;      /* [count] */
  const uint32_t *marks; /* [k] */
  gidx words;            /* at most 16 + k / 64, rounded up */
  uint64_t *sets;        /* [count][words] <- bits of the marks below 64 words that are met */
};
int device_steps_conflicts(struct device *dev, const struct steps_job *job,
                           const struct steps_conflicts *look);

/* Bytes of `work` for a job, whose sizes alone are read; 0: this device leaves it to others.  A dry
 * device is asked as that which it stands for. */
gidx device_steps_bytes(const struct device *dev, const struct steps_job *job);

/* Bytes of `messages` for a job of so many ranks, whose sizes alone are read: classes that need
 * more are not shared.  Arithmetic alone. */
gidx steps_message_bytes(const struct steps_job *job, int ranks);

/* residual[n][p], on the host <- what the codes leave over after the sweep. */
int device_steps_residual(struct device *dev, const struct steps_job *job, real *residual);

#endif
