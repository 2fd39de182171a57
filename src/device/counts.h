/* SPDX-License-Identifier: BSD-3-Clause
 * Counters of a device, for logs and reports.
 *
 * Floor: device. */
#ifndef DEVICE_COUNTS_H
#define DEVICE_COUNTS_H

#include "base/types.h"

/* Totals since the device was opened. */
struct device_counts {
  gidx kernels;  /* launched */
  gidx put, got; /* bytes copied to and from the device */
  /* Arrow systems that a GPU left to the CPU: those too large for its kernels; those that
   * failed. */
  gidx declined, retried;
};

/* Totals of the certified filter (doc/certified.md).  Rows are counted by the path that they took.
 * Candidates are those of the rows on the certified path. */
enum screen_path {
  SCREEN_CERTIFIED,
  SCREEN_LIST,     /* direct path: too many candidates */
  SCREEN_SCORE,    /* direct path: scores may overflow */
  SCREEN_ESTIMATE, /* GPU, direct path: the threshold estimate was too high */
  SCREEN_SMALL,    /* GPU, direct path: rows of zeros or of tiny numbers */
  SCREEN_PATHS
};
/* The stages of the filter.  A CPU takes no sample, and counts conversions and prunings with the
 * product and the rescoring. */
enum screen_stage {
  SCREEN_CONVERT,
  SCREEN_SAMPLE,
  SCREEN_PRODUCT,
  SCREEN_PRUNE,
  SCREEN_RESCORE,
  SCREEN_LEFT,  /* rows on the direct path */
  SCREEN_ATOMS, /* GPU: conversion of the dictionary, once for each part that fits in memory */
  SCREEN_STAGES
};
extern const char *const screen_stage_names[SCREEN_STAGES];
struct screen_counts {
  gidx rows[SCREEN_PATHS];
  gidx candidates, max;          /* of all rows together; the largest number for one row */
  double seconds[SCREEN_STAGES]; /* CPU: summed over threads */
};

#endif
