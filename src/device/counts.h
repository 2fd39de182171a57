/* SPDX-License-Identifier: BSD-3-Clause
 * What a device counts of its own work, for logs and reports.
 *
 * Floor: device. */
#ifndef DEVICE_COUNTS_H
#define DEVICE_COUNTS_H

#include "base/types.h"

/* What was done for this device so far. */
struct device_counts {
  gidx kernels;  /* launched */
  gidx put, got; /* bytes copied to and from the device */
  /* Arrow systems that a GPU left to the CPU: beyond what its kernels take, and such as failed. */
  gidx declined, retried;
};

/* What the certified filter did so far (doc/certified.md): rows by the path that they took, and the
 * candidates of the certified ones. */
enum screen_path {
  SCREEN_CERTIFIED,
  SCREEN_LIST,     /* direct path: too many candidates */
  SCREEN_SCORE,    /* direct path: scores may overflow */
  SCREEN_ESTIMATE, /* GPU: the threshold estimate was too high */
  SCREEN_SMALL,    /* GPU: zeros, or hardly more */
  SCREEN_PATHS
};
/* Its stages.  A CPU takes no sample, and converts and prunes within the product. */
enum screen_stage {
  SCREEN_CONVERT,
  SCREEN_SAMPLE,
  SCREEN_PRODUCT,
  SCREEN_PRUNE,
  SCREEN_RESCORE,
  SCREEN_LEFT,  /* rows on the direct path */
  SCREEN_ATOMS, /* GPU: conversion of the dictionary, once a window */
  SCREEN_STAGES
};
extern const char *const screen_stage_names[SCREEN_STAGES];
struct screen_counts {
  gidx rows[SCREEN_PATHS];
  gidx candidates, max;          /* in all, and of one row */
  double seconds[SCREEN_STAGES]; /* CPU: of all threads together */
};

#endif
