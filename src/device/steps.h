/* SPDX-License-Identifier: BSD-3-Clause
 * Operation of a GPU: a sweep of steps over all atoms, class after class, with all rows on the GPU
 * (N.16).
 *
 * Floor: device.  Results have the bits of step_reference() in model/step.h.  The CPU backend lacks
 * this operation; there a sweep is made of the operations of refit.h. */
#ifndef DEVICE_STEPS_H
#define DEVICE_STEPS_H

#include "base/det_pair.h"
#include "device/device.h"
#include "model/classes.h"

/* The result of an atom's step. */
struct step_result {
  /* Added to the blocks of the rows in the last solve.  The border got the ridge that (N.15) gives
   * with it. */
  real ridge;
  struct det_pair pair; /* the determinant of the last solve; undefined if that failed */
  int accepted;
  int status; /* of the last solve, enum arrow_status */
  idx retries;
  int unused;
};

/* Several ranks may have the same job.  They share the atoms of a launch if one GPU cannot take
 * them all at a time: each rank makes the steps of some atoms, and all ranks apply all steps.
 * exchange() is called once for each such launch, in the same order on every rank.  It fills
 * messages[size][bytes], where message r comes from rank r.  The exchange runs after the earlier
 * work of the device, and before its later work. */
struct steps_peers {
  int rank, size;
  const struct buffer *messages; /* steps_message_bytes(), on the device side */
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
  const struct buffer *slots; /* [n][s] idx, atoms of the supports; distinct within a row */
  const struct buffer *codes; /* [n][s][d] float, at the start of the sweep */
  /* On the host: */
  const gidx *start; /* [k + 1] atom a has the entries start[a] .. start[a + 1] - 1 of entry */
  const gidx *entry; /* [n s] by atom, then by row: row s + index in the row's support */
  int has_entry; /* 1: device_steps_index() or device_steps_conflicts() left entry on the device */
  const struct classes *classes;   /* atoms of a class share no row */
  real *frames;                    /* [k][d][p], read and written */
  struct step_result *results;     /* [k], written; zeros for an atom that is in no class */
  struct buffer *work;             /* device_steps_bytes(), on the device side */
  const struct steps_peers *share; /* NULL: no other rank has this job */
};
/* ERR_DEVICE if the device lacks the operation; ERR_INTERNAL if device_steps_bytes() is 0.  If a
 * rank fails, the ranks that share its job may wait for it in exchange(). */
int device_steps(struct device *dev, const struct steps_job *job);

/* Make the list `entry` from `slots` on the device side; job->entry is not read.  start[k + 1], on
 * the host, is written as job->start.  At most STEPS_INDEX_ENTRIES entries.  Overwrites the
 * residuals and frames of the last sweep in `work`. */
enum { STEPS_INDEX_ENTRIES = INT32_MAX };
int device_steps_index(struct device *dev, const struct steps_job *job, gidx *start);

/* For the colouring of atoms, before the classes of a sweep are known: find the atoms that share
 * rows with the given atoms.  Every atom has a mark, which is the number of its bit in a set. */
enum { STEPS_LOOK_MOST = 512, STEPS_LOOK_ATOMS = 1 << 20 }; /* limits of `count` and k */
struct steps_conflicts {
  int begins; /* 1 in the first call of a sweep: job->start is new, and so is job->entry */
  idx count;
  const idx *atoms;      /* [count] */
  const uint32_t *marks; /* [k] */
  gidx words;            /* of a set; at most 16 + k / 64, rounded up */
  /* [count][words], written: for each of the atoms, the marks of the atoms that share rows with it.
   * Marks from 64 `words` on are left out. */
  uint64_t *sets;
};
int device_steps_conflicts(struct device *dev, const struct steps_job *job,
                           const struct steps_conflicts *look);

/* Bytes of `work` for a job; only the job's sizes are read.  0: this device cannot do it.  A dry
 * device answers for the device that it stands for. */
gidx device_steps_bytes(const struct device *dev, const struct steps_job *job);

/* Bytes of `messages` for a job that `ranks` ranks share; only its sizes are read.  Launches that
 * need more bytes are not shared.  Needs no device. */
gidx steps_message_bytes(const struct steps_job *job, int ranks);

/* residual[n][p], on the host, <- the rows minus their reconstructions after the sweep. */
int device_steps_residual(struct device *dev, const struct steps_job *job, real *residual);

#endif
