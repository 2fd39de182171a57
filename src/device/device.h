/* SPDX-License-Identifier: BSD-3-Clause
 * A worker's device and what it computes: exact routing over its tiles, codes of rows, arrow
 * systems.
 *
 * Floor: device.  Knows model and base; no MPI, no files.
 *
 * Every operation gives the bits of its reference in model/route.h, model/codes.h and
 * model/arrow.h, for any tile width, block size, thread count and variant.  Nothing here is
 * collective. */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "base/types.h"
#include "model/arrow.h"
#include "model/codes.h"
#include "model/route.h"

struct device_options {
  idx p, d;            /* columns, vectors a frame */
  idx atoms_most;      /* atoms that will be put on this device */
  int threads;         /* >= 1 */
  const char *variant; /* "auto", "baseline", "avx2", "avx512vl" or "avx512" */
};

struct device {
  struct device_state *state; /* owned */
  const char *variant;        /* name of what runs, for the log */
};

/* ERR_USAGE for an unknown variant, ERR_DEVICE for one that this processor lacks. */
int device_open(struct device *dev, const struct device_options *options);
void device_close(struct device *dev);

/* ERR_DEVICE unless this processor has a hardware fused multiply-add (codes and residuals need it),
 * ERR_INTERNAL unless every thread keeps subnormal products. */
int device_check_fma(void);
int device_check_subnormals(int threads);

/* Add count atoms[count][d][p] with global numbers first .. first + count - 1 to the device's share
 * of the dictionary; they are copied.  ERR_MEMORY; ERR_INTERNAL beyond atoms_most. */
int device_put_tile(struct device *dev, const float *atoms, idx count, idx first);

/* Route n rows over all atoms put so far (N.1 to N.3r). */
struct route_job {
  const float *rows; /* [n][p], finite */
  idx n;
  idx take;                   /* entries a row, 1 .. TOP_S_MOST */
  struct exclusions excluded; /* atoms not to be chosen; count 0: none */
  struct entry *lists;        /* [n][take], written */
  struct bad_score bad;       /* written: the lowest score that is not finite, or row -1 */
};
int device_route(struct device *dev, struct route_job *job);

/* Solve the codes of n rows on their supports, or go on from the codes of shorter supports.
 *
 * Entries before m_old were solved by an earlier call with the same state, rows and slots; entries
 * m_old .. m_new - 1 are added.  state is [n] blocks of codes_state(device, m_most) bytes each,
 * kept by the caller between the rounds of a block of rows; NULL when m_old is 0 and nothing
 * follows. */
struct codes_job {
  idx n;
  idx m_old, m_new, m_most; /* support atoms a row */
  real rho;
  const float *rows;  /* [n][p] the rows themselves, not residuals */
  const float *atoms; /* [..][d][p] table of atoms */
  const idx *slot;    /* [n][m_most] place in the table of each support atom */
  void *state;
  float *residual;             /* [n][p], by unrounded codes; NULL: not wanted */
  float *codes;                /* [n][m_new][d], rounded once; NULL: not wanted */
  struct row_quality *quality; /* [n], from the rounded codes; needs codes; NULL: not wanted */
};
gidx codes_state(const struct device *dev, idx m_most);
int device_codes(struct device *dev, const struct codes_job *job);

/* Solve arrow systems (N.7 to N.15): any number, each with its own d, k and n, each by itself.  The
 * threads share systems, and the rows of long ones.  ERR_DEVICE without fused multiply-add,
 * ERR_INPUT when d or k is beyond model/arrow.h's limits, ERR_MEMORY. */
struct arrow_item {
  struct arrow_system system;   /* borrowed arrays */
  struct arrow_start start;     /* zeroed: a fresh system */
  real *step_t;                 /* [n][d], written */
  real *step_b;                 /* [k], written */
  struct arrow_outcome outcome; /* written */
};
struct arrow_job {
  struct arrow_options options;
  struct arrow_item *items;
  gidx count;
};
int device_arrow(struct device *dev, struct arrow_job *job);

/* Multiply-adds a second of the best register-only loop of this variant on one thread, two
 * instructions a term: the limit of (N.1) on this processor. */
double device_peak(const struct device *dev, double seconds);

#endif
